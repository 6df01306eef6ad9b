#pragma once

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>

#include "mods/lang/index.h"

namespace attn {

/// The distance itself as a bias, without a table.
///
///     distance_bias(low, high)    t[i,j] = s[i,j] + clamp(i - j, low, high)
///     distance_bias()             t[i,j] = s[i,j] + (i - j)
///     absolute_distance()         t[i,j] = s[i,j] + |i - j|
///
/// The bias of distance_bias(-1, 2):
///
///       keys j
///     i  0 -1 -1 -1
///        1  0 -1 -1
///        2  1  0 -1
///        2  2  1  0
///
/// It favours far keys, which nobody wants: tests use it since every pair of a row differs. `Alibi`
/// is the useful kind, with a slope a head and the other sign.
///
/// Elsewhere: `rel_bias` is distance_bias() in PyTorch FlexAttention's tests and
/// absolute_distance() in FlashAttention 4's; the clamped form is from the latter.
struct DistanceBias {
  bool absolute = false;  ///< |i - j|; `low` and `high` then do not matter
  std::int32_t low = std::numeric_limits<std::int32_t>::min();   ///< the least bias
  std::int32_t high = std::numeric_limits<std::int32_t>::max();  ///< the greatest bias

  template <class Score, class Index>
  ATTN_HOST_DEVICE Score operator()(Score s, Index, Index, Index q, Index kv) const {
    const Index distance = q - kv;
    if (absolute) return s + attn::abs(distance);
    return s + attn::clamp(distance, low, high);
  }
  /// @throws std::invalid_argument if low is above high.
  void check(const Sizes&) const {
    if (low > high)
      throw std::invalid_argument("distance_bias: low = " + std::to_string(low) +
                                  ", expected at most high = " + std::to_string(high));
  }
};

/// The bias j - i.
inline DistanceBias distance_bias() { return {}; }
/// @throws std::invalid_argument if `low` is above `high`.
inline DistanceBias distance_bias(std::int32_t low, std::int32_t high) {
  const DistanceBias mod{false, low, high};
  mod.check({});
  return mod;
}
/// The bias |i - j|.
inline DistanceBias absolute_distance() {
  DistanceBias mod;
  mod.absolute = true;
  return mod;
}

}  // namespace attn
