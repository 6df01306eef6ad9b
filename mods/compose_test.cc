#include "mods/compose.h"

#include <gtest/gtest.h>

#include "mods/alibi.h"
#include "mods/checkerboard.h"
#include "mods/dense_construction.h"
#include "mods/identity.h"
#include "mods/relative_bias.h"
#include "mods/soft_cap.h"

namespace attn {
namespace {

const Sizes sizes{1, 2, 1, 4, 5};

struct PlainPlusOne {
  float operator()(float s, int, int, int, int) const { return s + 1; }
};

Tensor<float, 1> slopes() {
  Tensor<float, 1> tensor({2});
  tensor.values() = {0.5f, 0.25f};
  return tensor;
}
double factor(int i, int j) { return (i + j) % 2 == 0 ? 0.5 : 2.0; }

TEST(Compose, the_first_runs_first) {
  const auto slope = slopes();
  EXPECT_EQ(first_difference(
                then(alibi(slope), checkerboard()), sizes,
                [&](double s, int, int h, int i, int j) {
                  return (s + slope(h) * (j - i)) * factor(i, j);
                },
                [](double, int, int, int i, int j) { return factor(i, j); }),
            "");
  EXPECT_EQ(
      first_difference(
          then(checkerboard(), alibi(slope)), sizes,
          [&](double s, int, int h, int i, int j) { return s * factor(i, j) + slope(h) * (j - i); },
          [](double, int, int, int i, int j) { return factor(i, j); }),
      "");
}

TEST(Compose, three_in_a_row) {
  const auto slope = slopes();
  const auto biased = [&](double s, int h, int i, int j) {
    return s * factor(i, j) + slope(h) * (j - i);
  };
  const auto cosh_squared = [](double x) { return std::cosh(x) * std::cosh(x); };
  // As in soft_cap_test.cc, times the largest factor.
  const double slack = 2 * 16 * unit_roundoff(DType::f64);
  EXPECT_EQ(
      first_difference(
          then(checkerboard(), alibi(slope), soft_cap(8)), sizes,
          [&](double s, int, int h, int i, int j) { return 8 * std::tanh(biased(s, h, i, j) / 8); },
          [&](double s, int, int h, int i, int j) {
            return factor(i, j) / cosh_squared(biased(s, h, i, j) / 8);
          },
          slack),
      "");
}

TEST(Compose, identity_is_neutral) {
  EXPECT_EQ(first_difference(
                then(identity(), then(checkerboard(), identity())), sizes,
                [](double s, int, int, int i, int j) { return s * factor(i, j); },
                [](double, int, int, int i, int j) { return factor(i, j); }),
            "");
}

TEST(Compose, gradients_reach_the_tables_of_both) {
  const auto slope = slopes();
  Tensor<float, 1> bias({3});
  bias.values() = {1, 2, 3};
  const auto mod = then(then(alibi(slope), checkerboard()), relative_bias(bias));
  // h = 1, i = 1, j = 4: distance 3, odd, so the slope's derivative is doubled.
  const ReadGradient first = gradient_of_read(mod, sizes, 0, 0.5, 0, 1, 1, 4);
  EXPECT_EQ(first.derivative, 2 * 3);
  EXPECT_EQ(first.data, slope.values().data());
  EXPECT_EQ(first.offset, 1);
  EXPECT_EQ(first.reads, 2);
  const ReadGradient second = gradient_of_read(mod, sizes, 1, 0.5, 0, 1, 1, 4);
  EXPECT_EQ(second.derivative, 1);
  EXPECT_EQ(second.data, bias.values().data());
  EXPECT_EQ(second.offset, 2);
}

TEST(Compose, takes_plain_functors) {
  ExactEnv env{sizes};
  EXPECT_EQ(modified(then(PlainPlusOne{}, checkerboard()), env, 3.0, 0, 0, 0, 1), 8.0);
  EXPECT_EQ(modified(then(checkerboard(), PlainPlusOne{}), env, 3.0, 0, 0, 0, 1), 7.0);
}

TEST(Compose, a_cap_brings_back_what_the_first_masked) {
  const auto hide = [](auto s, auto, auto, auto q, auto kv) {
    return attn::select(kv <= q, s, -infinity);
  };
  ExactEnv env{sizes};
  EXPECT_EQ(modified(then(hide, identity()), env, 3.0, 0, 0, 0, 1), -infinity);
  EXPECT_EQ(modified(then(hide, soft_cap(2)), env, 3.0, 0, 0, 0, 1), -2.0);
}

}  // namespace
}  // namespace attn
