// Small arrays compared as one number.
#pragma once
#include <cstdint>
#include <cstring>

#include "optimized/simt/cpu_inline.h"

namespace attn::simt::cpu {

/// The first n bytes, at most eight, as one number.
template <int n>
ATTN_FORCE_INLINE std::uint64_t word_of(const std::uint8_t* bytes) {
  static_assert(n >= 1 && n <= 8);
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, n);
  return word;
}
/// The same of n times this byte.
template <int n>
constexpr std::uint64_t repeated(std::uint8_t byte) {
  static_assert(n >= 1 && n <= 8);
  return (~std::uint64_t{0} >> (64 - 8 * n)) / 0xff * byte;
}

/// True if all n numbers are the same.
template <int n>
ATTN_FORCE_INLINE bool all_same(const std::uint32_t* x) {
  if constexpr (n == 1) {
    return true;
  } else {
    const std::uint64_t twice = std::uint64_t{x[0]} << 32 | x[0];
    std::uint64_t differ = 0;
    for (int i = 0; i < n; i += 2) {
      std::uint64_t pair;
      std::memcpy(&pair, x + i, sizeof pair);
      differ |= pair ^ twice;
    }
    return differ == 0;
  }
}

}  // namespace attn::simt::cpu
