#pragma once

#include "mods/lang/index.h"

/// The mod of docs/how_to_mod.md.
namespace how_to {

//! [mod]
/// The further away a key is, the less it counts, by the logarithm of the distance.
///
///     t[i,j] = s[i,j] - rate * log(1 + |i - j|)
///
/// which multiplies the weight of a key by (1 + |i - j|)^-rate.
struct Recency {
  float rate = 1;  ///< of the logarithm

  template <class Score, class Index>
  ATTN_HOST_DEVICE Score operator()(Score s, Index, Index, Index q, Index kv) const {
    return s - rate * attn::log(1.0f + attn::abs(q - kv));
  }
};
//! [mod]

}  // namespace how_to
