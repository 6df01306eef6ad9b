#include "mods/checkerboard.h"

#include <gtest/gtest.h>

#include "mods/dense_construction.h"

namespace attn {
namespace {

/// Whether j - i is even, told without a remainder of a negative number.
double factor(int i, int j) { return (i + j) % 2 == 0 ? 0.5 : 2.0; }

TEST(Checkerboard, halves_even_distances_and_doubles_odd_ones) {
  for (const Sizes& sizes :
       {Sizes{2, 2, 1, 4, 7}, Sizes{1, 1, 1, 7, 4}, Sizes{1, 1, 1, 1, 6}, Sizes{1, 1, 1, 6, 1}})
    EXPECT_EQ(first_difference(
                  checkerboard(), sizes,
                  [](double s, int, int, int i, int j) { return s * factor(i, j); },
                  [](double, int, int, int i, int j) { return factor(i, j); }),
              "");
}

TEST(Checkerboard, rounds_nothing) {
  SinglePrecisionEnv env{{1, 1, 1, 2, 2}};
  const float s = 0.1f;
  EXPECT_EQ(modified(checkerboard(), env, s, 0, 0, 1, 0), 2 * s);
  EXPECT_EQ(modified(checkerboard(), env, s, 0, 0, 1, 1), s / 2);
}

}  // namespace
}  // namespace attn
