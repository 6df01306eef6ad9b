#include "mods/trig.h"

#include <gtest/gtest.h>

#include "mods/check.h"
#include "mods/dense_construction.h"
#include "mods/lang/storage.h"

namespace attn {
namespace {

const Sizes shapes[] = {{2, 2, 1, 4, 6}, {2, 2, 2, 6, 3}, {1, 2, 1, 1, 5}, {1, 2, 1, 5, 1}};

// Derivatives are products of sines and cosines, each rounded a few times.
const double slack = 8 * unit_roundoff(DType::f64);

TEST(Trig, sine_of_the_cosine) {
  for (const Sizes& sizes : shapes)
    EXPECT_EQ(first_difference(
                  trig(), sizes,
                  [](double s, int b, int, int, int) {
                    return std::sin(std::cos(s)) + std::sin(1.0 * b) / std::cos(1.0 * b);
                  },
                  [](double s, int, int, int, int) { return std::cos(std::cos(s)) * -std::sin(s); },
                  slack),
              "");
}

TEST(Trig, two_branches) {
  for (const Sizes& sizes : shapes)
    EXPECT_EQ(first_difference(
                  trig2(), sizes,
                  [](double s, int b, int, int, int) {
                    return std::cos(s) * std::sin(s) + std::sin(1.0 * b) / std::cos(1.0 * b);
                  },
                  [](double s, int, int, int, int) {
                    return std::cos(s) * std::cos(s) - std::sin(s) * std::sin(s);
                  },
                  slack),
              "");
}

TEST(Trig, the_quotient_is_the_tangent) {
  ExactEnv env{{6, 1, 1, 1, 1}};
  for (int b = 0; b < 6; ++b) {
    const double tangent = modified(trig2(), env, 0.0, b, 0, 0, 0);
    EXPECT_LE(std::abs(tangent - std::tan(1.0 * b)),
              4 * unit_roundoff(DType::f64) * (1 + std::abs(std::tan(1.0 * b))))
        << b;
  }
}

}  // namespace
}  // namespace attn
