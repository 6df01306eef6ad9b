#include "mods/mixed_index_bias.h"

#include <gtest/gtest.h>

#include "mods/check.h"
#include "mods/dense_construction.h"

namespace attn {
namespace {

const auto one = [](double, int, int, int, int) { return 1.0; };
const Sizes shapes[] = {{2, 2, 1, 4, 6}, {2, 2, 2, 6, 3}, {1, 2, 1, 1, 5}, {1, 2, 1, 5, 1}};

/// Distinct, exact in fp32: 1, 1.25, 1.5, ...
template <int Rank>
Tensor<float, Rank> table(std::array<std::int64_t, Rank> extents) {
  Tensor<float, Rank> tensor(extents);
  for (std::size_t n = 0; n < tensor.values().size(); ++n)
    tensor.values()[n] = 1 + 0.25f * static_cast<float>(n);
  return tensor;
}

TEST(MixedIndexBias, reads_the_mixed_entry) {
  for (const Sizes& sizes : shapes) {
    const auto bias = table<4>({sizes.b, sizes.hq, sizes.sq, 3});
    EXPECT_NO_THROW(check_mod(mixed_index_bias(bias), sizes));
    EXPECT_EQ(
        first_difference(
            mixed_index_bias(bias), sizes,
            [&](double s, int b, int h, int i, int j) { return s + bias(b, h, i, (i + j) % 3); },
            one),
        "");
  }
}

TEST(MixedIndexBias, the_entry_read_has_derivative_1) {
  const auto bias = table<4>({1, 1, 4, 3});
  const ReadGradient got =
      gradient_of_read(mixed_index_bias(bias), {1, 1, 1, 4, 6}, 0, 1, 0, 0, 2, 5);
  EXPECT_EQ(got.derivative, 1);
  EXPECT_EQ(got.offset, 2 * 3 + 7 % 3);
  EXPECT_THROW(check_mod(mixed_index_bias(bias), {1, 1, 1, 5, 6}), std::invalid_argument);
}

}  // namespace
}  // namespace attn
