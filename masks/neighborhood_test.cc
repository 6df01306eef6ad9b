#include "masks/neighborhood.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "masks/dense_construction.h"

namespace attn {
namespace {

/// Where the square of `kernel` around `at` has its middle, in a line of `length` pixels.
int middle(int at, int kernel, int length) {
  const int r = kernel / 2;
  return at < r ? r : at > length - 1 - r ? length - 1 - r : at;
}

/// Compares with the formula; `x`, `y` give a position's pixel.
template <class X, class Y>
void expect_neighborhood(const GridOrder& order, int kernel, const X& x, const Y& y) {
  const int pixels = order.width * order.height, r = kernel / 2;
  const auto mask = neighborhood(order, kernel);
  for (const Sizes& sizes : {Sizes{1, 1, 1, pixels, pixels}, Sizes{1, 2, 1, 5, pixels}}) {
    EXPECT_EQ(first_difference(mask, sizes,
                               [&](int, int, int i, int j) {
                                 return std::abs(middle(x(i), kernel, order.width) - x(j)) <= r &&
                                        std::abs(middle(y(i), kernel, order.height) - y(j)) <= r;
                               }),
              "");
    EXPECT_NO_THROW(check_mask(mask, sizes));
  }
  EXPECT_EQ(first_wrong_box(mask, {1, 1, 1, 6, pixels}, Verdicts::sound), "");
}

TEST(Neighborhood, row_major) {
  for (const int kernel : {1, 2, 3})
    expect_neighborhood(
        row_major(4, 3), kernel, [](int n) { return n % 4; }, [](int n) { return n / 4; });
}

TEST(Neighborhood, tiles) {
  // Tiles of 2 x 2 in an image of 4 x 4, written out.
  const int x[] = {0, 1, 0, 1, 2, 3, 2, 3, 0, 1, 0, 1, 2, 3, 2, 3};
  const int y[] = {0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3, 2, 2, 3, 3};
  expect_neighborhood(
      tiled(4, 4, 2, 2), 3, [&](int n) { return x[n]; }, [&](int n) { return y[n]; });
}

TEST(Neighborhood, morton) {
  const auto even_bits = [](int n) { return (n & 1) | (n >> 1 & 2) | (n >> 2 & 4); };
  expect_neighborhood(morton(4), 3, even_bits, [&](int n) { return even_bits(n >> 1); });
}

TEST(Neighborhood, looks_like_its_picture) {
  const auto mask = neighborhood(row_major(5, 5), 3);
  const std::string rows = picture(mask, {1, 1, 1, 25, 25});
  EXPECT_EQ(rows.substr(0, 25), "###..###..###............");
  EXPECT_EQ(rows.substr(26 * 7, 25), ".###..###..###...........");
}

TEST(Neighborhood, refuses_kernels_and_lengths_that_do_not_fit) {
  EXPECT_THROW(neighborhood(row_major(4, 3), 0), std::invalid_argument);
  EXPECT_THROW(neighborhood(row_major(4, 3), 4), std::invalid_argument);
  EXPECT_THROW(check_mask(neighborhood(row_major(4, 3), 3), {1, 1, 1, 13, 12}),
               std::invalid_argument);
}

}  // namespace
}  // namespace attn
