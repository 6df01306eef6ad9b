#pragma once

#include "mods/lang/index.h"

namespace attn {

/// The score through SiLU (swish).
///
///     t = s * sigmoid(s)          dt/ds = g + s g (1 - g), g = sigmoid(s)
///
///        t              /
///                     /
///                   /
///     ___        _-'          s
///     ---'''--__'--------------
///
/// S. Elfwing et al., "Sigmoid-Weighted Linear Units", 2017, section 2. A test mod of PyTorch
/// FlexAttention: smooth, not monotone, and nearly 0 for very negative scores.
struct Silu {
  template <class Score, class Index>
  ATTN_HOST_DEVICE Score operator()(Score s, Index, Index, Index, Index) const {
    return s * attn::sigmoid(s);
  }
};

/// s / (1 + e^-s).
inline Silu silu() { return {}; }

}  // namespace attn
