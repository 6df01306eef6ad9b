#include "mods/alibi_distance.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "mods/check.h"
#include "mods/dense_construction.h"

namespace attn {
namespace {

const auto one = [](double, int, int, int, int) { return 1.0; };
const Sizes shapes[] = {{2, 2, 1, 4, 6}, {2, 2, 2, 6, 3}, {1, 2, 1, 1, 5}, {1, 2, 1, 5, 1}};

TEST(AlibiDistance, a_slope_a_head) {
  Tensor<float, 1> slope({2});
  slope.values() = {0.5f, -0.25f};
  for (const Sizes& sizes : shapes)
    for (const auto& [alignment, off] : {std::pair{top_left, 0},
                                         {bottom_right, sizes.skv - sizes.sq},
                                         {diagonal_offset(-2), -2}}) {
      const auto mod = alibi_distance(slope, alignment);
      EXPECT_NO_THROW(check_mod(mod, sizes));
      EXPECT_EQ(first_difference(
                    mod, sizes,
                    [&, off = off](double s, int, int h, int i, int j) {
                      return s - slope(h) * std::abs(i + off - j);
                    },
                    one),
                "");
    }
}

TEST(AlibiDistance, a_slope_a_batch_entry_and_head) {
  Tensor<float, 2> slope({2, 2});
  slope.values() = {0.5f, 0.25f, 1, 2};
  const Sizes sizes{2, 2, 1, 4, 5};
  EXPECT_EQ(
      first_difference(
          alibi_distance(slope), sizes,
          [&](double s, int b, int h, int i, int j) { return s - slope(b, h) * std::abs(i - j); },
          one),
      "");
  const ReadGradient got = gradient_of_read(alibi_distance(slope), sizes, 0, 1.5, 1, 0, 3, 1);
  EXPECT_EQ(got.derivative, -2);
  EXPECT_EQ(got.offset, 2);
}

TEST(AlibiDistance, refuses_another_shape) {
  Tensor<float, 2> slope({2, 3});
  EXPECT_THROW(check_mod(alibi_distance(slope), {2, 2, 1, 4, 4}), std::invalid_argument);
  EXPECT_THROW(check_mod(alibi_distance(slope), {3, 3, 1, 4, 4}), std::invalid_argument);
  EXPECT_NO_THROW(check_mod(alibi_distance(slope), {2, 3, 1, 4, 4}));
}

}  // namespace
}  // namespace attn
