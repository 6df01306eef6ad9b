#pragma once

#include "mods/lang/index.h"

namespace attn {

/// Halves the scores at even distances and doubles those at odd ones.
///
///     t[i,j] = floor_mod(j - i, 2) == 0 ? s[i,j] / 2 : 2 * s[i,j]
///
///       keys j
///     i /2  2 /2  2
///        2 /2  2 /2
///       /2  2 /2  2
///
/// From the benchmark of flaxattention. Nobody trains with it: it is a mod that differs between
/// neighbours everywhere, so an index that is off by one shows at once. Both factors are powers of
/// two: no rounding hides it.
struct Checkerboard {
  template <class Score, class Index>
  ATTN_HOST_DEVICE Score operator()(Score s, Index, Index, Index q, Index kv) const {
    return attn::select(attn::floor_mod(kv - q, 2) == 0, s / 2, 2 * s);
  }
};

/// s / 2 where j - i is even, 2 s elsewhere.
inline Checkerboard checkerboard() { return {}; }

}  // namespace attn
