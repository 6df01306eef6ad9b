#pragma once

#include <cstdint>

#include "masks/algebra.h"
#include "mods/arguments_check.h"

namespace attn {

/// A causal window, and the first few keys, which every later query keeps in sight.
///
///     attend(b, h, i, j) = j <= i  and  (j < sinks  or  i - j <= w)
///
/// streaming(2, 1):
///
///       keys j
///     i #.......
///       ##......
///       ###.....
///       ####....
///       ##.##...
///       ##..##..
///       ##...##.
///       ##....##
///
/// G. Xiao et al., "Efficient Streaming Language Models with Attention Sinks", ICLR 2024, section
/// 3.2. This is the mask; the sink that takes probability and gives no value is an argument of the
/// attention call.
///
/// Elsewhere: flaxattention tests j <= n_sink, so its n_sink is one less than `sinks` here.
struct Streaming : MaskBase {
  std::int32_t sinks;  ///< keys, from the first on, that stay in sight
  std::int32_t left;   ///< w

  template <class Index>
  ATTN_HOST_DEVICE auto operator()(Index, Index, Index q, Index kv) const {
    return kv <= q && (kv < sinks || q - kv <= left);
  }
  /// @throws std::invalid_argument if either is below 0.
  void check(const Sizes&) const {
    check_at_least("streaming", "sinks", sinks, 0);
    check_at_least("streaming", "left", left, 0);
  }
};

/// The first `sinks` keys and those at most `left` before the query.
/// @throws std::invalid_argument if either is below 0.
inline Streaming streaming(std::int32_t sinks, std::int32_t left) {
  const Streaming mask{{}, sinks, left};
  mask.check({});
  return mask;
}

}  // namespace attn
