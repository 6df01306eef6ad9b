#pragma once

#include "mods/lang/program.h"
#include "optimized/forward_options.h"
#include "reference/problem.h"

namespace attn {

/// One forward pass with its types erased: what the table of implementations runs. O and LSE are
/// written through `o` and `lse`.
struct ForwardCall {
  TensorInfo q, k, v;  ///< [B, Hq, Sq, D], [B, Hkv, Skv, D], [B, Hkv, Skv, Dv], of one dtype
  TensorInfo o;        ///< [B, Hq, Sq, Dv], of the same dtype
  TensorInfo lse;      ///< [B, Hq, Sq], fp32
  ProgramMod mod;
  ProgramMask mask;
  ForwardOptions options;
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
