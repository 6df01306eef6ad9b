#include "masks/causal.h"

#include <gtest/gtest.h>

#include "masks/dense_construction.h"

namespace attn {
namespace {

// Sq < Skv, Sq > Skv, equal, and each of them 1.
const Sizes shapes[] = {{1, 2, 1, 5, 8}, {1, 2, 1, 8, 5}, {2, 1, 1, 6, 6},
                        {1, 1, 1, 1, 7}, {1, 1, 1, 7, 1}, {1, 1, 1, 1, 1}};

TEST(Causal, top_left) {
  for (const Sizes& sizes : shapes) {
    const auto formula = [](int, int, int i, int j) { return j <= i; };
    EXPECT_EQ(first_difference(causal(), sizes, formula), "");
    EXPECT_EQ(first_difference(causal(top_left), sizes, formula), "");
    EXPECT_EQ(first_wrong_box(causal(), sizes, Verdicts::exact), "");
  }
}

TEST(Causal, bottom_right) {
  for (const Sizes& sizes : shapes) {
    const int sq = sizes.sq, skv = sizes.skv;
    EXPECT_EQ(first_difference(causal(bottom_right), sizes,
                               [=](int, int, int i, int j) { return j <= i + skv - sq; }),
              "");
    EXPECT_EQ(first_wrong_box(causal(bottom_right), sizes, Verdicts::exact), "");
  }
}

TEST(Causal, fixed_offset) {
  for (const Sizes& sizes : shapes)
    for (const int offset : {-9, -2, -1, 0, 1, 3, 9}) {
      const Causal mask = causal(diagonal_offset(offset));
      EXPECT_EQ(
          first_difference(mask, sizes, [=](int, int, int i, int j) { return j <= i + offset; }),
          "")
          << offset;
      EXPECT_EQ(first_wrong_box(mask, sizes, Verdicts::exact), "") << offset;
    }
}

TEST(Causal, an_offset_a_batch_entry) {
  const std::vector<std::int32_t> off{2, 0, -3};
  Tensor<std::int32_t, 1> offsets({3});
  offsets.values() = off;
  for (const Sizes& sizes : {Sizes{3, 2, 1, 4, 7}, Sizes{3, 1, 1, 7, 4}, Sizes{3, 1, 1, 1, 5}}) {
    const Causal mask = causal(diagonal_offset(offsets));
    EXPECT_EQ(
        first_difference(mask, sizes, [&](int b, int, int i, int j) { return j <= i + off[b]; }),
        "");
    EXPECT_EQ(first_wrong_box(mask, sizes, Verdicts::exact), "");
  }
}

TEST(Causal, looks_like_its_picture) {
  EXPECT_EQ(picture(causal(), {1, 1, 1, 8, 8}),
            "#.......\n"
            "##......\n"
            "###.....\n"
            "####....\n"
            "#####...\n"
            "######..\n"
            "#######.\n"
            "########\n");
  EXPECT_EQ(picture(causal(bottom_right), {1, 1, 1, 3, 5}),
            "###..\n"
            "####.\n"
            "#####\n");
  EXPECT_EQ(picture(causal(bottom_right), {1, 1, 1, 5, 3}),
            "...\n"
            "...\n"
            "#..\n"
            "##.\n"
            "###\n");
}

TEST(Causal, the_future_only_is_its_negation_one_below) {
  EXPECT_EQ(first_difference(!causal(diagonal_offset(-1)), {1, 1, 1, 6, 7},
                             [](int, int, int i, int j) { return j >= i; }),
            "");
}

TEST(Causal, a_box_of_a_million_rows_is_decided_at_once) {
  const Sizes sizes{1, 1, 1, 1 << 20, 1 << 20};
  const int half = 1 << 19, end = (1 << 20) - 1;
  EXPECT_TRUE(verdict(causal(), sizes, {{0, 0, half, 0}, {0, 0, end, half}}).yes());
  EXPECT_TRUE(verdict(causal(), sizes, {{0, 0, 0, half}, {0, 0, half - 1, end}}).no());
}

TEST(Causal, check_passes_on_to_the_alignment) {
  Tensor<std::int32_t, 1> offsets({2});
  EXPECT_THROW(check_mask(causal(diagonal_offset(offsets)), {3, 1, 1, 4, 4}),
               std::invalid_argument);
  EXPECT_NO_THROW(check_mask(causal(diagonal_offset(offsets)), {2, 1, 1, 4, 4}));
}

}  // namespace
}  // namespace attn
