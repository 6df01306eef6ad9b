#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>

#include "masks/block_mask.h"
#include "masks/check.h"
#include "mods/lang/call.h"
#include "mods/lang/environments.h"
#include "mods/lang/tensor.h"

/// Block masks from and to other forms: boolean masks, a matrix of blocks, lists of blocks.
namespace attn {

/// The blocks of a mask that is written out, [B, Hq, Sq, Skv] (true: attend). An axis of extent 1
/// broadcasts. What `make_block_mask` of the same mask gives, by counting.
/// @throws std::invalid_argument if an axis is neither 1 nor as in `shape`, or `shape` is not
/// valid.
BlockMask block_mask_from_dense(const TensorView<const bool, 4>& mask, const BlockMaskShape& shape);

/// The mask written out by its blocks: the functor is asked only in partial ones.
/// `out` is [B, Hq, Sq, Skv] and the caller's.
/// @throws std::invalid_argument if `out` or `sizes` has other lengths, or the mask does not fit.
template <class Mask>
void write_dense(const BlockMask& blocks, const Mask& mask, const Sizes& sizes,
                 const TensorView<bool, 4>& out) {
  const BlockMaskShape& shape = blocks.shape();
  const std::array<std::int64_t, 4> lengths{shape.b, shape.hq, shape.sq, shape.skv};
  if (out.extents != lengths)
    throw std::invalid_argument("out: shape " + shape_string(out.extents) + ", expected " +
                                shape_string(lengths));
  if (lengths != std::array<std::int64_t, 4>{sizes.b, sizes.hq, sizes.sq, sizes.skv})
    throw std::invalid_argument("sizes: other lengths than the block mask's " +
                                shape_string(lengths));
  check_mask(mask, sizes);
  ExactEnv env{sizes};
  const auto index = [&env](int i) { return Index<ExactEnv>{i, &env}; };
  for (int b = 0; b < shape.b; ++b)
    for (int h = 0; h < shape.hq; ++h)
      for (int q = 0; q < shape.sq; ++q) {
        for (int kv = 0; kv < shape.skv; ++kv) out(b, h, q, kv) = false;
        for (const BlockSpan& span : blocks.row(b, h, q / shape.q_block)) {
          const std::int64_t end =
              std::min<std::int64_t>((std::int64_t{span.last} + 1) * shape.kv_block, shape.skv);
          for (int kv = span.first * shape.kv_block; kv < end; ++kv)
            out(b, h, q, kv) = span.kind == BlockKind::full ||
                               call_mask(mask, index(b), index(h), index(q), index(kv));
        }
      }
}

/// The kind of each block, [B or 1, Hq or 1, q blocks, kv blocks]: 1 where planes are shared.
Tensor<BlockKind, 4> block_kinds(const BlockMask& mask);
/// @throws std::invalid_argument if `kinds` has another shape than `block_kinds` would give.
BlockMask block_mask_from_kinds(const TensorView<const BlockKind, 4>& kinds,
                                const BlockMaskShape& shape);

/// The lists of FlexAttention's `BlockMask` (PyTorch, torch/nn/attention/flex_attention.py): in a
/// row of blocks, how many partial blocks there are and which, then the same of full ones.
struct FlexBlockLists {
  Tensor<std::int32_t, 3> kv_num_blocks;       ///< [B or 1, Hq or 1, q blocks], partial
  Tensor<std::int32_t, 4> kv_indices;          ///< [B or 1, Hq or 1, q blocks, kv blocks]
  Tensor<std::int32_t, 3> full_kv_num_blocks;  ///< of no entries: no full blocks are told apart
  Tensor<std::int32_t, 4> full_kv_indices;     ///< as kv_indices, of full blocks
};

/// Lists are sorted; entries past the count are 0, a block that may be read.
FlexBlockLists to_flex(const BlockMask& mask);
/// Lists may come in any order; entries past the count are not looked at.
/// @throws std::invalid_argument if a count or a block is out of range, a block is listed twice, or
///     a tensor's shape does not fit `shape`.
BlockMask block_mask_from_flex(const FlexBlockLists& lists, const BlockMaskShape& shape);

}  // namespace attn
