#pragma once

#include <cstdint>

#include "masks/algebra.h"
#include "mods/arguments_check.h"

namespace attn {

/// A window on both sides that takes every d-th key.
///
///     attend(b, h, i, j) = |i - j| <= w  and  |i - j| mod d == 0
///
/// dilated_window(4, 2):
///
///       keys j
///     i #.#.#...
///       .#.#.#..
///       #.#.#.#.
///       .#.#.#.#
///       #.#.#.#.
///       .#.#.#.#
///       ..#.#.#.
///       ...#.#.#
///
/// I. Beltagy et al., "Longformer: The Long-Document Transformer", 2020, section 3.1 (dilated
/// sliding window).
///
/// Elsewhere: `generate_dilated_sliding_window` (attention-gym), dilated(256, 2) in FlashAttention
/// 4's tests. Causal: `causal() && dilated_window(w, d)`.
struct DilatedWindow : MaskBase {
  std::int32_t reach;     ///< w
  std::int32_t dilation;  ///< d

  template <class Index>
  ATTN_HOST_DEVICE auto operator()(Index, Index, Index q, Index kv) const {
    const Index distance = kv - q;
    return attn::abs(distance) <= reach && attn::floor_mod(distance, dilation) == 0;
  }
  /// @throws std::invalid_argument if the reach is below 0 or the dilation below 1.
  void check(const Sizes&) const {
    check_at_least("dilated_window", "reach", reach, 0);
    check_at_least("dilated_window", "dilation", dilation, 1);
  }
};

/// Keys at most `reach` away at distances that `dilation` divides.
/// @throws std::invalid_argument if `reach` is below 0 or `dilation` below 1.
inline DilatedWindow dilated_window(std::int32_t reach, std::int32_t dilation) {
  const DilatedWindow mask{{}, reach, dilation};
  mask.check({});
  return mask;
}

}  // namespace attn
