#pragma once

#include <cstdint>

#include "masks/algebra.h"
#include "mods/arguments_check.h"

namespace attn {

/// Each key decides by a captured threshold whether it is seen at all.
///
///     attend(b, h, i, j) = j >= threshold[j]
///
/// index_stress(0 5 2 9 1):
///
///       keys j
///     i #.#.#
///       #.#.#
///       #.#.#
///
/// Nobody trains with it: a kernel that reads the table at a padded key, or one key off, answers
/// differently or touches memory that is not its own. The mask `ima` of FlashAttention 4's tests.
struct IndexStress : MaskBase {
  Captured<1, std::int32_t> threshold;  ///< [at least Skv]

  template <class Index>
  ATTN_HOST_DEVICE auto operator()(Index, Index, Index, Index kv) const {
    return kv >= threshold(kv);
  }
  /// @throws std::invalid_argument if the table does not cover the keys.
  void check(const Sizes& sizes) const {
    check_table("index_stress", "threshold", threshold, at_least("Skv", sizes.skv));
  }
};

/// The memory stays the caller's.
inline IndexStress index_stress(Captured<1, std::int32_t> threshold) {
  threshold.name = "threshold";
  return {{}, threshold};
}

}  // namespace attn
