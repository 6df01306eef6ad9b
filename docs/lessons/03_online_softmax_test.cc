#include "docs/lessons/03_online_softmax.h"

#include <gtest/gtest.h>

#include "docs/lessons/02_stable_softmax.h"

namespace lesson {
namespace {

TEST(OnlineSoftmax, AgreesWithTheStableSoftmax) {
  for (std::uint32_t seed = 0; seed < 500; ++seed) {
    const Problem x = random_problem(seed, 1 + seed % 30);
    const Answer before = stable_softmax(x), now = online_softmax(x);
    for (std::size_t d = 0; d < now.o.size(); ++d)
      EXPECT_LE(std::abs(now.o[d] - before.o[d]), rounding_bound(x)) << "seed " << seed;
    EXPECT_LE(std::abs(now.lse - before.lse), rounding_bound(x)) << "seed " << seed;
  }
}

// Scores that rise rescale at every key, scores that fall never do; the answer is the same.
TEST(OnlineSoftmax, TheOrderOfKeysDoesNotMatter) {
  Problem x = random_problem(7);
  const Answer forward = online_softmax(x);
  std::reverse(x.k.begin(), x.k.end());
  std::reverse(x.v.begin(), x.v.end());
  const Answer backward = online_softmax(x);
  for (std::size_t d = 0; d < forward.o.size(); ++d)
    EXPECT_LE(std::abs(forward.o[d] - backward.o[d]), rounding_bound(x));
}

// The exercise: what is `rescale` at the first key, and why is there no NaN?
TEST(OnlineSoftmax, TheFirstKeyRescalesNothing) {
  const Problem x{{1}, {{5}}, {{3}}, 1};
  EXPECT_EQ(online_softmax(x).o[0], 3);
  EXPECT_EQ(online_softmax(x).lse, 5);
}

}  // namespace
}  // namespace lesson
