#include "mods/silu.h"

#include <gtest/gtest.h>

#include "mods/check.h"
#include "mods/dense_construction.h"
#include "mods/lang/storage.h"

namespace attn {
namespace {

const Sizes shapes[] = {{2, 2, 1, 4, 6}, {2, 2, 2, 6, 3}, {1, 2, 1, 1, 5}, {1, 2, 1, 5, 1}};

TEST(Silu, value_and_derivative) {
  // Both sides round a few terms that are at most the largest score in size.
  const double slack = 4 * 24 * unit_roundoff(DType::f64);
  const auto g = [](double s) { return 1.0 / (1.0 + std::exp(-s)); };
  for (const Sizes& sizes : shapes)
    EXPECT_EQ(
        first_difference(
            silu(), sizes, [&](double s, int, int, int, int) { return s * g(s); },
            [&](double s, int, int, int, int) { return g(s) + s * g(s) * (1 - g(s)); }, slack),
        "");
}

}  // namespace
}  // namespace attn
