#include "mods/relative_bias.h"

#include <gtest/gtest.h>

#include <vector>

#include "mods/check.h"
#include "mods/dense_construction.h"

namespace attn {
namespace {

/// Distinct, exact in fp32: 1, 1.25, 1.5, ...
template <int Rank>
Tensor<float, Rank> table(std::array<std::int64_t, Rank> extents) {
  Tensor<float, Rank> tensor(extents);
  for (std::size_t n = 0; n < tensor.values().size(); ++n)
    tensor.values()[n] = 1 + 0.25f * static_cast<float>(n);
  return tensor;
}

/// The entry that the formula reads.
int entry(int i, int j, int w) {
  const int distance = j - i;
  if (distance < -w) return 0;
  if (distance > w) return 2 * w;
  return distance + w;
}

const auto one = [](double, int, int, int, int) { return 1.0; };
const std::pair<int, int> lengths[] = {{4, 7}, {7, 4}, {1, 6}, {6, 1}, {5, 5}};

TEST(RelativeBias, one_table_for_all_heads) {
  for (const int w : {0, 1, 2, 20}) {
    const auto bias = table<1>({2 * w + 1});
    for (const auto& [sq, skv] : lengths) {
      const Sizes sizes{2, 2, 1, sq, skv};
      EXPECT_NO_THROW(check_mod(relative_bias(bias), sizes));
      EXPECT_EQ(
          first_difference(
              relative_bias(bias), sizes,
              [&](double s, int, int, int i, int j) { return s + bias(entry(i, j, w)); }, one),
          "")
          << w;
    }
  }
}

TEST(RelativeBias, a_table_a_head) {
  for (const int w : {0, 1, 3}) {
    const auto bias = table<2>({3, 2 * w + 1});
    for (const auto& [sq, skv] : lengths) {
      const Sizes sizes{1, 3, 1, sq, skv};
      EXPECT_NO_THROW(check_mod(relative_bias(bias), sizes));
      EXPECT_EQ(
          first_difference(
              relative_bias(bias), sizes,
              [&](double s, int, int h, int i, int j) { return s + bias(h, entry(i, j, w)); }, one),
          "")
          << w;
    }
  }
}

TEST(RelativeBias, the_entry_read_has_derivative_1) {
  const int w = 2;
  const auto bias = table<2>({2, 2 * w + 1});
  const Sizes sizes{1, 2, 1, 6, 6};
  for (int h = 0; h < 2; ++h)
    for (int i = 0; i < 6; ++i)
      for (int j = 0; j < 6; ++j) {
        const ReadGradient got = gradient_of_read(relative_bias(bias), sizes, 0, 0.5, 0, h, i, j);
        EXPECT_EQ(got.derivative, 1);
        EXPECT_EQ(got.data, bias.values().data());
        EXPECT_EQ(got.offset, h * (2 * w + 1) + entry(i, j, w));
        EXPECT_EQ(got.reads, 1);
      }
}

TEST(RelativeBias, reads_the_entries_of_its_picture) {
  Tensor<float, 1> bias({5});
  bias.values() = {0, 1, 2, 3, 4};
  const std::string rows[] = {"23444", "12344", "01234", "00123", "00012"};
  ExactEnv env{{1, 1, 1, 5, 5}};
  for (int i = 0; i < 5; ++i)
    for (int j = 0; j < 5; ++j)
      EXPECT_EQ(modified(relative_bias(bias), env, 0.0, 0, 0, i, j), rows[i][j] - '0');
}

TEST(RelativeBias, refuses_other_shapes) {
  const Sizes sizes{1, 3, 1, 4, 4};
  const auto even = table<1>({4}), none = table<1>({0});
  const auto heads = table<2>({2, 5});
  EXPECT_THROW(check_mod(relative_bias(even), sizes), std::invalid_argument);
  EXPECT_THROW(check_mod(relative_bias(none), sizes), std::invalid_argument);
  try {
    check_mod(relative_bias(heads), sizes);
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(),
                 "relative_bias: table has shape [2, 5], expected [1 or Hq = 3, 2 w + 1]");
  }
}

}  // namespace
}  // namespace attn
