#include "masks/global_window.h"

#include <gtest/gtest.h>

#include "masks/dense_construction.h"

namespace attn {
namespace {

const bool flags[] = {true, false, false, false, false, true, false, false};
const Captured<1, bool> is_global(TensorView<const bool, 1>{flags, {8}, {1}});

TEST(GlobalWindow, follows_its_formula) {
  for (const Sizes& sizes : {Sizes{2, 2, 1, 5, 8}, Sizes{1, 1, 1, 8, 5}, Sizes{1, 1, 1, 1, 6}})
    for (const int reach : {0, 1, 3, 50}) {
      const auto mask = global_window(reach, is_global);
      EXPECT_EQ(first_difference(mask, sizes,
                                 [=](int, int, int i, int j) {
                                   return (i - j <= reach && j - i <= reach) || flags[i] ||
                                          flags[j];
                                 }),
                "");
      EXPECT_EQ(first_wrong_box(mask, sizes, Verdicts::sound), "");
      EXPECT_NO_THROW(check_mask(mask, sizes));
    }
}

TEST(GlobalWindow, looks_like_its_picture) {
  EXPECT_EQ(picture(global_window(1, is_global), {1, 1, 1, 8, 8}),
            "########\n"
            "###..#..\n"
            "####.#..\n"
            "#.####..\n"
            "#..###..\n"
            "########\n"
            "#....###\n"
            "#....###\n");
}

TEST(GlobalWindow, refuses_a_negative_reach_and_a_short_table) {
  EXPECT_THROW(global_window(-1, is_global), std::invalid_argument);
  EXPECT_THROW(check_mask(global_window(1, is_global), {1, 1, 1, 9, 4}), std::invalid_argument);
  EXPECT_THROW(check_mask(global_window(1, is_global), {1, 1, 1, 4, 9}), std::invalid_argument);
}

}  // namespace
}  // namespace attn
