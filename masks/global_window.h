#pragma once

#include <algorithm>
#include <cstdint>

#include "masks/algebra.h"
#include "mods/arguments_check.h"

namespace attn {

/// A window, and a few tokens that see all and are seen by all.
///
///     attend(b, h, i, j) = |i - j| <= w  or  global[i]  or  global[j]
///
/// global_window(1, 1 0 0 0 0 1 0 0):
///
///       keys j
///     i ########
///       ###..#..
///       ####.#..
///       #.####..
///       #..###..
///       ########
///       #....###
///       #....###
///
/// I. Beltagy et al., "Longformer", 2020, section 3.1 (global attention); M. Zaheer et al., "Big
/// Bird", 2020, section 2, less its random keys, which are `|| dense(bits)`.
///
/// Elsewhere: `generate_global_sliding_window` (attention-gym); with `causal() &&` in
/// FlashAttention 4's tests.
struct GlobalWindow : MaskBase {
  std::int32_t reach;           ///< w
  Captured<1, bool> is_global;  ///< [at least max(Sq, Skv)]

  template <class Index>
  ATTN_HOST_DEVICE auto operator()(Index, Index, Index q, Index kv) const {
    return attn::abs(kv - q) <= reach || is_global(q) || is_global(kv);
  }
  /// @throws std::invalid_argument if the reach is below 0 or the table too short.
  void check(const Sizes& sizes) const {
    check_at_least("global_window", "reach", reach, 0);
    check_table("global_window", "is_global", is_global,
                at_least("max(Sq, Skv)", std::max(sizes.sq, sizes.skv)));
  }
};

/// One flag a position, for queries and keys. The memory stays the caller's.
/// @throws std::invalid_argument if `reach` is below 0.
inline GlobalWindow global_window(std::int32_t reach, Captured<1, bool> is_global) {
  check_at_least("global_window", "reach", reach, 0);
  is_global.name = "is_global";
  return {{}, reach, is_global};
}

}  // namespace attn
