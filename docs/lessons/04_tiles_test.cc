#include "docs/lessons/04_tiles.h"

#include <gtest/gtest.h>

#include "docs/lessons/03_online_softmax.h"

namespace lesson {
namespace {

/// Queries for one problem, its own among them.
std::vector<Row> queries_for(const Problem& x, std::uint32_t seed, std::size_t count) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::vector<Row> queries(count, Row(x.q.size()));
  for (Row& q : queries)
    for (double& value : q) value = normal(random);
  queries[0] = x.q;
  return queries;
}

TEST(Tiles, AgreesWithTheOnlineSoftmax) {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    Problem x = random_problem(seed, 1 + seed % 30);
    const auto queries = queries_for(x, seed, 1 + seed % 5);
    const TiledAnswers now = tiled(queries, x, 1 + seed % 3, 1 + seed % 9);
    ASSERT_EQ(now.rows.size(), queries.size());
    for (std::size_t i = 0; i < queries.size(); ++i) {
      x.q = queries[i];
      const Answer before = online_softmax(x);
      for (std::size_t d = 0; d < before.o.size(); ++d)
        EXPECT_LE(std::abs(now.rows[i].o[d] - before.o[d]), rounding_bound(x)) << "seed " << seed;
      EXPECT_LE(std::abs(now.rows[i].lse - before.lse), rounding_bound(x)) << "seed " << seed;
    }
  }
}

// Tiles of one key are lesson 3, to the last bit.
TEST(Tiles, OfOneKeyAreTheOnlineSoftmax) {
  for (std::uint32_t seed = 0; seed < 100; ++seed) {
    const Problem x = random_problem(seed, 1 + seed % 30);
    const Answer before = online_softmax(x), now = tiled({x.q}, x, 1, 1).rows[0];
    EXPECT_EQ(now.o, before.o);
    EXPECT_EQ(now.lse, before.lse);
  }
}

// Five equal scores in tiles of two: the last tile holds one key.
TEST(Tiles, TheTailCounts) {
  const Problem x{{0}, {{1}, {2}, {3}, {4}, {5}}, {{1}, {3}, {5}, {7}, {9}}, 1};
  const Answer answer = tiled({x.q}, x, 1, 2).rows[0];
  EXPECT_EQ(answer.o[0], 5);
}

// The exercise: who pays for the keys?
TEST(Tiles, ABlockOfQueriesFetchesEachKeyOnce) {
  const Problem x = random_problem(3);
  const auto queries = queries_for(x, 3, 12);
  EXPECT_EQ(tiled(queries, x, 1, 4).keys_fetched, 12 * x.k.size());
  EXPECT_EQ(tiled(queries, x, 4, 4).keys_fetched, 3 * x.k.size());
  EXPECT_EQ(tiled(queries, x, 12, 4).keys_fetched, x.k.size());
}

}  // namespace
}  // namespace lesson
