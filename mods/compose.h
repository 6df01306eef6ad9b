#pragma once

#include "mods/check.h"
#include "mods/lang/call.h"

namespace attn {

/// One score mod after another.
///
///     t = second(first(s, b, h, i, j), b, h, i, j)
///
/// `then(alibi(slopes), soft_cap(30))` caps the biased score; `then(soft_cap(30), alibi(slopes))`
/// biases the capped one. Parts may be any mods, plain functions of float and int included. What
/// counts as masked is the last result: a cap after a part that gave -inf brings the pair back.
template <class First, class Second>
struct Composition {
  First first;    ///< on the score
  Second second;  ///< on what `first` gives

  template <class Score, class Env>
  ATTN_HOST_DEVICE Score operator()(Score s, Index<Env> b, Index<Env> h, Index<Env> q,
                                    Index<Env> kv) const {
    const Score t(call_mod(first, s, b, h, q, kv));
    return Score(call_mod(second, t, b, h, q, kv));
  }
  void check(const Sizes& sizes) const {  /// both parts
    check_mod(first, sizes);
    check_mod(second, sizes);
  }
};

/// `first`, then `second` on its result.
template <class First, class Second>
Composition<First, Second> then(const First& first, const Second& second) {
  return {first, second};
}
/// then(a, b, c, ...) applies a first and the last one last.
template <class First, class Second, class Third, class... Rest>
auto then(const First& first, const Second& second, const Third& third, const Rest&... rest) {
  return then(then(first, second), third, rest...);
}

}  // namespace attn
