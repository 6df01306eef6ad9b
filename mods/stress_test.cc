#include "mods/stress.h"

#include <gtest/gtest.h>

#include <cstdlib>

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

TEST(Stress, arithmetic) {
  for (const Sizes& sizes : shapes)
    EXPECT_EQ(first_difference(
                  stress_arithmetic(), sizes,
                  [](double s, int, int, int i, int j) {
                    const double d = i - j, length = std::abs(d);
                    return (s * (8 + length) - d / 2) / (1 + length);
                  },
                  [](double, int, int, int i, int j) {
                    return (8.0 + std::abs(i - j)) / (1 + std::abs(i - j));
                  }),
              "");
}

TEST(Stress, parity) {
  for (const Sizes& sizes : shapes)
    EXPECT_EQ(first_difference(
                  stress_parity(), sizes,
                  [](double s, int, int, int i, int j) {
                    return i % 2 == 1 ? -s / 2 : j % 3 == 0 ? 2 * s : s + 1;
                  },
                  [](double, int, int, int i, int j) {
                    return i % 2 == 1 ? -0.5 : j % 3 == 0 ? 2.0 : 1.0;
                  }),
              "");
}

TEST(Stress, buffers) {
  const auto batch = table<1>({2}), head = table<1>({2}), query = table<1>({6}),
             key = table<1>({6});
  const Sizes sizes{2, 2, 1, 6, 6};
  const auto mod = stress_buffers(batch, head, query, key);
  EXPECT_EQ(first_difference(
                mod, sizes,
                [&](double s, int b, int h, int i, int j) {
                  return s + head(h) * query(i) + batch(b) * key(j);
                },
                one),
            "");
  double to_head = 0, to_key = 0;  // whichever reads these are
  for (int read = 0; read < 4; ++read) {
    const ReadGradient got = gradient_of_read(mod, sizes, read, 1, 1, 1, 3, 4);
    if (got.data == head.values().data()) to_head = got.derivative;
    if (got.data == key.values().data()) to_key = got.derivative;
  }
  EXPECT_EQ(to_head, query(3));
  EXPECT_EQ(to_key, batch(1));
  EXPECT_THROW(check_mod(mod, {2, 2, 1, 5, 6}), std::invalid_argument);
  EXPECT_THROW(check_mod(mod, {3, 2, 1, 6, 6}), std::invalid_argument);
}

TEST(Stress, exclusive_or) {
  for (const Sizes& sizes : shapes)
    for (const int bits : {0, 1, 3})
      EXPECT_EQ(first_difference(
                    stress_xor(bits), sizes,
                    [=](double s, int, int, int i, int j) {
                      return s + ((i ^ j) & ((1 << bits) - 1)) / 8.0;
                    },
                    one),
                "");
  EXPECT_THROW(stress_xor(-1), std::invalid_argument);
  EXPECT_THROW(stress_xor(31), std::invalid_argument);
}

}  // namespace
}  // namespace attn
