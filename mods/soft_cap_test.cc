#include "mods/soft_cap.h"

#include <gtest/gtest.h>

#include "mods/check.h"
#include "mods/dense_construction.h"
#include "mods/lang/storage.h"

namespace attn {
namespace {

TEST(SoftCap, is_the_formula) {
  // The derivative is written here as 1 / cosh^2. Each way takes a library function of a number
  // below 1 (or its reciprocal), within 1 ulp, and at most five operations on values up to 1, each
  // doubled by a square.
  const double slack = 16 * unit_roundoff(DType::f64);
  for (const float cap : {0.5f, 3.0f, 30.0f})
    EXPECT_EQ(first_difference(
                  soft_cap(cap), {1, 2, 1, 2, 3},
                  [=](double s, int, int, int, int) { return cap * std::tanh(s / cap); },
                  [=](double s, int, int, int, int) {
                    const double c = std::cosh(s / cap);
                    return 1 / (c * c);
                  },
                  slack),
              "")
        << cap;
}

TEST(SoftCap, exact_points) {
  ExactEnv exact;
  EXPECT_EQ(modified(soft_cap(30), exact, 0.0, 0, 0, 0, 0), 0.0);
  EXPECT_EQ(modified(soft_cap(30), exact, infinity, 0, 0, 0, 0), 30.0);
  EXPECT_EQ(modified(soft_cap(30), exact, -infinity, 0, 0, 0, 0), -30.0);
  EXPECT_EQ(modified(soft_cap(2), exact, 1e6, 0, 0, 0, 0), 2.0);
  EXPECT_TRUE(std::isnan(modified(soft_cap(30), exact, std::nan(""), 0, 0, 0, 0)));
  DualEnv dual;
  EXPECT_EQ(modified(soft_cap(30), dual, {0.0, 1.0}, 0, 0, 0, 0).d, 1.0);
  EXPECT_EQ(modified(soft_cap(2), dual, {1e6, 1.0}, 0, 0, 0, 0).d, 0.0);
}

TEST(SoftCap, never_leaves_the_cap) {
  RangeEnv env;
  const Index<RangeEnv> zero{RangeEnv::Int(0), &env};
  const Range<double> range =
      call_mod(soft_cap(4), Range<double>(-1e6, 1e6), zero, zero, zero, zero);
  const double widened = 4 * (1 + 4 * unit_roundoff(DType::f16));
  EXPECT_LE(range.high, widened);
  EXPECT_GE(range.low, -widened);
}

TEST(SoftCap, refuses_a_cap_that_is_not_positive_and_finite) {
  for (const float cap : {0.0f, -1.0f, infinity, std::nanf("")})
    EXPECT_THROW(soft_cap(cap), std::invalid_argument) << cap;
  EXPECT_THROW(check_mod(SoftCap{-3}, {1, 1, 1, 2, 2}), std::invalid_argument);
  try {
    soft_cap(0);
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "soft_cap: cap = 0.000000, expected a positive finite number");
  }
}

}  // namespace
}  // namespace attn
