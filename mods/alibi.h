#pragma once

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "mods/lang/captured.h"

namespace attn {

/// Attention with linear biases: a penalty that grows with the distance to past keys.
///
///     t[i,j] = s[i,j] + slope[h] * (j - i)
///
/// The bias in units of the slope:
///
///       keys j
///     i   0  1  2  3
///        -1  0  1  2
///        -2 -1  0  1
///        -3 -2 -1  0
///
/// O. Press, N. A. Smith, M. Lewis, "Train Short, Test Long", ICLR 2022, section 3. It is meant for
/// causal masks; without one, later keys are favoured.
///
/// Elsewhere:
///   attention-gym                  the same sign and slopes
///   FlashAttention, cuDNN, ggml    s - slope[h] * |i + off - j|. Under causal(bottom_right) that
///   is
///                                  this bias less a constant, slope[h] * off, a row: the same
///                                  output, and an LSE that differs by the constant
///   flaxattention                  the opposite sign, s + slope[h] * (i - j): negate the slopes
struct Alibi {
  Captured<1> slope;  ///< [Hq], or [1] for all heads

  template <class Score, class Index>
  ATTN_HOST_DEVICE Score operator()(Score s, Index, Index h, Index q, Index kv) const {
    return s + slope(h) * (kv - q);
  }

  /// @throws std::invalid_argument if there is not one slope a query head (or one for all).
  void check(const Sizes& sizes) const {
    const std::int64_t count = slope.tensor.extents[0];
    if (count != 1 && count != sizes.hq)
      throw std::invalid_argument("alibi: " + std::to_string(count) +
                                  " slopes, expected 1 or Hq = " + std::to_string(sizes.hq));
  }
};

/// `slope` is [Hq] or [1], in the order of the query heads. The memory stays the caller's.
inline Alibi alibi(Captured<1> slope) {
  slope.name = "alibi slope";
  return {slope};
}

/// The slopes of the paper, [heads]. For n heads, n a power of two: slope[h] = 2^(-8 (h + 1) / n).
/// Otherwise, as in the authors' code: the slopes of p heads, p the power of two below n, followed
/// by every second slope of 2 p heads, from the first on, until there are n.
/// @throws std::invalid_argument if `heads` is negative.
inline Tensor<float, 1> alibi_slopes(int heads) {
  if (heads < 0)
    throw std::invalid_argument("alibi_slopes: heads = " + std::to_string(heads) +
                                ", expected 0 or more");
  Tensor<float, 1> slopes({heads});
  int power = 1;
  while (power <= heads / 2) power *= 2;
  const auto slope = [](int h, int of) {
    return static_cast<float>(std::exp2(-8.0 * (h + 1) / of));
  };
  for (int h = 0; h < heads; ++h)
    slopes(h) = h < power ? slope(h, power) : slope(2 * (h - power), 2 * power);
  return slopes;
}

}  // namespace attn
