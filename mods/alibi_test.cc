#include "mods/alibi.h"

#include <gtest/gtest.h>

#include <vector>

#include "mods/check.h"
#include "mods/dense_construction.h"
#include "mods/lang/storage.h"

namespace attn {
namespace {

using Slopes = std::vector<float>;

Tensor<float, 1> table(const Slopes& values) {
  Tensor<float, 1> tensor({static_cast<std::int64_t>(values.size())});
  tensor.values() = values;
  return tensor;
}

TEST(Alibi, adds_slope_times_distance) {
  const Slopes of_head{0.5f, -0.25f, 0.125f};  // powers of two: both sides are exact
  const auto slopes = table(of_head);
  for (const Sizes& sizes :
       {Sizes{2, 3, 1, 4, 7}, Sizes{1, 3, 3, 7, 4}, Sizes{1, 3, 1, 1, 5}, Sizes{1, 3, 1, 5, 1}})
    EXPECT_EQ(first_difference(
                  alibi(slopes), sizes,
                  [&](double s, int, int h, int i, int j) { return s + of_head[h] * (j - i); },
                  [](double, int, int, int, int) { return 1.0; }),
              "");
}

TEST(Alibi, penalises_past_keys) {
  const auto slopes = table({0.5f});
  ExactEnv env{{1, 1, 1, 4, 4}};
  EXPECT_EQ(modified(alibi(slopes), env, 1.0, 0, 0, 3, 1), 0.0);
  EXPECT_EQ(modified(alibi(slopes), env, 1.0, 0, 0, 1, 3), 2.0);
}

TEST(Alibi, derivative_to_the_slope_is_the_distance) {
  const auto slopes = table({0.3f, 0.7f});
  const Sizes sizes{1, 2, 1, 4, 6};
  for (int h = 0; h < 2; ++h)
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < 6; ++j) {
        const ReadGradient got = gradient_of_read(alibi(slopes), sizes, 0, 1.5, 0, h, i, j);
        EXPECT_EQ(got.derivative, j - i);
        EXPECT_EQ(got.data, slopes.values().data());
        EXPECT_EQ(got.offset, h);
        EXPECT_EQ(got.reads, 1);
      }
}

TEST(Alibi, one_slope_serves_all_heads) {
  const auto slopes = table({0.25f});
  EXPECT_NO_THROW(check_mod(alibi(slopes), {1, 3, 1, 4, 4}));
  EXPECT_EQ(first_difference(
                alibi(slopes), {1, 3, 1, 4, 4},
                [](double s, int, int, int i, int j) { return s + 0.25 * (j - i); },
                [](double, int, int, int, int) { return 1.0; }),
            "");
}

TEST(Alibi, refuses_another_number_of_slopes) {
  const auto slopes = table({0.5f, 0.25f});
  EXPECT_NO_THROW(check_mod(alibi(slopes), {1, 2, 1, 4, 4}));
  try {
    check_mod(alibi(slopes), {1, 4, 2, 4, 4});
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "alibi: 2 slopes, expected 1 or Hq = 4");
  }
}

/// 2^-x as a float, for halves of whole numbers: exactly, or the root rounded once.
float power(double x) {
  const double whole = std::floor(x);
  return std::ldexp(x == whole ? 1.0f : std::sqrt(0.5f), -static_cast<int>(whole));
}

TEST(AlibiSlopes, powers_of_two) {
  EXPECT_EQ(alibi_slopes(0).values(), Slopes{});
  EXPECT_EQ(alibi_slopes(1).values(), (Slopes{power(8)}));
  EXPECT_EQ(alibi_slopes(2).values(), (Slopes{power(4), power(8)}));
  EXPECT_EQ(alibi_slopes(4).values(), (Slopes{power(2), power(4), power(6), power(8)}));
  EXPECT_EQ(alibi_slopes(8).values(), (Slopes{power(1), power(2), power(3), power(4), power(5),
                                              power(6), power(7), power(8)}));
  EXPECT_EQ(alibi_slopes(16).values(),
            (Slopes{power(.5), power(1), power(1.5), power(2), power(2.5), power(3), power(3.5),
                    power(4), power(4.5), power(5), power(5.5), power(6), power(6.5), power(7),
                    power(7.5), power(8)}));
}

TEST(AlibiSlopes, other_head_counts) {
  EXPECT_EQ(alibi_slopes(3).values(), (Slopes{power(4), power(8), power(2)}));
  EXPECT_EQ(alibi_slopes(6).values(),
            (Slopes{power(2), power(4), power(6), power(8), power(1), power(3)}));
  EXPECT_EQ(alibi_slopes(7).values(),
            (Slopes{power(2), power(4), power(6), power(8), power(1), power(3), power(5)}));
  EXPECT_EQ(alibi_slopes(12).values(),
            (Slopes{power(1), power(2), power(3), power(4), power(5), power(6), power(7), power(8),
                    power(.5), power(1.5), power(2.5), power(3.5)}));
}

/// The rule as its authors publish it: a geometric sequence that starts at its own ratio.
std::vector<double> published_slopes(int heads) {
  int power = 1;
  while (2 * power <= heads) power *= 2;
  const double start = std::pow(2.0, -std::pow(2.0, -(std::log2(power) - 3)));
  std::vector<double> slopes;
  double slope = start;
  for (int h = 0; h < power; ++h, slope *= start) slopes.push_back(slope);
  if (power == heads) return slopes;
  const std::vector<double> finer = published_slopes(2 * power);
  for (int h = 0; h < heads - power; ++h) slopes.push_back(finer[2 * h]);
  return slopes;
}

TEST(AlibiSlopes, agree_with_the_published_rule) {
  for (int heads = 1; heads <= 130; ++heads) {
    const auto got = alibi_slopes(heads);
    const std::vector<double> expected = published_slopes(heads);
    ASSERT_EQ(got.values().size(), expected.size());
    // One rounding to float; the products in double are far below it.
    const double rounding = unit_roundoff(DType::f32) + 2 * heads * unit_roundoff(DType::f64);
    for (int h = 0; h < heads; ++h)
      EXPECT_LE(std::abs(got(h) - expected[h]), rounding * expected[h]) << heads << ' ' << h;
  }
}

TEST(AlibiSlopes, refuses_a_negative_count) {
  EXPECT_THROW(alibi_slopes(-1), std::invalid_argument);
}

}  // namespace
}  // namespace attn
