#pragma once

#include <cstdint>

#include "mods/arguments_check.h"

namespace attn {

/// Attention on a graph: tokens are nodes, and a trained bias says how they are connected.
///
///     spatial    t[i,j] = s[i,j] + table[h, distance[b, i, j]]
///     edge       t[i,j] = s[i,j] + 1/N sum_n table[n, h, edge[b, i, j, n]]
///
/// distance: hops on a shortest path, with a number of its own for "not connected". edge: the kinds
/// of the N first edges on that path; a shorter path is filled up with a kind whose entries are 0.
/// The distances of the path 0 - 1 - 2:
///
///       keys j
///     i 012
///       101
///       210
///
/// C. Ying et al., "Do Transformers Really Perform Bad for Graph Representation?" (Graphormer),
/// 2021, sections 3.1.2 and 3.1.3.
///
/// Elsewhere: `generate_graphormer_spatial` and `_edge` (attention-gym).

/// The bias of the distance.
struct GraphormerSpatial {
  Captured<2> table;                   ///< [Hq or 1, distances]
  Captured<3, std::int32_t> distance;  ///< [B or 1, Sq, Skv]

  template <class Score, class Index>
  ATTN_HOST_DEVICE Score operator()(Score s, Index b, Index h, Index q, Index kv) const {
    return s + table(h, distance(b, q, kv));
  }
  /// @throws std::invalid_argument if a table does not cover the problem.
  void check(const Sizes& sizes) const {
    check_table("graphormer_spatial", "table", table, one_or("Hq", sizes.hq),
                at_least("distances", 1));
    check_table("graphormer_spatial", "distance", distance, one_or("B", sizes.b),
                at_least("Sq", sizes.sq), at_least("Skv", sizes.skv));
  }
};

/// The mean bias of the edges on the way.
struct GraphormerEdge {
  Captured<3> table;               ///< [N, Hq or 1, kinds]
  Captured<4, std::int32_t> edge;  ///< [B or 1, Sq, Skv, N]

  template <class Score, class Index>
  ATTN_HOST_DEVICE Score operator()(Score s, Index b, Index h, Index q, Index kv) const {
    const auto hops = static_cast<std::int32_t>(edge.tensor.extents[3]);
    Score sum(0);
    for (std::int32_t n = 0; n < hops; ++n) sum = sum + table(n, h, edge(b, q, kv, n));
    return s + sum / hops;
  }
  /// @throws std::invalid_argument if a table does not cover the problem.
  void check(const Sizes& sizes) const {
    const std::int64_t hops = edge.tensor.extents[3];
    check_table("graphormer_edge", "edge", edge, one_or("B", sizes.b), at_least("Sq", sizes.sq),
                at_least("Skv", sizes.skv), at_least("N", 1));
    check_table("graphormer_edge", "table", table, exactly("N", hops), one_or("Hq", sizes.hq),
                at_least("kinds", 1));
  }
};

/// The memory stays the caller's.
inline GraphormerSpatial graphormer_spatial(Captured<2> table, Captured<3, std::int32_t> distance) {
  table.name = "graphormer table";
  distance.name = "graphormer distance";
  return {table, distance};
}
/// The memory stays the caller's.
inline GraphormerEdge graphormer_edge(Captured<3> table, Captured<4, std::int32_t> edge) {
  table.name = "graphormer table";
  edge.name = "graphormer edge";
  return {table, edge};
}

}  // namespace attn
