#include "docs/lessons/10_rounding.h"

#include <gtest/gtest.h>

#include "docs/lessons/08_split_kv.h"
#include "docs/lessons/warp_fixtures.h"
#include "masks/full.h"
#include "mods/identity.h"

namespace lesson {
namespace {

/// Random numbers that fp16 holds.
WarpProblem random_warp_problem(std::uint32_t seed, std::size_t keys, double size = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  const auto rows = [&](std::size_t count, double stretch) {
    std::vector<Row> all(count, Row(16));
    for (Row& row : all)
      for (double& value : row)
        value =
            attn::to_float(attn::from_float<half>(static_cast<float>(stretch * normal(random))));
    return all;
  };
  WarpProblem problem;
  problem.queries = rows(16, size);
  problem.x.k = rows(keys, 1);
  problem.x.v = rows(keys, 1);
  problem.x.scale = 0.25;
  return problem;
}

/// The largest error over bound of the kernel, against the exact answers of lesson 8.
struct Worst {
  double o = 0, certain = 0, lse = 0, error = 0;  ///< of O, of O by the certain bound, of LSE, of O
};
Worst worst_of(const WarpProblem& given, const std::vector<Answer>& got) {
  Worst worst;
  Problem x = given.x;
  const int keys = static_cast<int>(x.k.size());
  const Blocks blocks = blocks_of(attn::full(), 1, keys, 16);
  for (std::size_t i = 0; i < 16; ++i) {
    x.q = given.queries[i];
    const Answer exact = split_kv(x, 0, attn::identity(), attn::full(), blocks, 3);
    const RoundingBound bound = rounding_of(x, exact, (keys + 15) / 16);
    for (std::size_t d = 0; d < 16; ++d) {
      const double error = std::abs(got[i].o[d] - exact.o[d]);
      worst.o = std::max(worst.o, error / bound.likely[d]);
      worst.certain = std::max(worst.certain, error / bound.certain[d]);
      worst.error = std::max(worst.error, error);
    }
    worst.lse = std::max(worst.lse, std::abs(got[i].lse - exact.lse) / bound.lse);
  }
  return worst;
}

// Lesson 9's kernel on any input, held against lesson 8.
TEST(Rounding, TheKernelStaysInItsBound) {
  for (std::uint32_t seed = 0; seed < 80; ++seed) {
    const WarpProblem problem = random_warp_problem(seed, 1 + seed * 7 % 90, 1 + seed % 4);
    const Worst worst = worst_of(problem, run_warp(problem, seed));
    EXPECT_LE(worst.o, 1) << "O, seed " << seed;
    EXPECT_LE(worst.certain, 1) << "O, seed " << seed;
    EXPECT_LE(worst.lse, 1) << "LSE, seed " << seed;
  }
}

// One key too many, all zeros, as a kernel counts that forgets where the keys end: in 200 keys it
// moves O by less than 0.01, a usual tolerance, and both bounds see it.
TEST(Rounding, ABoundSeesWhatAToleranceDoesNot) {
  const WarpProblem problem = random_warp_problem(5, 200);
  EXPECT_LE(worst_of(problem, run_warp(problem)).o, 1);
  WarpProblem longer = problem;
  longer.x.k.push_back(Row(16));
  longer.x.v.push_back(Row(16));
  const Worst worst = worst_of(problem, run_warp(longer));
  EXPECT_LE(worst.error, 0.01);
  EXPECT_GT(worst.o, 1);
  EXPECT_GT(worst.lse, 100);
}

// The exercise: where does "likely" fail? Weights that are all the same round all the same way, so
// their errors add up and do not cancel. e^-1.25 lies almost in the middle of two numbers of fp16.
TEST(Rounding, EqualWeightsRoundTogether) {
  WarpProblem problem = random_warp_problem(1, 64);
  for (Row& q : problem.queries) q = Row(16, 1);
  for (std::size_t j = 0; j < 64; ++j) {
    problem.x.k[j] = Row(16, j == 0 ? 0.3125 : 0);  // scores 1.25, and 0 for 63 keys
    problem.x.v[j] = Row(16, j == 0 ? 0 : 1);
  }
  const Worst worst = worst_of(problem, run_warp(problem));
  EXPECT_GT(worst.o, 1);
  EXPECT_LE(worst.certain, 1);
}

}  // namespace
}  // namespace lesson
