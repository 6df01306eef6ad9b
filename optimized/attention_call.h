#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "masks/block_mask.h"
#include "mods/lang/program.h"
#include "optimized/attention_options.h"
#include "reference/problem.h"

namespace attn {

/// What one pass works on, its storage types erased. A tensor that is not wanted or not there has
/// no data (`TensorInfo{}`). Everything but the tensors is host memory.
struct AttentionArguments {
  TensorInfo q, k, v;     ///< [B, Hq, Sq, D], [B, Hkv, Skv, D], [B, Hkv, Skv, Dv], of one dtype;
                          ///< packed: B = 1; paged: k, v [pages, Hkv, page_size, D or Dv]
  TensorInfo o;           ///< [B, Hq, Sq, Dv], of the same dtype: written forward, read backward
  TensorInfo lse;         ///< [B, Hq, Sq], fp32: written forward, read backward
  TensorInfo row_max;     ///< [B, Hq, Sq], fp32, optional, forward only
  TensorInfo d_o;         ///< [B, Hq, Sq, Dv], of the dtype of q; backward only
  TensorInfo d_lse;       ///< [B, Hq, Sq], fp32, optional; backward only
  TensorInfo dq, dk, dv;  ///< as q, k, v; written backward
  /// Backward: the gradient of each floating tensor that the mod reads, in order of first read, as
  /// `reference::BackwardResult::d_captured`: fp32, contiguous, row-major over the captured
  /// extents. None wanted where the span is empty.
  std::span<float* const> d_captured;
  float* d_sink = nullptr;  ///< [Hq], written backward where wanted

  AttentionOptions options;  ///< what does not depend on storage types

  std::span<const std::int32_t> cu_q, cu_kv;     ///< packed sequences: [N + 1]
  std::span<const std::int32_t> lengths;         ///< decode: [B], filled rows of each cache
  TensorView<const std::int32_t, 2> page_table;  ///< paged decode: [B, max_pages]
  const BlockMask* blocks = nullptr;             ///< block-sparse: the blocks of the mask
};

/// One pass with its mod and mask known at run time only: what the table of implementations runs.
struct AttentionCall : AttentionArguments {
  ProgramMod mod;    ///< no instructions: the identity
  ProgramMask mask;  ///< compiled, as the mod
};

/// The view that was described; see `describe`.
template <class T, int Rank>
TensorView<T, Rank> view_of(const TensorInfo& info) {
  TensorView<T, Rank> view{static_cast<T*>(const_cast<void*>(info.data)), {}, {}};
  for (int axis = 0; axis < Rank; ++axis) {
    view.extents[axis] = info.extents[axis];
    view.strides[axis] = info.strides[axis];
  }
  return view;
}

}  // namespace attn
