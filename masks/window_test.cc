#include "masks/window.h"

#include <gtest/gtest.h>

#include "masks/causal.h"
#include "masks/dense_construction.h"

namespace attn {
namespace {

const Sizes shapes[] = {{1, 1, 1, 4, 7}, {1, 1, 1, 7, 4}, {1, 2, 1, 6, 6},
                        {1, 1, 1, 1, 6}, {1, 1, 1, 6, 1}, {1, 1, 1, 1, 1}};
const std::int32_t ends[] = {0, 1, 2, 9, unbounded};

/// The formula of the contract; an end without bound is no condition at all.
bool in_window(int i, int j, int off, std::int32_t left, std::int32_t right) {
  const bool after_left = left == unbounded || i + off - left <= j;
  const bool before_right = right == unbounded || j <= i + off + right;
  return after_left && before_right;
}

TEST(Window, every_pair_of_ends_at_every_alignment) {
  for (const Sizes& sizes : shapes) {
    const std::pair<Alignment, int> alignments[] = {{top_left, 0},
                                                    {bottom_right, sizes.skv - sizes.sq},
                                                    {diagonal_offset(2), 2},
                                                    {diagonal_offset(-3), -3}};
    for (const auto& [alignment, off] : alignments)
      for (const std::int32_t left : ends)
        for (const std::int32_t right : ends) {
          const Window mask = window(left, right, alignment);
          EXPECT_EQ(first_difference(mask, sizes,
                                     [&, o = off](int, int, int i, int j) {
                                       return in_window(i, j, o, left, right);
                                     }),
                    "")
              << left << ' ' << right << ' ' << off;
          EXPECT_EQ(first_wrong_box(mask, sizes, Verdicts::exact), "")
              << left << ' ' << right << ' ' << off;
        }
  }
}

TEST(Window, an_offset_a_batch_entry) {
  Tensor<std::int32_t, 1> offsets({2});
  offsets.values() = {3, -2};
  const Window mask = window(1, 2, diagonal_offset(offsets));
  for (const Sizes& sizes : {Sizes{2, 1, 1, 4, 7}, Sizes{2, 1, 1, 7, 4}}) {
    EXPECT_EQ(first_difference(
                  mask, sizes,
                  [](int b, int, int i, int j) { return in_window(i, j, b == 0 ? 3 : -2, 1, 2); }),
              "");
    EXPECT_EQ(first_wrong_box(mask, sizes, Verdicts::exact), "");
  }
}

TEST(Window, looks_like_its_picture) {
  EXPECT_EQ(picture(window(2, 1), {1, 1, 1, 8, 8}),
            "##......\n"
            "###.....\n"
            "####....\n"
            ".####...\n"
            "..####..\n"
            "...####.\n"
            "....####\n"
            ".....###\n");
}

TEST(Window, without_a_left_end_and_right_end_0_is_causal) {
  EXPECT_EQ(picture(window(unbounded, 0, bottom_right), {1, 1, 1, 5, 8}),
            picture(causal(bottom_right), {1, 1, 1, 5, 8}));
}

TEST(Window, the_largest_ends_do_not_overflow) {
  const std::int32_t large = unbounded - 1;
  for (const Alignment& alignment : {diagonal_offset(1000), diagonal_offset(-1000)}) {
    const Window mask = window(large, large, alignment);
    EXPECT_EQ(first_difference(mask, {1, 1, 1, 4, 4}, [](int, int, int, int) { return true; }), "");
    EXPECT_EQ(first_wrong_box(mask, {1, 1, 1, 4, 4}, Verdicts::exact), "");
  }
}

TEST(Window, refuses_negative_ends) {
  EXPECT_THROW(window(0, -1), std::invalid_argument);
  try {
    window(-1, 0);
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "window: left = -1, expected 0 or more, or attn::unbounded");
  }
  EXPECT_THROW(check_mask(Window{{}, 3, -2, top_left}, {1, 1, 1, 4, 4}), std::invalid_argument);
  EXPECT_THROW(check_mask(Window{{}, -2, 3, top_left}, {1, 1, 1, 4, 4}), std::invalid_argument);
}

TEST(Window, check_passes_on_to_the_alignment) {
  Tensor<std::int32_t, 1> offsets({2});
  EXPECT_THROW(check_mask(window(1, 1, diagonal_offset(offsets)), {3, 1, 1, 4, 4}),
               std::invalid_argument);
}

}  // namespace
}  // namespace attn
