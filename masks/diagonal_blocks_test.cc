#include "masks/diagonal_blocks.h"

#include <gtest/gtest.h>

#include "masks/dense_construction.h"

namespace attn {
namespace {

TEST(BlockDiagonal, follows_its_formula) {
  for (const Sizes& sizes : {Sizes{1, 2, 1, 5, 8}, Sizes{2, 1, 1, 8, 5}, Sizes{1, 1, 1, 7, 7},
                             Sizes{1, 1, 1, 1, 6}, Sizes{1, 1, 1, 6, 1}})
    for (const int n : {1, 2, 3, 5, 100}) {
      const auto mask = block_diagonal(n);
      EXPECT_EQ(
          first_difference(mask, sizes, [=](int, int, int i, int j) { return i / n == j / n; }), "")
          << n;
      EXPECT_EQ(first_wrong_box(mask, sizes, Verdicts::sound), "") << n;
    }
}

TEST(BlockDiagonal, looks_like_its_picture) {
  EXPECT_EQ(picture(block_diagonal(3), {1, 1, 1, 7, 7}),
            "###....\n"
            "###....\n"
            "###....\n"
            "...###.\n"
            "...###.\n"
            "...###.\n"
            "......#\n");
}

TEST(BlockDiagonal, refuses_a_length_of_zero) {
  try {
    block_diagonal(0);
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "block_diagonal: length = 0, expected 1 or more");
  }
}

}  // namespace
}  // namespace attn
