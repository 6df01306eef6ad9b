#pragma once

#include <cstdint>

#include "mods/lang/captured.h"

namespace attn {

/// A bias that decays with the distance as sinusoidal position embeddings do.
///
///     t[i,j] = s[i,j] + sum_n cos((i - j) * frequency[n]) * Hq / (8 (h + 1))
///
/// The inner product of two sinusoidal embeddings depends on their distance alone: it is this sum,
/// largest at distance 0. Later heads get a weaker bias.
///
/// T.-C. Chi et al., "Dissecting Transformer Length Extrapolation via the Lens of Receptive Field
/// Analysis" (Sandwich), ACL 2023, section 5. Frequencies there: 10000^(-n / N), N of them.
///
/// Elsewhere: `generate_sandwich_bias` (attention-gym).
struct Sandwich {
  Captured<1> frequency;  ///< [N]

  template <class Score, class Index>
  ATTN_HOST_DEVICE Score operator()(Score s, Index, Index h, Index q, Index kv) const {
    Score sum(0);
    for (std::int32_t n = 0; n < frequency.tensor.extents[0]; ++n)
      sum = sum + attn::cos((q - kv) * frequency(q * 0 + n));
    return s + sum * sizes(h).hq / (8.0f * (h + 1));
  }
};

/// The memory stays the caller's.
inline Sandwich sandwich(Captured<1> frequency) {
  frequency.name = "sandwich frequency";
  return {frequency};
}

}  // namespace attn
