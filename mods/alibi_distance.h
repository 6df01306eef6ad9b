#pragma once

#include "masks/alignment.h"
#include "mods/arguments_check.h"

namespace attn {

/// ALiBi on both sides of the diagonal: a penalty that grows with the distance, past or future.
///
///     t[i,j] = s[i,j] - slope[b, h] * |i + off - j|        off by `masks/alignment.h`
///
/// The bias in units of the slope, off = 0:
///
///       keys j
///     i  0 -1 -2 -3
///       -1  0 -1 -2
///       -2 -1  0 -1
///       -3 -2 -1  0
///
/// O. Press et al., "Train Short, Test Long", ICLR 2022, section 3, made symmetric for encoders.
///
/// Elsewhere: FlashAttention 2 (`alibi_slopes`, aligned bottom_right, a slope a head or a batch
/// entry and head), cuDNN, ggml (its mask times the slope). Under a causal mask of the same
/// alignment it equals `Alibi` up to a constant a row.
struct AlibiDistance {
  Captured<2> slope;    ///< [B or 1, Hq or 1]
  Alignment alignment;  ///< where the distance is 0

  template <class Score, class Index>
  ATTN_HOST_DEVICE Score operator()(Score s, Index b, Index h, Index q, Index kv) const {
    return s - slope(b, h) * attn::abs(alignment.diagonal(b, q, kv) - kv);
  }
  /// @throws std::invalid_argument if the slopes do not broadcast to [B, Hq].
  void check(const Sizes& sizes) const {
    check_table("alibi_distance", "slope", slope, one_or("B", sizes.b), one_or("Hq", sizes.hq));
    alignment.check(sizes);
  }
};

/// `slope` is [B or 1, Hq or 1]. The memory stays the caller's.
inline AlibiDistance alibi_distance(Captured<2> slope, const Alignment& alignment = top_left) {
  slope.name = "alibi slope";
  return {slope, alignment};
}
/// A slope a head, [Hq] or [1].
inline AlibiDistance alibi_distance(const Captured<1>& slope,
                                    const Alignment& alignment = top_left) {
  return alibi_distance(one_row(slope), alignment);
}

}  // namespace attn
