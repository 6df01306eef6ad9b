#include "masks/sliding_tile.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "masks/dense_construction.h"

namespace attn {
namespace {

int middle(int at, int kernel, int length) {
  const int r = kernel / 2;
  return at < r ? r : at > length - 1 - r ? length - 1 - r : at;
}

TEST(SlidingTile, video) {
  const int tiles[] = {3, 2, 3}, kernel[] = {3, 1, 1}, tokens = 1, text = 2, vision = 18;
  const auto mask = sliding_tile({3, 2, 3}, {3, 1, 1}, tokens, text);
  const auto formula = [&](int, int, int i, int j) {
    if (j >= vision + text) return false;
    if (i >= vision || j >= vision) return true;
    const int a[] = {i / 6, i / 3 % 2, i % 3}, c[] = {j / 6, j / 3 % 2, j % 3};
    for (int axis = 0; axis < 3; ++axis)
      if (std::abs(middle(a[axis], kernel[axis], tiles[axis]) - c[axis]) > kernel[axis] / 2)
        return false;
    return true;
  };
  EXPECT_EQ(first_difference(mask, {1, 2, 1, 20, 22}, formula), "");
  EXPECT_EQ(first_wrong_box(mask, {1, 1, 1, 20, 8}, Verdicts::sound), "");
  EXPECT_EQ(first_wrong_box(mask, {1, 1, 1, 5, 22}, Verdicts::sound), "");
}

TEST(SlidingTile, image) {
  const auto mask = sliding_tile_2d({2, 4}, {1, 3}, 2, 1);
  const auto formula = [](int, int, int i, int j) {
    if (j >= 17) return false;
    if (i >= 16 || j >= 16) return true;
    const int a = i / 2, c = j / 2;
    return a / 4 == c / 4 && std::abs(middle(a % 4, 3, 4) - c % 4) <= 1;
  };
  EXPECT_EQ(first_difference(mask, {1, 1, 1, 17, 18}, formula), "");
  EXPECT_EQ(first_difference(mask, {1, 1, 1, 3, 17}, formula), "");
}

TEST(SlidingTile, looks_like_its_picture) {
  EXPECT_EQ(picture(sliding_tile({1, 1, 3}, {1, 1, 1}, 2, 1), {1, 1, 1, 7, 7}),
            "##....#\n"
            "##....#\n"
            "..##..#\n"
            "..##..#\n"
            "....###\n"
            "....###\n"
            "#######\n");
}

TEST(SlidingTile, a_pair_of_tiles_is_one_verdict) {
  const auto mask = sliding_tile_2d({4, 4}, {3, 3}, 64);
  const Sizes sizes{1, 1, 1, 1024, 1024};
  EXPECT_TRUE(verdict(mask, sizes, {{0, 0, 64, 0}, {0, 0, 127, 63}}).yes());
  EXPECT_TRUE(verdict(mask, sizes, {{0, 0, 64, 960}, {0, 0, 127, 1023}}).no());
}

TEST(SlidingTile, refuses_numbers_out_of_range) {
  EXPECT_THROW(sliding_tile_2d({0, 2}, {1, 1}, 1), std::invalid_argument);
  EXPECT_THROW(sliding_tile_2d({2, 2}, {3, 1}, 1), std::invalid_argument);
  EXPECT_THROW(sliding_tile_2d({2, 2}, {1, 0}, 1), std::invalid_argument);
  EXPECT_THROW(sliding_tile_2d({2, 2}, {1, 1}, 0), std::invalid_argument);
  EXPECT_THROW(sliding_tile_2d({2, 2}, {1, 1}, 1, -1), std::invalid_argument);
  EXPECT_THROW(sliding_tile_2d({1 << 15, 1 << 15}, {1, 1}, 64), std::invalid_argument);
}

}  // namespace
}  // namespace attn
