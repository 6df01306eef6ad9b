#include "mods/sandwich.h"

#include <gtest/gtest.h>

#include "mods/check.h"
#include "mods/dense_construction.h"

namespace attn {
namespace {

const auto one = [](double, int, int, int, int) { return 1.0; };
const Sizes shapes[] = {{2, 2, 1, 4, 6}, {2, 2, 2, 6, 3}, {1, 2, 1, 1, 5}, {1, 2, 1, 5, 1}};

TEST(Sandwich, sums_cosines) {
  Tensor<float, 1> frequency({3});
  frequency.values() = {1, 0.5f, 0.125f};
  for (const Sizes& sizes : shapes)
    EXPECT_EQ(first_difference(
                  sandwich(frequency), sizes,
                  [&](double s, int, int h, int i, int j) {
                    double sum = 0;
                    for (int n = 0; n < 3; ++n) sum += std::cos((i - j) * 1.0 * frequency(n));
                    return s + sum * sizes.hq / (8.0 * (h + 1));
                  },
                  one),
              "");
}

TEST(Sandwich, is_largest_at_distance_0_and_weakest_in_the_last_head) {
  Tensor<float, 1> frequency({2});
  frequency.values() = {1, 0.25f};
  ExactEnv env{{1, 4, 1, 8, 8}};
  EXPECT_EQ(modified(sandwich(frequency), env, 0.0, 0, 0, 5, 5), 2 * 4 / 8.0);
  EXPECT_EQ(modified(sandwich(frequency), env, 0.0, 0, 3, 5, 5), 2 / 8.0);
  EXPECT_LE(modified(sandwich(frequency), env, 0.0, 0, 0, 5, 3), 2 * 4 / 8.0);
}

}  // namespace
}  // namespace attn
