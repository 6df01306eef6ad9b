#pragma once

#include <cstdint>

#include "masks/algebra.h"
#include "mods/arguments_check.h"

namespace attn {

/// Training a drafter: groups of n queries, each causal in its own group of keys, all after a
/// prefix that everybody sees.
///
///     attend(b, h, i, j) = j < p
///                          or  floor(i / n) == floor((j - p) / n)  and  (j - p) mod n <= i mod n
///
/// draft_training(2, 3):
///
///       keys j
///     i ###.....
///       ####....
///       #####...
///       ##...#..
///       ##...##.
///       ##...###
///
/// Elsewhere: the JetSpec training mask of attention-gym. Without the prefix it is
/// `chunked_causal(n)`.
struct DraftTraining : MaskBase {
  std::int32_t prefix;  ///< p
  std::int32_t group;   ///< n

  template <class Index>
  ATTN_HOST_DEVICE auto operator()(Index, Index, Index q, Index kv) const {
    const Index key = kv - prefix;
    const auto same_group = attn::floor_div(q, group) == attn::floor_div(key, group);
    return kv < prefix || (same_group && attn::floor_mod(key, group) <= attn::floor_mod(q, group));
  }
  /// @throws std::invalid_argument if the prefix is below 0 or the group below 1.
  void check(const Sizes&) const {
    check_at_least("draft_training", "prefix", prefix, 0);
    check_at_least("draft_training", "group", group, 1);
  }
};

/// @throws std::invalid_argument if the prefix is below 0 or the group below 1.
inline DraftTraining draft_training(std::int32_t prefix, std::int32_t group) {
  const DraftTraining mask{{}, prefix, group};
  mask.check({});
  return mask;
}

}  // namespace attn
