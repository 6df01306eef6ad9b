#include "masks/pattern_blocks.h"

#include <gtest/gtest.h>

#include "masks/dense_construction.h"

namespace attn {
namespace {

const bool bits[] = {true, false, true, false, true, true};
const Captured<2, bool> pattern(TensorView<const bool, 2>{bits, {2, 3}, {3, 1}});

TEST(BlockPattern, follows_its_formula) {
  for (const auto& [rows, columns] : {std::pair{2, 3}, {4, 4}, {5, 3}}) {
    const auto mask = block_pattern(pattern, rows, columns);
    for (const Sizes& sizes : {Sizes{2, 2, 1, 4, 9}, Sizes{1, 1, 1, 3, 8}}) {
      EXPECT_EQ(first_difference(mask, sizes,
                                 [r = rows, c = columns](int, int, int i, int j) {
                                   return bits[3 * (i / r) + j / c];
                                 }),
                "");
      EXPECT_EQ(first_wrong_box(mask, sizes, Verdicts::sound), "");
      EXPECT_NO_THROW(check_mask(mask, sizes));
    }
  }
}

TEST(BlockPattern, a_pattern_a_head) {
  const Captured<4, bool> of_heads(TensorView<const bool, 4>{bits, {1, 3, 2, 1}, {6, 2, 1, 1}});
  const auto mask = block_pattern(of_heads, 2, 4);
  EXPECT_EQ(first_difference(mask, {2, 3, 1, 4, 4},
                             [](int, int h, int i, int) { return bits[2 * h + i / 2]; }),
            "");
}

TEST(BlockPattern, looks_like_its_picture) {
  EXPECT_EQ(picture(block_pattern(pattern, 2, 3), {1, 1, 1, 4, 9}),
            "###...###\n"
            "###...###\n"
            "...######\n"
            "...######\n");
}

TEST(BlockPattern, refuses_a_pattern_that_does_not_cover) {
  EXPECT_THROW(block_pattern(pattern, 0, 3), std::invalid_argument);
  EXPECT_THROW(block_pattern(pattern, 2, 0), std::invalid_argument);
  EXPECT_THROW(check_mask(block_pattern(pattern, 2, 3), {1, 1, 1, 5, 9}), std::invalid_argument);
  EXPECT_THROW(check_mask(block_pattern(pattern, 2, 3), {1, 1, 1, 4, 10}), std::invalid_argument);
}

}  // namespace
}  // namespace attn
