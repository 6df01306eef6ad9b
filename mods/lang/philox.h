#pragma once

#include <cstdint>

#include "mods/lang/host_device.h"

namespace attn {

/// Four 32-bit words: a counter, or the random words that Philox makes of it.
struct PhiloxWords {
  std::uint32_t word[4];  ///< the first is the lowest
};

/// Philox4x32-10: 128 random bits for each counter and key, with no state, so that every pass and
/// every tile shape draws the same number for the same pair. The low half of the key is its first
/// word. Ten rounds, each two 32 x 32 -> 64-bit products; the key steps by a Weyl sequence.
///
/// J. K. Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011, section 3.2.
ATTN_INLINE PhiloxWords philox4x32(const PhiloxWords& counter, std::uint64_t key) {
  PhiloxWords c = counter;
  std::uint32_t k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t x = std::uint64_t{0xD2511F53} * c.word[0];
    const std::uint64_t y = std::uint64_t{0xCD9E8D57} * c.word[2];
    c = {{static_cast<std::uint32_t>(y >> 32) ^ c.word[1] ^ k0, static_cast<std::uint32_t>(y),
          static_cast<std::uint32_t>(x >> 32) ^ c.word[3] ^ k1, static_cast<std::uint32_t>(x)}};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return c;
}

}  // namespace attn
