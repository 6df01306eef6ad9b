#include "masks/grid_order.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "mods/lang/environments.h"

namespace attn {
namespace {

/// The position that stands at each pixel, rows from top to bottom.
std::vector<int> laid_out(const GridOrder& order) {
  std::vector<int> image(static_cast<std::size_t>(order.width * order.height), -1);
  ExactEnv env;
  for (int n = 0; n < order.width * order.height; ++n) {
    const int x = order.x(Index<ExactEnv>{n, &env}).value;
    const int y = order.y(Index<ExactEnv>{n, &env}).value;
    image.at(static_cast<std::size_t>(y * order.width + x)) = n;
  }
  return image;
}

TEST(GridOrder, row_major) {
  EXPECT_EQ(laid_out(row_major(3, 2)), (std::vector<int>{0, 1, 2, 3, 4, 5}));
}

TEST(GridOrder, tiles) {
  EXPECT_EQ(laid_out(tiled(4, 4, 2, 2)),
            (std::vector<int>{0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15}));
  EXPECT_EQ(laid_out(tiled(4, 2, 2, 1)), (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(laid_out(tiled(2, 4, 1, 2)), (std::vector<int>{0, 2, 1, 3, 4, 6, 5, 7}));
}

TEST(GridOrder, morton) {
  EXPECT_EQ(laid_out(morton(4)),
            (std::vector<int>{0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15}));
  const std::vector<int> eight = laid_out(morton(8));
  EXPECT_EQ(eight[4], 16);      // x = 4: bit 2 of x is bit 4
  EXPECT_EQ(eight[4 * 8], 32);  // y = 4: bit 2 of y is bit 5
  EXPECT_EQ(eight[7 * 8 + 7], 63);
}

TEST(GridOrder, ranges_hold_every_coordinate) {
  RangeEnv ranges;
  ExactEnv exact;
  for (const GridOrder& order : {row_major(4, 4), tiled(4, 4, 2, 2), morton(4)})
    for (int first = 0; first < 16; ++first)
      for (int last = first; last < 16; ++last) {
        const Index<RangeEnv> all{RangeEnv::Int(first, last), &ranges};
        const auto x = order.x(all).value, y = order.y(all).value;
        for (int n = first; n <= last; ++n) {
          const Index<ExactEnv> at{n, &exact};
          EXPECT_LE(x.low, order.x(at).value);
          EXPECT_GE(x.high, order.x(at).value);
          EXPECT_LE(y.low, order.y(at).value);
          EXPECT_GE(y.high, order.y(at).value);
        }
      }
}

TEST(GridOrder, refuses_shapes_that_do_not_fit) {
  EXPECT_THROW(row_major(0, 4), std::invalid_argument);
  EXPECT_THROW(tiled(4, 4, 3, 2), std::invalid_argument);
  EXPECT_THROW(tiled(4, 4, 2, 0), std::invalid_argument);
  EXPECT_THROW(morton(6), std::invalid_argument);
}

}  // namespace
}  // namespace attn
