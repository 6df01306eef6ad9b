#include "masks/random_sparsity.h"

#include <gtest/gtest.h>

#include <cmath>

#include "masks/dense_construction.h"

namespace attn {
namespace {

TEST(RandomPairs, follows_the_numbers_of_its_seed) {
  const auto array = random_pairs(9, 7, 0.4, 5);
  EXPECT_EQ(
      first_difference(dense(array.view()), {2, 1, 1, 9, 7},
                       [](int, int, int i, int j) { return RandomPairs::uniform(5, i, j) < 0.4; }),
      "");
  EXPECT_EQ(first_wrong_box(dense(array.view()), {1, 1, 1, 9, 7}, Verdicts::exact), "");
}

TEST(RandomPairs, a_smaller_array_is_part_of_a_larger) {
  const auto large = random_pairs(8, 8, 0.5, 3), small = random_pairs(4, 6, 0.5, 3);
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 6; ++j) EXPECT_EQ(small.view()(i, j), large.view()(i, j));
}

TEST(RandomPairs, density) {
  const int side = 64;
  for (const double density : {0.0, 0.25, 1.0}) {
    const auto array = random_pairs(side, side, density, 1);
    double count = 0;
    for (int i = 0; i < side; ++i)
      for (int j = 0; j < side; ++j) count += array.view()(i, j);
    // Six standard deviations of a binomial.
    EXPECT_LE(std::abs(count - density * side * side),
              6 * std::sqrt(density * (1 - density) * side * side));
  }
}

TEST(RandomPairs, seeds_differ_and_neighbours_do_not_repeat) {
  EXPECT_NE(picture(dense(random_pairs(8, 8, 0.5, 1).view()), {1, 1, 1, 8, 8}),
            picture(dense(random_pairs(8, 8, 0.5, 2).view()), {1, 1, 1, 8, 8}));
  EXPECT_NE(RandomPairs::uniform(1, 2, 3), RandomPairs::uniform(1, 3, 2));
}

TEST(RandomPairs, refuses_numbers_out_of_range) {
  EXPECT_THROW(random_pairs(-1, 4, 0.5, 0), std::invalid_argument);
  EXPECT_THROW(random_pairs(4, 4, 1.5, 0), std::invalid_argument);
  EXPECT_THROW(random_pairs(4, 4, std::nan(""), 0), std::invalid_argument);
}

}  // namespace
}  // namespace attn
