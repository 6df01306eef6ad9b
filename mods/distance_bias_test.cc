#include "mods/distance_bias.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "mods/check.h"
#include "mods/dense_construction.h"

namespace attn {
namespace {

const auto one = [](double, int, int, int, int) { return 1.0; };
const Sizes shapes[] = {{2, 2, 1, 4, 6}, {2, 2, 2, 6, 3}, {1, 2, 1, 1, 5}, {1, 2, 1, 5, 1}};

TEST(DistanceBias, signed_absolute_and_clamped) {
  for (const Sizes& sizes : shapes) {
    EXPECT_EQ(first_difference(
                  distance_bias(), sizes,
                  [](double s, int, int, int i, int j) { return s + (i - j); }, one),
              "");
    EXPECT_EQ(first_difference(
                  absolute_distance(), sizes,
                  [](double s, int, int, int i, int j) { return s + std::abs(i - j); }, one),
              "");
    EXPECT_EQ(first_difference(
                  distance_bias(-1, 2), sizes,
                  [](double s, int, int, int i, int j) {
                    const int d = i - j;
                    return s + (d < -1 ? -1 : d > 2 ? 2 : d);
                  },
                  one),
              "");
  }
}

TEST(DistanceBias, looks_like_its_picture) {
  const int rows[4][4] = {{0, -1, -1, -1}, {1, 0, -1, -1}, {2, 1, 0, -1}, {2, 2, 1, 0}};
  ExactEnv env{{1, 1, 1, 4, 4}};
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j)
      EXPECT_EQ(modified(distance_bias(-1, 2), env, 0.0, 0, 0, i, j), rows[i][j]);
}

TEST(DistanceBias, refuses_bounds_in_the_wrong_order) {
  EXPECT_THROW(distance_bias(2, 1), std::invalid_argument);
}

}  // namespace
}  // namespace attn
