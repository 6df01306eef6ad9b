#include "mods/activation.h"

#include <gtest/gtest.h>

#include "mods/check.h"
#include "mods/dense_construction.h"
#include "mods/lang/storage.h"

namespace attn {
namespace {

const Sizes shapes[] = {{2, 2, 1, 4, 6}, {2, 2, 2, 6, 3}, {1, 2, 1, 1, 5}, {1, 2, 1, 5, 1}};

TEST(Activation, sigmoid) {
  // |derivative| <= 1, from a handful of rounded terms of that size.
  const double slack = 16 * unit_roundoff(DType::f64);
  const auto g = [](double s) { return 1.0 / (1.0 + std::exp(-s)); };
  const float n = 0.125f;
  for (const Sizes& sizes : shapes)
    EXPECT_EQ(
        first_difference(
            activation(SigmoidOfScore{}, n), sizes,
            [&](double s, int, int, int, int) { return std::log(g(s) + n); },
            [&](double s, int, int, int, int) { return g(s) * (1 - g(s)) / (g(s) + n); }, slack),
        "");
}

TEST(Activation, relu_masks_where_nothing_is_left) {
  ExactEnv env{{1, 1, 1, 1, 1}};
  EXPECT_EQ(modified(activation(Relu{}, 0), env, -2.0, 0, 0, 0, 0), -infinity);
  EXPECT_EQ(modified(activation(Relu{}, 0), env, 1.0, 0, 0, 0, 0), 0);
  EXPECT_EQ(modified(activation(Relu{}, 1), env, -2.0, 0, 0, 0, 0), 0);
}

TEST(Activation, refuses_a_negative_floor) {
  EXPECT_THROW(activation(Relu{}, -1), std::invalid_argument);
  EXPECT_THROW(activation(Relu{}, std::nanf("")), std::invalid_argument);
}

}  // namespace
}  // namespace attn
