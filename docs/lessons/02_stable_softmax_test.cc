#include "docs/lessons/02_stable_softmax.h"

#include <gtest/gtest.h>

#include "docs/lessons/01_three_passes.h"

namespace lesson {
namespace {

TEST(StableSoftmax, AgreesWithThreePasses) {
  for (std::uint32_t seed = 0; seed < 500; ++seed) {
    const Problem x = random_problem(seed, 1 + seed % 8);
    const Answer before = three_passes(x), now = stable_softmax(x);
    for (std::size_t d = 0; d < now.o.size(); ++d)
      EXPECT_LE(std::abs(now.o[d] - before.o[d]), rounding_bound(x)) << "seed " << seed;
    EXPECT_LE(std::abs(now.lse - before.lse), rounding_bound(x)) << "seed " << seed;
  }
}

// Where lesson 1 gives NaN: the same two keys, their scores too large for an exponential.
TEST(StableSoftmax, LargeScoresAreHarmless) {
  const Problem x{{1}, {{710}, {709}}, {{1}, {2}}, 1};
  const Problem shifted{{1}, {{1}, {0}}, {{1}, {2}}, 1};
  EXPECT_EQ(stable_softmax(x).o[0], stable_softmax(shifted).o[0]);  // the same differences
  EXPECT_LE(std::abs(stable_softmax(x).lse - (709 + stable_softmax(shifted).lse)),
            rounding_bound(x));
}

// The exercise: very negative scores need it as much as very positive ones.
TEST(StableSoftmax, SmallScoresAreHarmless) {
  const Problem x{{1}, {{-800}, {-800}}, {{1}, {3}}, 1};
  EXPECT_TRUE(std::isnan(three_passes(x).o[0]));  // 0 / 0
  EXPECT_EQ(stable_softmax(x).o[0], 2);
}

}  // namespace
}  // namespace lesson
