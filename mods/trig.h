#pragma once

#include "mods/lang/index.h"

namespace attn {

/// Trigonometry of the score and of the batch entry.
///
///     trig()     t = sin(cos s) + tan b
///     trig2()    t = cos s * sin s + tan b        the score twice, in two branches
///
/// Nobody trains with them: their graphs have a branch that does not depend on the score, and one
/// that uses it twice. From PyTorch FlexAttention's tests. The language has no tangent: it is
/// sin b / cos b, which for whole b is never a division by zero.
struct Trig {
  bool twice = false;  ///< trig2()

  template <class Score, class Index>
  ATTN_HOST_DEVICE Score operator()(Score s, Index b, Index, Index, Index) const {
    const Score tangent(attn::sin(b) / attn::cos(b));
    if (twice) return attn::cos(s) * attn::sin(s) + tangent;
    return attn::sin(attn::cos(s)) + tangent;
  }
};

/// sin(cos s) + tan b.
inline Trig trig() { return {false}; }
/// cos s * sin s + tan b.
inline Trig trig2() { return {true}; }

}  // namespace attn
