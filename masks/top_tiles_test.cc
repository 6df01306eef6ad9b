#include "masks/top_tiles.h"

#include <gtest/gtest.h>

#include "masks/dense_construction.h"

namespace attn {
namespace {

TEST(TopTiles, follows_its_formula) {
  Tensor<std::int32_t, 4> chosen({2, 2, 3, 2});
  chosen.values() = {0, 1, 1, 2, 0, 2, 2, 2, 0, 1, 1, 0, 0, 0, 1, 1, 2, 2, 2, 0, 2, 1, 0, 1};
  Tensor<std::int32_t, 1> valid({3});
  valid.values() = {2, 1, 2};
  const auto mask = top_tiles(2, chosen, valid);
  for (const Sizes& sizes : {Sizes{2, 2, 1, 6, 6}, Sizes{2, 2, 1, 5, 3}}) {
    EXPECT_EQ(first_difference(mask, sizes,
                               [&](int b, int h, int i, int j) {
                                 const bool found = chosen(b, h, i / 2, 0) == j / 2 ||
                                                    chosen(b, h, i / 2, 1) == j / 2;
                                 return found && j % 2 < valid(j / 2);
                               }),
              "");
    EXPECT_EQ(first_wrong_box(mask, sizes, Verdicts::sound), "");
    EXPECT_NO_THROW(check_mask(mask, sizes));
  }
  EXPECT_THROW(check_mask(mask, {2, 2, 1, 7, 6}), std::invalid_argument);
  EXPECT_THROW(check_mask(mask, {2, 2, 1, 6, 7}), std::invalid_argument);
  EXPECT_THROW(check_mask(mask, {3, 2, 1, 6, 6}), std::invalid_argument);
  EXPECT_THROW(top_tiles(0, chosen, valid), std::invalid_argument);
}

TEST(TopTiles, looks_like_its_picture) {
  Tensor<std::int32_t, 4> chosen({1, 1, 3, 2});
  chosen.values() = {0, 1, 1, 2, 0, 2};
  Tensor<std::int32_t, 1> valid({3});
  valid.values() = {2, 2, 1};
  EXPECT_EQ(picture(top_tiles(2, chosen, valid), {1, 1, 1, 6, 6}),
            "####..\n"
            "####..\n"
            "..###.\n"
            "..###.\n"
            "##..#.\n"
            "##..#.\n");
}

}  // namespace
}  // namespace attn
