#include "mods/arguments_check.h"

#include <gtest/gtest.h>

namespace attn {
namespace {

template <class... Axes>
std::string refusal(const Captured<2>& table, const Axes&... axes) {
  try {
    check_table("mask", "table", table, axes...);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(CheckTable, each_rule) {
  const Tensor<float, 2> memory({1, 4});
  const Captured<2> table(memory);
  EXPECT_EQ(refusal(table, one_or("B", 3), at_least("Sq", 4)), "");
  EXPECT_EQ(refusal(table, exactly("B", 1), exactly("Sq", 4)), "");
  EXPECT_EQ(refusal(table, one_or("B", 3), at_least("Sq", 5)),
            "mask: table has shape [1, 4], expected [1 or B = 3, at least Sq = 5]");
  EXPECT_EQ(refusal(table, at_least("B", 2), one_or("Sq", 3)),
            "mask: table has shape [1, 4], expected [at least B = 2, 1 or Sq = 3]");
  EXPECT_EQ(refusal(table, exactly("B", 2), at_least("Sq", 1)),
            "mask: table has shape [1, 4], expected [B = 2, at least Sq = 1]");
}

TEST(CheckAtLeast, names_the_argument) {
  EXPECT_NO_THROW(check_at_least("window", "left", 0, 0));
  try {
    check_at_least("window", "left", -1, 0);
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "window: left = -1, expected 0 or more");
  }
}

TEST(OneRow, sees_a_line_as_a_table) {
  Tensor<float, 1> memory({3});
  memory.values() = {1, 2, 3};
  const Captured<2> table = one_row(Captured<1>(memory, "line"));
  EXPECT_EQ(shape_string(table.tensor.extents), "[1, 3]");
  EXPECT_EQ(table.tensor(0, 2), 3);
  EXPECT_STREQ(table.name, "line");
}

}  // namespace
}  // namespace attn
