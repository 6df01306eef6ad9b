#include "masks/alignment.h"

#include <gtest/gtest.h>

#include "mods/lang/environments.h"

namespace attn {
namespace {

int diagonal(const Alignment& alignment, const Sizes& sizes, int b, int i) {
  ExactEnv env{sizes};
  const Index<ExactEnv> batch{b, &env}, q{i, &env}, kv{0, &env};
  return alignment.diagonal(batch, q, kv).value;
}

TEST(Alignment, top_left_keeps_the_row) {
  EXPECT_EQ(diagonal(top_left, {1, 1, 1, 4, 9}, 0, 0), 0);
  EXPECT_EQ(diagonal(top_left, {1, 1, 1, 9, 4}, 0, 7), 7);
}

TEST(Alignment, bottom_right_ends_the_last_row_on_the_last_key) {
  EXPECT_EQ(diagonal(bottom_right, {1, 1, 1, 4, 9}, 0, 3), 8);
  EXPECT_EQ(diagonal(bottom_right, {1, 1, 1, 9, 4}, 0, 8), 3);
  EXPECT_EQ(diagonal(bottom_right, {1, 1, 1, 9, 4}, 0, 0), -5);
  EXPECT_EQ(diagonal(bottom_right, {1, 1, 1, 5, 5}, 0, 2), 2);
}

TEST(Alignment, asks_for_the_lengths_at_each_call) {
  const Alignment one = bottom_right;
  EXPECT_EQ(diagonal(one, {1, 1, 1, 2, 3}, 0, 0), 1);
  EXPECT_EQ(diagonal(one, {1, 1, 1, 2, 8}, 0, 0), 6);
}

TEST(Alignment, fixed_offset_of_either_sign) {
  EXPECT_EQ(diagonal(diagonal_offset(3), {1, 1, 1, 4, 4}, 0, 1), 4);
  EXPECT_EQ(diagonal(diagonal_offset(-3), {1, 1, 1, 4, 4}, 0, 1), -2);
}

TEST(Alignment, one_offset_a_batch_entry) {
  Tensor<std::int32_t, 1> offsets({3});
  offsets.values() = {0, 5, -2};
  const Alignment alignment = diagonal_offset(offsets);
  const Sizes sizes{3, 1, 1, 4, 4};
  EXPECT_EQ(diagonal(alignment, sizes, 0, 1), 1);
  EXPECT_EQ(diagonal(alignment, sizes, 1, 1), 6);
  EXPECT_EQ(diagonal(alignment, sizes, 2, 1), -1);
  EXPECT_NO_THROW(alignment.check(sizes));
}

TEST(Alignment, one_offset_for_all) {
  Tensor<std::int32_t, 1> offsets({1});
  offsets(0) = 4;
  const Alignment alignment = diagonal_offset(offsets);
  EXPECT_EQ(diagonal(alignment, {3, 1, 1, 4, 4}, 2, 1), 5);
  EXPECT_NO_THROW(alignment.check({3, 1, 1, 4, 4}));
}

TEST(Alignment, refuses_another_number_of_offsets) {
  Tensor<std::int32_t, 1> offsets({2});
  const Alignment alignment = diagonal_offset(offsets);
  try {
    alignment.check({3, 1, 1, 4, 4});
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "diagonal_offset: 2 offsets, expected 1 or B = 3");
  }
  EXPECT_THROW(diagonal_offset(Captured<1, std::int32_t>()).check({3, 1, 1, 4, 4}),
               std::invalid_argument);
}

}  // namespace
}  // namespace attn
