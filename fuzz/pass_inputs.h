#pragma once

#include <vector>

#include "mods/lang/tensor.h"
#include "reference/problem.h"
#include "reference/sequences.h"

namespace attn::fuzz {

/// The inputs of one pass, as the exact values of the storage type, however the kernel's own
/// tensors are laid out: sequence b has the first rows of its own batch entry, and rows past its
/// length hold nothing.
struct PassInputs {
  Sizes sizes;                ///< the extents below; a sequence's own sizes may be smaller
  double scale = 1;           ///< of Q K^T
  Tensor<double, 4> q, k, v;  ///< [B, Hq, Sq, D], [B, Hkv, Skv, D], [B, Hkv, Skv, Dv]
  /// One a batch entry, in order: `queries` and `keys` are {b, 0, count}; `sizes` are what mods and
  /// masks see (lengths, q_start, kv_start, q_offset).
  std::vector<Sequence> sequences;
  std::vector<float> sink;  ///< [Hq], or empty: no sink
  Dropout dropout;          ///< probability 0: none
  Tensor<double, 4> d_o;    ///< [B, Hq, Sq, Dv]; backward only, else empty
  Tensor<double, 3> d_lse;  ///< [B, Hq, Sq]; backward only: zeros where there is none
};

}  // namespace attn::fuzz
