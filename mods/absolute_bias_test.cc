#include "mods/absolute_bias.h"

#include <gtest/gtest.h>

#include "mods/check.h"
#include "mods/dense_construction.h"

namespace attn {
namespace {

const Sizes sizes{2, 3, 1, 4, 5};

/// Distinct, exact in fp32: 1, 1.25, 1.5, ...
template <int Rank>
Tensor<float, Rank> table(std::array<std::int64_t, Rank> extents) {
  Tensor<float, Rank> tensor(extents);
  for (std::size_t n = 0; n < tensor.values().size(); ++n)
    tensor.values()[n] = 1 + 0.25f * static_cast<float>(n);
  return tensor;
}

TEST(AbsoluteBias, every_set_of_axes) {
  for (int set = 0; set < 16; ++set) {
    const std::int64_t b_n = set & 1 ? 1 : 2, h_n = set & 2 ? 1 : 3, q_n = set & 4 ? 1 : 4,
                       kv_n = set & 8 ? 1 : 5;
    const auto values = table<4>({b_n, h_n, q_n, kv_n});
    const auto entry = [&](int b, int h, int i, int j) -> double {
      return values(b_n == 1 ? 0 : b, h_n == 1 ? 0 : h, q_n == 1 ? 0 : i, kv_n == 1 ? 0 : j);
    };
    EXPECT_NO_THROW(check_mod(absolute_bias(values), sizes));
    EXPECT_EQ(first_difference(
                  absolute_bias(values), sizes,
                  [&](double s, int b, int h, int i, int j) { return s + entry(b, h, i, j); },
                  [](double, int, int, int, int) { return 1.0; }),
              "")
        << set;
  }
}

TEST(AbsoluteBias, lower_ranks_align_to_the_right) {
  const auto one = table<1>({5});
  const auto two = table<2>({4, 5});
  const auto three = table<3>({3, 1, 1});
  ExactEnv env{sizes};
  EXPECT_EQ(modified(absolute_bias(one), env, 2.0, 1, 2, 3, 4), 2.0 + one(4));
  EXPECT_EQ(modified(absolute_bias(two), env, 2.0, 1, 2, 3, 4), 2.0 + two(3, 4));
  EXPECT_EQ(modified(absolute_bias(three), env, 2.0, 1, 2, 3, 4), 2.0 + three(2, 0, 0));
}

TEST(AbsoluteBias, derivative_to_the_entry) {
  const auto values = table<3>({3, 4, 1});
  const ReadGradient got = gradient_of_read(absolute_bias(values), sizes, 0, 6.5, 1, 2, 3, 4);
  EXPECT_EQ(got.derivative, 1);
  EXPECT_EQ(got.data, values.values().data());
  EXPECT_EQ(got.offset, 2 * 4 + 3);
  EXPECT_EQ(got.reads, 1);
}

TEST(AbsoluteBias, refuses_shapes_that_do_not_broadcast) {
  const auto values = table<3>({2, 4, 5});
  EXPECT_NO_THROW(check_mod(absolute_bias(values), {3, 2, 1, 4, 5}));
  EXPECT_THROW(check_mod(absolute_bias(values), {2, 3, 1, 4, 5}), std::invalid_argument);
}

}  // namespace
}  // namespace attn
