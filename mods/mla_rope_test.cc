#include "mods/mla_rope.h"

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

TEST(MlaRope, adds_the_rotated_product) {
  for (const Sizes& sizes : shapes) {
    const auto q_rope = table<4>({sizes.b, sizes.hq, sizes.sq, 3});
    const auto k_rope = table<3>({sizes.b, sizes.skv, 3});
    const auto mod = mla_rope(q_rope, k_rope, 0.5f);
    EXPECT_NO_THROW(check_mod(mod, sizes));
    EXPECT_EQ(first_difference(
                  mod, sizes,
                  [&](double s, int b, int h, int i, int j) {
                    double dot = 0;
                    for (int d = 0; d < 3; ++d) dot += 1.0 * q_rope(b, h, i, d) * k_rope(b, j, d);
                    return s + 0.5 * dot;
                  },
                  one),
              "");
  }
}

/// The derivative to one entry of a table, whichever read of the mod it is.
template <class Mod>
double derivative_to(const float* data, std::int64_t offset, const Mod& mod, const Sizes& sizes,
                     int h, int i, int j) {
  for (int read = 0; read < gradient_of_read(mod, sizes, -1, 0, 0, h, i, j).reads; ++read) {
    const ReadGradient got = gradient_of_read(mod, sizes, read, 0, 0, h, i, j);
    if (got.data == data && got.offset == offset) return got.derivative;
  }
  return 0;
}

TEST(MlaRope, gradients_reach_both_parts) {
  const auto q_rope = table<4>({1, 2, 4, 2});
  const auto k_rope = table<3>({1, 5, 2});
  const Sizes sizes{1, 2, 1, 4, 5};
  const auto mod = mla_rope(q_rope, k_rope, 2);
  const float *q = q_rope.values().data(), *k = k_rope.values().data();
  for (int d = 0; d < 2; ++d) {
    EXPECT_EQ(derivative_to(q, (1 * 4 + 3) * 2 + d, mod, sizes, 1, 3, 4), 2 * k_rope(0, 4, d));
    EXPECT_EQ(derivative_to(k, 4 * 2 + d, mod, sizes, 1, 3, 4), 2 * q_rope(0, 1, 3, d));
    EXPECT_EQ(derivative_to(k, 3 * 2 + d, mod, sizes, 1, 3, 4), 0);
  }
}

TEST(MlaRope, refuses_tables_that_do_not_fit) {
  const auto q_rope = table<4>({1, 2, 4, 2});
  const auto k_rope = table<3>({1, 5, 3});
  EXPECT_THROW(check_mod(mla_rope(q_rope, k_rope, 1), {1, 2, 1, 4, 5}), std::invalid_argument);
}

}  // namespace
}  // namespace attn
