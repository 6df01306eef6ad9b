#pragma once

#include <attn/mods/lang/captured.h>
#include <attn/mods/lang/dual.h>
#include <attn/mods/lang/number.h>

/// Right: 30 tanh(s / 30) + slope[h] (j - i).
struct CappedAlibi {
  attn::Captured<1> slope;  ///< [Hq]

  template <class Score, class Index>
  ATTN_HOST_DEVICE Score operator()(Score s, Index, Index h, Index q, Index kv) const {
    return 30 * attn::tanh(s / 30) + slope(h) * (kv - q);
  }
};

//! [wrong]
/// Wrong: its derivative is written by hand, and a square was forgotten. Kernel, reference and
/// oracle all believe it, so that no comparison among them could find it.
struct WrongDerivative {
  template <class Score, class Index>
  ATTN_HOST_DEVICE Score operator()(Score s, Index, Index, Index, Index) const {
    return 30 * attn::tanh(s / 30);
  }
  template <class T, class Index>
  ATTN_HOST_DEVICE attn::Dual<T> operator()(attn::Dual<T> s, Index, Index, Index, Index) const {
    const T t = T(attn::tanh(s.v / 30));
    return {T(30 * t), T((1 - t) * s.d)};
  }
};
//! [wrong]
