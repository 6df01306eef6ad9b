#pragma once

#include <cstdint>

#include "mods/arguments_check.h"

namespace attn {

/// A table whose last subscript mixes query and key.
///
///     t[i,j] = s[i,j] + table[b, h, i, (i + j) mod n]
///
/// The last subscript, n = 3:
///
///       keys j
///     i 01201
///       12012
///       20120
///
/// Nobody trains with it: neighbours in a row read neighbours in memory until they wrap, and many
/// pairs of a row share an entry, so a gradient that is scattered without adding up shows at once.
/// After `weird_bias` of PyTorch FlexAttention's tests.
struct MixedIndexBias {
  Captured<4> table;  ///< [B or 1, Hq or 1, Sq or 1, n]

  template <class Score, class Index>
  ATTN_HOST_DEVICE Score operator()(Score s, Index b, Index h, Index q, Index kv) const {
    const auto n = static_cast<std::int32_t>(table.tensor.extents[3]);
    return s + table(b, h, q, attn::floor_mod(q + kv, n));
  }
  /// @throws std::invalid_argument if the table does not broadcast to [B, Hq, Sq, n].
  void check(const Sizes& sizes) const {
    check_table("mixed_index_bias", "table", table, one_or("B", sizes.b), one_or("Hq", sizes.hq),
                one_or("Sq", sizes.sq), at_least("n", 1));
  }
};

/// The memory stays the caller's.
inline MixedIndexBias mixed_index_bias(Captured<4> table) {
  table.name = "mixed index table";
  return {table};
}

}  // namespace attn
