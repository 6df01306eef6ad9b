#pragma once

#include "mods/broadcast.h"

namespace attn {

/// A factor for each head, query, key or pair.
///
///     t[i,j] = s[i,j] * table[b, h, i, j]
///
/// Shapes of rank 1 to 4 align to the right and an axis of extent 1 broadcasts:
///
///     [1]             a learned temperature     s * t[0]
///     [Hq, 1, 1]      a factor a head           s * buf[h]   (`head_offset` of FlexAttention)
///     [Sq, 1]         a factor a query          s * buf[q]   (`multiplicative` there)
///
/// The gradient of an entry adds up s[i,j] times the score's gradient over the pairs that read it.
struct Multiplier {
  Captured<4> table;  ///< [B or 1, Hq or 1, Sq or 1, Skv or 1]

  template <class Score, class Index>
  ATTN_HOST_DEVICE Score operator()(Score s, Index b, Index h, Index q, Index kv) const {
    return s * table(b, h, q, kv);
  }
  /// @throws std::invalid_argument if the table does not broadcast to [B, Hq, Sq, Skv].
  void check(const Sizes& sizes) const { check_broadcast(table, sizes); }
};

/// The memory stays the caller's.
template <int Rank>
Multiplier multiplier(const Captured<Rank>& table) {
  return {broadcast_table(table, "multiplier")};
}
/// The factor read from `table`; the memory stays the caller's.
template <int Rank>
Multiplier multiplier(const Tensor<float, Rank>& table) {
  return multiplier(Captured<Rank>(table));
}
template <int Rank>
Multiplier multiplier(Tensor<float, Rank>&&) = delete;  // it would dangle

}  // namespace attn
