#pragma once

#include "docs/lessons/04_tiles.h"
#include "mods/lang/call.h"
#include "mods/lang/environments.h"

namespace lesson {

/// t = cap * tanh(s / cap) + slope[h] * (j - i): a mod as a user writes it, once, for every number
/// type.
struct CappedAlibi {
  attn::Captured<1> slope;  ///< [Hq]
  float cap = 30;           ///< no |t| without the bias is larger

  template <class Score, class Index>
  ATTN_HOST_DEVICE Score operator()(Score s, Index, Index h, Index q, Index kv) const {
    return cap * attn::tanh(s / cap) + slope(h) * (kv - q);
  }
};

/// Runs a functor of the pairs of head 0 on the numbers of an environment.
template <class Env>
struct Asked {
  Env env;  ///< its indices point here

  explicit Asked(int keys = 1) { env.sizes = {.b = 1, .hq = 1, .hkv = 1, .sq = keys, .skv = keys}; }
  attn::Index<Env> index(typename Env::Int value) { return {value, &env}; }  ///< b, h, i or j

  template <class Mod>
  typename Env::Score mod(const Mod& f, typename Env::Score s, typename Env::Int i,
                          typename Env::Int j) {  /// t of a pair, or of a box
    return attn::call_mod(f, s, index(0), index(0), index(i), index(j));
  }
  template <class Mask>
  auto mask(const Mask& f, typename Env::Int i, typename Env::Int j) {  /// of a box, a Maybe
    return attn::call_mask(f, index(0), index(0), index(i), index(j));
  }
};

using OnDoubles = Asked<attn::ExactEnv>;  ///< the value: the reference
using OnDuals = Asked<attn::DualEnv>;     ///< value and derivative: lesson 6
using OnRanges = Asked<attn::RangeEnv>;   ///< a bound for a whole box of pairs: lesson 7

/// The five statements of lesson 3, for a key of (modified) score `t` and value `v`.
inline void add_key(Running& r, double t, const Row& v) {
  const double larger = std::max(r.m, t);
  const double rescale = std::exp(r.m - larger);
  const double w = std::exp(t - larger);
  r.l = r.l * rescale + w;
  for (std::size_t d = 0; d < v.size(); ++d) r.o[d] = r.o[d] * rescale + w * v[d];
  r.m = larger;
}

/// O and LSE of what was seen. No key at all: O = 0, LSE = -inf, and never 0 / 0.
inline Answer finish(Running r) {
  if (r.l == 0) return {r.o, r.m};
  for (double& value : r.o) value /= r.l;
  return {r.o, r.m + std::log(r.l)};
}

/// Lesson 3 for query `i`, with a mod and a mask between the score and the softmax.
template <class Mod, class Mask>
Answer attention(const Problem& x, int i, const Mod& mod, const Mask& mask) {
  OnDoubles asked(static_cast<int>(x.k.size()));
  Running r{.o = Row(x.v[0].size())};
  for (int j = 0; j < static_cast<int>(x.k.size()); ++j) {
    if (!asked.mask(mask, i, j)) continue;
    add_key(r, asked.mod(mod, score(x, j), i, j), x.v[j]);
  }
  return finish(r);
}

}  // namespace lesson
