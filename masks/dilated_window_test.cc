#include "masks/dilated_window.h"

#include <gtest/gtest.h>

#include "masks/dense_construction.h"

namespace attn {
namespace {

TEST(DilatedWindow, follows_its_formula) {
  for (const Sizes& sizes : {Sizes{1, 2, 1, 5, 8}, Sizes{1, 1, 1, 8, 5}, Sizes{1, 1, 1, 1, 6}})
    for (const int reach : {0, 1, 4, 50})
      for (const int d : {1, 2, 3}) {
        const auto mask = dilated_window(reach, d);
        EXPECT_EQ(first_difference(mask, sizes,
                                   [=](int, int, int i, int j) {
                                     const int distance = i > j ? i - j : j - i;
                                     return distance <= reach && distance % d == 0;
                                   }),
                  "");
        EXPECT_EQ(first_wrong_box(mask, sizes, d == 1 ? Verdicts::exact : Verdicts::sound), "");
      }
}

TEST(DilatedWindow, looks_like_its_picture) {
  EXPECT_EQ(picture(dilated_window(4, 2), {1, 1, 1, 8, 8}),
            "#.#.#...\n"
            ".#.#.#..\n"
            "#.#.#.#.\n"
            ".#.#.#.#\n"
            "#.#.#.#.\n"
            ".#.#.#.#\n"
            "..#.#.#.\n"
            "...#.#.#\n");
}

TEST(DilatedWindow, refuses_numbers_out_of_range) {
  EXPECT_THROW(dilated_window(-1, 1), std::invalid_argument);
  EXPECT_THROW(dilated_window(1, 0), std::invalid_argument);
  EXPECT_THROW(check_mask(DilatedWindow{{}, 1, -1}, {}), std::invalid_argument);
}

}  // namespace
}  // namespace attn
