#include "mods/graphormer.h"

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

TEST(Graphormer, spatial) {
  const auto bias = table<2>({2, 3});
  for (const Sizes& sizes : shapes) {
    Tensor<std::int32_t, 3> distance({sizes.b, sizes.sq, sizes.skv});
    for (std::size_t n = 0; n < distance.values().size(); ++n)
      distance.values()[n] = static_cast<std::int32_t>(n * 7 % 3);
    const auto mod = graphormer_spatial(bias, distance);
    EXPECT_NO_THROW(check_mod(mod, sizes));
    EXPECT_EQ(
        first_difference(
            mod, sizes,
            [&](double s, int b, int h, int i, int j) { return s + bias(h, distance(b, i, j)); },
            one),
        "");
  }
}

TEST(Graphormer, edge) {
  const auto bias = table<3>({2, 2, 4});
  for (const Sizes& sizes : shapes) {
    Tensor<std::int32_t, 4> edge({sizes.b, sizes.sq, sizes.skv, 2});
    for (std::size_t n = 0; n < edge.values().size(); ++n)
      edge.values()[n] = static_cast<std::int32_t>(n * 5 % 4);
    const auto mod = graphormer_edge(bias, edge);
    EXPECT_NO_THROW(check_mod(mod, sizes));
    EXPECT_EQ(first_difference(
                  mod, sizes,
                  [&](double s, int b, int h, int i, int j) {
                    const double sum =
                        1.0 * bias(0, h, edge(b, i, j, 0)) + bias(1, h, edge(b, i, j, 1));
                    return s + sum / 2;
                  },
                  one),
              "");
  }
}

TEST(Graphormer, gradients_reach_the_table_and_are_shared_by_hops) {
  const auto bias = table<3>({2, 1, 4});
  Tensor<std::int32_t, 4> edge({1, 1, 2, 2});
  edge.values() = {0, 1, 3, 2};
  const Sizes sizes{1, 1, 1, 1, 2};
  const ReadGradient second =
      gradient_of_read(graphormer_edge(bias, edge), sizes, 1, 1, 0, 0, 0, 1);
  EXPECT_EQ(second.derivative, 0.5);
  EXPECT_EQ(second.offset, 4 + 2);
}

TEST(Graphormer, refuses_tables_that_do_not_cover) {
  const auto bias = table<2>({2, 3});
  const auto edges = table<3>({2, 2, 4});
  Tensor<std::int32_t, 3> distance({1, 4, 4});
  Tensor<std::int32_t, 4> edge({1, 4, 4, 3});
  EXPECT_THROW(check_mod(graphormer_spatial(bias, distance), {1, 2, 1, 5, 4}),
               std::invalid_argument);
  EXPECT_THROW(check_mod(graphormer_spatial(bias, distance), {1, 3, 1, 4, 4}),
               std::invalid_argument);
  EXPECT_THROW(check_mod(graphormer_edge(edges, edge), {1, 2, 1, 4, 4}), std::invalid_argument);
}

}  // namespace
}  // namespace attn
