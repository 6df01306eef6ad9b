#pragma once

#include <cstdint>

#include "masks/algebra.h"
#include "mods/arguments_check.h"

namespace attn {

/// Square blocks on the diagonal: a query attends to the keys of its own block.
///
///     attend(b, h, i, j) = floor(i / n) == floor(j / n)
///
/// block_diagonal(3):
///
///       keys j
///     i ###....
///       ###....
///       ###....
///       ...###.
///       ...###.
///       ...###.
///       ......#
///
/// Elsewhere: the block-diagonal masks of 64 and 128 in FlashAttention 4's tests. Blocks of varying
/// lengths (`BlockDiagonalMask` of xFormers) are `document(ids)`.
struct BlockDiagonal : MaskBase {
  std::int32_t length;  ///< n

  template <class Index>
  ATTN_HOST_DEVICE auto operator()(Index, Index, Index q, Index kv) const {
    return attn::floor_div(q, length) == attn::floor_div(kv, length);
  }
  /// @throws std::invalid_argument if the length is below 1.
  void check(const Sizes&) const { check_at_least("block_diagonal", "length", length, 1); }
};

/// Blocks of `length` positions. @throws std::invalid_argument if it is below 1.
inline BlockDiagonal block_diagonal(std::int32_t length) {
  const BlockDiagonal mask{{}, length};
  mask.check({});
  return mask;
}

}  // namespace attn
