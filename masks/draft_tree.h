#pragma once

#include <algorithm>
#include <cstdint>

#include "masks/algebra.h"
#include "mods/arguments_check.h"

namespace attn {

/// Verifying a tree of drafted tokens in one pass: a token sees the prefix and its own ancestors.
///
///     attend(b, h, i, j) = j < prefix  or  ancestor[i, j - prefix]
///
/// A root with two children, the first of which has one; prefix 2:
///
///       keys j
///     i ###...        root
///       ####..        its first child
///       ###.#.        its second child
///       ####.#        the child of the first
///
/// X. Miao et al., "SpecInfer", ASPLOS 2024, section 4.2 (tree attention).
///
/// Elsewhere: the JetSpec tree mask of attention-gym. Each token is its own ancestor.
struct DraftTree : MaskBase {
  std::int32_t prefix;         ///< keys that every token sees
  Captured<2, bool> ancestor;  ///< [at least Sq, at least Skv - prefix]

  template <class Index>
  ATTN_HOST_DEVICE auto operator()(Index, Index, Index q, Index kv) const {
    // Both sides of || run: in the prefix, column 0 is read and has no say.
    return kv < prefix || ancestor(q, attn::max(kv - prefix, 0));
  }
  /// @throws std::invalid_argument if the prefix is below 0 or the table too small.
  void check(const Sizes& sizes) const {
    check_at_least("draft_tree", "prefix", prefix, 0);
    check_table("draft_tree", "ancestor", ancestor, at_least("Sq", sizes.sq),
                at_least("max(1, Skv - prefix)", std::max(1, sizes.skv - prefix)));
  }
};

/// The memory stays the caller's. @throws std::invalid_argument if the prefix is below 0.
inline DraftTree draft_tree(std::int32_t prefix, Captured<2, bool> ancestor) {
  check_at_least("draft_tree", "prefix", prefix, 0);
  ancestor.name = "ancestor";
  return {{}, prefix, ancestor};
}

}  // namespace attn
