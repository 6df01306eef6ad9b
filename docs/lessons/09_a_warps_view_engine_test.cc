#include <gtest/gtest.h>

#include "docs/lessons/04_tiles.h"
#include "docs/lessons/warp_fixtures.h"

namespace lesson {
namespace {

/// Rows of 16 numbers from `draw`.
template <class Draw>
std::vector<Row> rows_of(std::size_t count, Draw draw) {
  std::vector<Row> rows(count, Row(16));
  for (Row& row : rows)
    for (double& value : row) value = draw();
  return rows;
}

void expect_equals_lesson_4(const WarpProblem& problem, std::uint64_t schedule) {
  const auto now = run_warp(problem, schedule);
  const auto before = tiled(problem.queries, problem.x, 16, 16).rows;
  for (std::size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(now[i].o, before[i].o) << "query " << i;
    EXPECT_EQ(now[i].lse, before[i].lse) << "query " << i;
  }
}

// Inputs whose answer no rounding can move. Keys of +-1 all differ, so with q = 64 k the best score
// is 16 * 64 and every other at least 128 below: its weight, e^-128, is nothing in fp32 and in
// fp64. O is a row of V then, and LSE the score.
TEST(AWarpsView, OneHotRowsAreExact) {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    const std::size_t keys = 1 + random() % 50;
    WarpProblem problem;
    problem.x.k = rows_of(keys, [&] { return random() % 2 ? 1.0 : -1.0; });
    problem.x.v = rows_of(keys, [&] { return 1.0 + random() % 100; });
    for (std::size_t j = 0; j < keys; ++j)  // the key's number, in signs
      for (std::size_t d = 0; d < 6; ++d) problem.x.k[j][d] = j >> d & 1 ? 1 : -1;
    for (int i = 0; i < 16; ++i) {
      problem.queries.push_back(problem.x.k[random() % keys]);
      for (double& value : problem.queries.back()) value *= 64;
    }
    expect_equals_lesson_4(problem, seed);
  }
}

// Equal scores, 2^n keys, whole values: the mean is exact. LSE = n log 2 is a product of fp32's.
TEST(AWarpsView, MeansOfWholeNumbersAreExact) {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    const int n = static_cast<int>(random() % 7);
    const std::size_t keys = std::size_t{1} << n;
    WarpProblem problem;
    problem.queries = rows_of(16, [] { return 0.0; });
    problem.x.k = rows_of(keys, [&] { return 1.0 + random() % 9; });
    problem.x.v = rows_of(keys, [&] { return 1.0 + random() % 100; });
    const auto now = run_warp(problem, seed);
    const auto before = tiled(problem.queries, problem.x, 16, 16).rows;
    for (std::size_t i = 0; i < 16; ++i) {
      EXPECT_EQ(now[i].o, before[i].o) << "query " << i;
      EXPECT_EQ(now[i].lse, static_cast<float>(n) * 0.693147181f) << "query " << i;
    }
  }
}

// The exercise: which lane holds the accumulator of query 11, column 5? Column 5 is 2 t + 1 with
// t = 2; row 11 is g + 8 with g = 3, so element 3 of lane 4 * 3 + 2. Asked of mma itself: A has a
// one in row 11, column 0, and B a one in row 0, column 5.
ATTN_KERNEL one_product(std::uint32_t* owner) {
  using namespace attn::simt;
  const lane<std::uint32_t> one = pack2<half>(1.0f, 0.0f), none = 0u;
  const Fragment a = {none, attn::select(lane_id() == 12, one, none), none, none};
  const lane<std::uint32_t> b = attn::select(lane_id() == 20, one, none);
  lane<float> d[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  mma_m16n8k16<half>(d, a, b, none);
  for (int e = 0; e < 4; ++e) {
    const std::uint32_t lanes = ballot(d[e] == 1.0f);
    stg(owner, e, lanes, lane_id() == 0);
  }
}
TEST(AWarpsView, WhoOwnsWhat) {
  attn::simt::DeviceBuffer<std::uint32_t> owner(4);
  attn::simt::launch({}, 32, 0, {}, one_product, owner.data());
  for (int e = 0; e < 4; ++e) EXPECT_EQ(owner[e], e == 3 ? 1u << 14 : 0u);
}

}  // namespace
}  // namespace lesson
