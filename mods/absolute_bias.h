#pragma once

#include "mods/broadcast.h"

namespace attn {

/// A bias for each pair, or for each head, query or key alone.
///
///     t[i,j] = s[i,j] + table[b, h, i, j]
///
/// Shapes of rank 1 to 4 align to the right and an axis of extent 1 broadcasts:
///
///     [Sq, Skv]           one bias for all heads (PyTorch `attn_mask` of floats, ONNX)
///     [B, Hq, Sq, Skv]    one a head; [B, 1, Sq, Skv] one a batch entry
///     [Hq, 1, 1]          a head bias              s + buf[h]
///     [B, 1, 1, 1]        a batch bias             s + buf[b]
///     [Sq, 1], [Skv]      a bias a query, or a key (a global-token bias)
///
/// An entry of -inf masks its pair. The gradient of an entry adds up all the pairs that read it.
struct AbsoluteBias {
  Captured<4> table;  ///< [B or 1, Hq or 1, Sq or 1, Skv or 1]

  template <class Score, class Index>
  ATTN_HOST_DEVICE Score operator()(Score s, Index b, Index h, Index q, Index kv) const {
    return s + table(b, h, q, kv);
  }
  /// @throws std::invalid_argument if the table does not broadcast to [B, Hq, Sq, Skv].
  void check(const Sizes& sizes) const { check_broadcast(table, sizes); }
};

/// The memory stays the caller's.
template <int Rank>
AbsoluteBias absolute_bias(const Captured<Rank>& table) {
  return {broadcast_table(table, "absolute bias")};
}
/// The bias read from `table`; the memory stays the caller's.
template <int Rank>
AbsoluteBias absolute_bias(const Tensor<float, Rank>& table) {
  return absolute_bias(Captured<Rank>(table));
}
template <int Rank>
AbsoluteBias absolute_bias(Tensor<float, Rank>&&) = delete;  // it would dangle

}  // namespace attn
