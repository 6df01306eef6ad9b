#include "mods/reversed.h"

#include <gtest/gtest.h>

#include "mods/dense_construction.h"
#include "mods/relative_bias.h"

namespace attn {
namespace {

TEST(Reversed, reads_from_the_end) {
  Tensor<float, 1> table({3});
  table.values() = {1, 2, 4};
  const Captured<1> backwards = reversed(Captured<1>(table, "table"));
  for (int n = 0; n < 3; ++n) EXPECT_EQ(backwards.tensor(n), table(2 - n));
  EXPECT_STREQ(backwards.name, "table");
  const Captured<1> twice = reversed(backwards);
  EXPECT_EQ(twice.tensor.data, table.values().data());
  EXPECT_EQ(reversed(Captured<1>(Tensor<float, 1>({0}).view())).tensor.extents[0], 0);
}

TEST(Reversed, turns_query_minus_key_into_key_minus_query) {
  Tensor<float, 1> table({5});
  table.values() = {1, 2, 4, 8, 16};
  EXPECT_EQ(first_difference(
                relative_bias(reversed(Captured<1>(table))), {1, 1, 1, 5, 7},
                [&](double s, int, int, int i, int j) {
                  const int d = i - j;
                  return s + table((d < -2 ? -2 : d > 2 ? 2 : d) + 2);
                },
                [](double, int, int, int, int) { return 1.0; }),
            "");
}

}  // namespace
}  // namespace attn
