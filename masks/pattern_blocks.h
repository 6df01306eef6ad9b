#pragma once

#include <cstdint>

#include "masks/algebra.h"
#include "mods/arguments_check.h"

namespace attn {

/// A boolean for each block of the plane.
///
///     attend(b, h, i, j) = pattern[b, h, floor(i / rows), floor(j / columns)]
///
/// block_pattern((1 0 1, 0 1 1), 2, 3):
///
///       keys j
///     i ###...###
///       ###...###
///       ...######
///       ...######
///
/// Elsewhere: the BSR layout of FlashInfer, the block mask of cuDNN, `BlockSparseTensors` of
/// FlashAttention 4, BigBird and the learned patterns of sparse training.
struct BlockPattern : MaskBase {
  Captured<4, bool> pattern;  ///< [B or 1, Hq or 1, block rows, block columns]
  std::int32_t rows;          ///< queries of a block
  std::int32_t columns;       ///< keys of a block

  template <class Index>
  ATTN_HOST_DEVICE auto operator()(Index b, Index h, Index q, Index kv) const {
    return pattern(b, h, attn::floor_div(q, rows), attn::floor_div(kv, columns));
  }
  /// @throws std::invalid_argument if a side is below 1 or the pattern does not cover the plane.
  void check(const Sizes& sizes) const {
    check_at_least("block_pattern", "rows", rows, 1);
    check_at_least("block_pattern", "columns", columns, 1);
    const auto blocks = [](std::int64_t length, std::int64_t side) {
      return (length + side - 1) / side;
    };
    check_table("block_pattern", "pattern", pattern, one_or("B", sizes.b), one_or("Hq", sizes.hq),
                at_least("blocks of queries", blocks(sizes.sq, rows)),
                at_least("blocks of keys", blocks(sizes.skv, columns)));
  }
};

/// Blocks of `rows` x `columns`. The memory stays the caller's.
/// @throws std::invalid_argument if a side is below 1.
inline BlockPattern block_pattern(Captured<4, bool> pattern, std::int32_t rows,
                                  std::int32_t columns) {
  check_at_least("block_pattern", "rows", rows, 1);
  check_at_least("block_pattern", "columns", columns, 1);
  pattern.name = "pattern";
  return {{}, pattern, rows, columns};
}
/// One pattern for all batch entries and heads, [block rows, block columns].
inline BlockPattern block_pattern(const Captured<2, bool>& pattern, std::int32_t rows,
                                  std::int32_t columns) {
  const auto& t = pattern.tensor;
  return block_pattern(
      Captured<4, bool>(TensorView<const bool, 4>{
          t.data, {1, 1, t.extents[0], t.extents[1]}, {0, 0, t.strides[0], t.strides[1]}}),
      rows, columns);
}

}  // namespace attn
