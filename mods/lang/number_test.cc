#include "mods/lang/number.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "mods/lang/dual.h"
#include "mods/lang/rounded.h"

namespace attn {
namespace {

using D = Dual<double>;
constexpr double points[] = {-3.5, -1.0, -0.25, 0.0, 0.5, 1.0, 2.75};

/// f'(x) by dual numbers.
template <class F>
double slope(F f, double x) {
  return f(D(x, 1.0)).d;
}

TEST(Dual, FollowsTheRulesOfDifferentiation) {
  for (double x : points) {
    EXPECT_EQ(slope([](D s) { return s + 3; }, x), 1);
    EXPECT_EQ(slope([](D s) { return 3 - s; }, x), -1);
    EXPECT_EQ(slope([](D s) { return -s; }, x), -1);
    EXPECT_EQ(slope([](D s) { return 2.5 * s; }, x), 2.5);
    EXPECT_EQ(slope([](D s) { return s * s; }, x), 2 * x);
    EXPECT_EQ(slope([](D s) { return s * s * s; }, x), 3 * x * x);
    EXPECT_EQ(slope([](D s) { return s / 4; }, x), 0.25);
    EXPECT_EQ(slope([](D s) { return (s * s + 1) / 2; }, x), x);
    if (x != 0) {
      EXPECT_EQ(slope([](D s) { return 1 / s; }, x), -(1 / x) / x);
    }
  }
}

TEST(Dual, KnowsTheElementaryFunctions) {
  for (double x : points) {
    const double t = std::tanh(x), g = 1 / (1 + std::exp(-x));
    EXPECT_EQ(slope([](D s) { return attn::tanh(s); }, x), 1 - t * t);
    EXPECT_EQ(slope([](D s) { return attn::sigmoid(s); }, x), g * (1 - g));
    EXPECT_EQ(slope([](D s) { return attn::exp(s); }, x), std::exp(x));
    EXPECT_EQ(slope([](D s) { return attn::sin(s); }, x), std::cos(x));
    EXPECT_EQ(slope([](D s) { return attn::cos(s); }, x), -std::sin(x));
    EXPECT_EQ(slope([](D s) { return attn::floor(s); }, x), 0);
    if (x > 0) {
      EXPECT_EQ(slope([](D s) { return attn::log(s); }, x), 1 / x);
    }
  }
}

TEST(Dual, ChainsTheRules) {
  for (double x : points) {
    const double t = std::tanh(x / 4);
    EXPECT_EQ(slope([](D s) { return 4 * attn::tanh(s / 4); }, x), 4 * ((1 - t * t) * 0.25));
    const double e = std::exp(x);
    EXPECT_EQ(slope([](D s) { return attn::exp(s) * s; }, x), e * x + e);
  }
  // A zero inner derivative gives zero, also beside an infinite outer one.
  EXPECT_EQ(attn::log(D(0.0, 0.0)).d, 0);
}

TEST(Dual, TakesTheBranchItTook) {
  EXPECT_EQ(slope([](D s) { return attn::abs(s); }, 2), 1);
  EXPECT_EQ(slope([](D s) { return attn::abs(s); }, -2), -1);
  EXPECT_EQ(slope([](D s) { return attn::abs(s); }, 0.0), 0);
  EXPECT_EQ(slope([](D s) { return attn::abs(s); }, -0.0), 0);
  const auto relu = [](D s) { return attn::max(s, 0.0); };
  EXPECT_EQ(slope(relu, 1), 1);
  EXPECT_EQ(slope(relu, -1), 0);
  EXPECT_EQ(slope(relu, 0), 1);  // at a tie the first argument
  EXPECT_EQ(slope([](D s) { return attn::max(0.0, s); }, 0), 0);
  EXPECT_EQ(slope([](D s) { return attn::min(s, 0.0); }, 0), 1);
  EXPECT_EQ(slope([](D s) { return attn::min(0.0, s); }, 0), 0);
  EXPECT_EQ(slope([](D s) { return attn::clamp(s, -1, 1); }, 0.5), 1);
  EXPECT_EQ(slope([](D s) { return attn::clamp(s, -1, 1); }, 5), 0);
  EXPECT_EQ(slope([](D s) { return attn::select(s > 0, s * s, -s); }, 3), 6);
  EXPECT_EQ(slope([](D s) { return attn::select(s > 0, s * s, -s); }, -3), -1);
}

TEST(Dual, AMaskedPairKeepsAZeroDerivative) {
  const D masked = attn::select(false, D(2.0, 1.0), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(masked.v, -std::numeric_limits<double>::infinity());
  EXPECT_EQ(masked.d, 0);
}

TEST(Number, MinAndMaxOfNaNTakeTheSecond) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(attn::max(nan, 1.0), 1);
  EXPECT_EQ(attn::min(nan, 1.0), 1);
  EXPECT_TRUE(std::isnan(attn::max(1.0, nan)));
  EXPECT_TRUE(std::isnan(attn::min(1.0, nan)));
}

TEST(Number, FloorDivisionRoundsDownForEverySign) {
  for (int a = -20; a <= 20; ++a)
    for (int b = -7; b <= 7; ++b) {
      if (b == 0) continue;
      const int quotient = static_cast<int>(std::floor(static_cast<double>(a) / b));
      EXPECT_EQ(attn::floor_div(a, b), quotient) << a << " / " << b;
      EXPECT_EQ(attn::floor_mod(a, b), a - b * quotient) << a << " % " << b;
      EXPECT_EQ(quotient, a / b - (a % b != 0 && (a % b < 0) != (b < 0)));  // by C++'s / and %
    }
}

TEST(Number, SelectKeepsTheWiderType) {
  static_assert(std::is_same_v<decltype(attn::select(true, 1, 2.5)), double>);
  static_assert(std::is_same_v<decltype(attn::select(true, 1, 2)), int>);
  EXPECT_EQ(attn::select(false, 1, 2.5), 2.5);
  EXPECT_EQ(attn::abs(-3), 3);
  EXPECT_EQ(attn::abs(-3.5f), 3.5f);
}

// ---- numbers with an error ---------------------------------------------------------------------

TEST(Rounded, ConstantsThatFp32HoldsAreExact) {
  EXPECT_EQ(Rounded(0.5).e, 0);
  EXPECT_EQ(Rounded(1 << 24).e, 0);
  EXPECT_EQ(Rounded((1 << 24) + 1).e, 1);
  EXPECT_EQ(Rounded(0.1).e, static_cast<double>(0.1f) - 0.1);
  EXPECT_EQ(Rounded(0.1f).e, 0);
  EXPECT_EQ(Rounded(std::numeric_limits<double>::infinity()).e, 0);
}

TEST(Rounded, SumsThatFp32HoldsAreExact) {
  EXPECT_EQ((Rounded(3) * Rounded(5) + Rounded(1)).e, 0);
  const Rounded sum = Rounded(1) + Rounded(0x1p-30f);
  EXPECT_GE(sum.e, sum.v - static_cast<double>(1.0f + 0x1p-30f));
  EXPECT_GT(sum.e, 0);
}

TEST(Rounded, DivisionByWhatMayBeZeroHasNoBound) {
  EXPECT_TRUE(std::isinf((Rounded(1) / Rounded(0.5, 0.5)).e));
  EXPECT_FALSE(std::isinf((Rounded(1) / Rounded(0.5, 0.25)).e));
}

TEST(Rounded, OverflowHasNoBound) {
  EXPECT_TRUE(std::isinf((Rounded(3e38f) + Rounded(3e38f)).e));
  EXPECT_TRUE(std::isinf(attn::exp(Rounded(100)).e));
  // ... and keeps none: fp32 may have met inf - inf or inf * 0 on the way.
  const Rounded lost = attn::exp(Rounded(100));
  EXPECT_TRUE(std::isinf((lost * 0.0).e));
  EXPECT_TRUE(std::isinf(attn::tanh(lost - lost).e));
}

TEST(Rounded, LogarithmsThatMayMeetNegativesHaveNoBound) {
  EXPECT_TRUE(std::isinf(attn::log(Rounded(1e-3, 1e-2)).e));
  EXPECT_FALSE(std::isinf(attn::log(Rounded(1e-2, 1e-3)).e));
}

TEST(Rounded, FunctionsMayUnderflowEarly) {
  const double x = -95;
  const double kernel = Sigmoid{}(static_cast<float>(x)), exact = Sigmoid{}(x);
  ASSERT_EQ(kernel, 0);  // expf(95) is infinite
  EXPECT_LE(exact - kernel, attn::sigmoid(Rounded(x)).e);
}

TEST(Rounded, AFlippedBranchWidensTheError) {
  const Rounded s(1.0, 0x1p-20);
  const Rounded sure = attn::select(s > 0.5, s, s + 8), torn = attn::select(s > 1.0, s, s + 8);
  EXPECT_FALSE(sure.ambiguous);
  EXPECT_LT(sure.e, 1);
  EXPECT_TRUE(torn.ambiguous);
  EXPECT_EQ(torn.v, 9);
  EXPECT_GE(torn.e, 8);
  EXPECT_TRUE((torn * 2 + 1).ambiguous);
  EXPECT_TRUE(attn::floor(s).ambiguous);
  EXPECT_GE(attn::floor(s).e, 1);
  EXPECT_FALSE(attn::floor(s + 0.5).ambiguous);
  EXPECT_TRUE(std::isinf(attn::select(s > 1.0, attn::log(Rounded(-1)), Rounded(0)).e));
}

TEST(Rounded, ConditionsAreSureWhereRoundingCannotFlipThem) {
  const Fuzzy yes(true), no(false), perhaps(true, false);
  EXPECT_TRUE((no && perhaps).sure);
  EXPECT_FALSE((yes && perhaps).sure);
  EXPECT_TRUE((yes || perhaps).sure);
  EXPECT_FALSE((no || perhaps).sure);
  EXPECT_FALSE((!perhaps).sure);
  EXPECT_FALSE((perhaps != yes).sure);
  EXPECT_TRUE((Rounded(1) == Rounded(1)).sure);
  EXPECT_FALSE((Rounded(1, 1e-9) == Rounded(1)).sure);
}

TEST(Rounded, BoundsADerivativeToo) {
  using E = Dual<Rounded>;
  const E x(Rounded(0.7f), Rounded(1));
  const E y = 30 * attn::tanh(x / 30);
  const Dual<float> z = 30 * attn::tanh(Dual<float>(0.7f, 1.0f) / 30);
  EXPECT_GT(y.d.e, 0);
  EXPECT_LE(std::abs(static_cast<double>(z.v) - y.v.v), y.v.e);
  EXPECT_LE(std::abs(static_cast<double>(z.d) - y.d.v), y.d.e);
}

}  // namespace
}  // namespace attn
