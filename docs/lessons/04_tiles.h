#pragma once

#include <algorithm>
#include <limits>

#include "docs/lessons/problem.h"

namespace lesson {

/// What lesson 3 keeps of a row: right for the keys seen so far.
struct Running {
  double m = -std::numeric_limits<double>::infinity();  ///< the running maximum
  double l = 0;                                         ///< the sum of exp(score - m)
  Row o;                                                ///< [Dv]
};

/// The five statements of lesson 3 for the keys first to last - 1 at once: one rescale a tile.
inline void add_tile(Running& r, const Row& q, const Problem& x, std::size_t first,
                     std::size_t last) {
  // the scores of the tile, and the largest of them and of all before
  Row s;
  double larger = r.m;
  for (std::size_t j = first; j < last; ++j) {
    s.push_back(score(q, x, j));
    larger = std::max(larger, s.back());
  }
  const double rescale = std::exp(r.m - larger);
  r.l *= rescale;
  for (double& value : r.o) value *= rescale;
  for (std::size_t j = first; j < last; ++j) {
    const double w = std::exp(s[j - first] - larger);
    r.l += w;
    for (std::size_t d = 0; d < r.o.size(); ++d) r.o[d] += w * x.v[j][d];
  }
  r.m = larger;
}

/// The answers of many queries, and how many keys were fetched for them from slow memory.
struct TiledAnswers {
  std::vector<Answer> rows;      ///< one a query
  std::size_t keys_fetched = 0;  ///< rows of K that were read
};

/// FlashAttention-2 (Dao 2023, algorithm 1): blocks of queries outside, tiles of keys inside. The
/// problem's own query is not used.
inline TiledAnswers tiled(const std::vector<Row>& queries, const Problem& x, std::size_t block_q,
                          std::size_t block_kv) {
  const std::size_t keys = x.k.size();
  TiledAnswers answers;
  for (std::size_t row = 0; row < queries.size(); row += block_q) {
    const std::size_t rows = std::min(block_q, queries.size() - row);
    std::vector<Running> running(rows, Running{.o = Row(x.v[0].size())});

    for (std::size_t first = 0; first < keys; first += block_kv) {
      const std::size_t last = std::min(first + block_kv, keys);  // the last tile is shorter
      answers.keys_fetched += last - first;                       // once for all rows of the block
      for (std::size_t r = 0; r < rows; ++r) add_tile(running[r], queries[row + r], x, first, last);
    }
    for (Running& r : running) {
      for (double& value : r.o) value /= r.l;
      answers.rows.push_back({r.o, r.m + std::log(r.l)});
    }
  }
  return answers;
}

}  // namespace lesson
