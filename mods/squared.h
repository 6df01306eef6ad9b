#pragma once

#include "mods/lang/index.h"

namespace attn {

/// The square of the score, scaled.
///
///     t = a * s^2          dt/ds = 2 a s
///
///        t  \           /
///            \         /
///             \_     _/        s
///     ----------'---'-----------
///
/// A test mod of PyTorch FlexAttention (a = 1) and FlashAttention 4: the derivative depends on the
/// score, so a backward pass that does not recompute it is wrong.
struct Squared {
  float factor = 1;  ///< a

  template <class Score, class Index>
  ATTN_HOST_DEVICE Score operator()(Score s, Index, Index, Index, Index) const {
    return factor * (s * s);
  }
};

/// `factor` times the square of the score.
inline Squared squared(float factor = 1) { return {factor}; }

}  // namespace attn
