#include "mods/squared.h"

#include <gtest/gtest.h>

#include "mods/check.h"
#include "mods/dense_construction.h"

namespace attn {
namespace {

const Sizes shapes[] = {{2, 2, 1, 4, 6}, {2, 2, 2, 6, 3}, {1, 2, 1, 1, 5}, {1, 2, 1, 5, 1}};

TEST(Squared, value_and_derivative) {
  for (const Sizes& sizes : shapes)
    for (const float a : {1.0f, 0.5f, -2.0f})
      EXPECT_EQ(first_difference(
                    squared(a), sizes, [=](double s, int, int, int, int) { return a * (s * s); },
                    [=](double s, int, int, int, int) { return 2 * a * s; }),
                "");
}

}  // namespace
}  // namespace attn
