#include "mods/broadcast.h"

#include <gtest/gtest.h>

namespace attn {
namespace {

TEST(Broadcast, aligns_to_the_right) {
  const Tensor<float, 1> keys({5});
  const Tensor<float, 3> heads({3, 1, 5});
  using Four = std::array<std::int64_t, 4>;
  EXPECT_EQ(broadcast_table(Captured<1>(keys), "t").tensor.extents, (Four{1, 1, 1, 5}));
  EXPECT_EQ(broadcast_table(Captured<3>(heads), "t").tensor.extents, (Four{1, 3, 1, 5}));
  EXPECT_EQ(broadcast_table(Captured<3>(heads), "t").tensor.strides, (Four{0, 5, 5, 1}));
}

TEST(Broadcast, takes_ones_and_the_problems_own_lengths) {
  const Tensor<float, 4> table({2, 1, 4, 1});
  const Captured<4> all = broadcast_table(Captured<4>(table), "bias");
  EXPECT_NO_THROW(check_broadcast(all, {2, 3, 1, 4, 5}));
  try {
    check_broadcast(all, {1, 3, 1, 4, 5});
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(),
                 "bias: shape [2, 1, 4, 1] (axes missing on the left read as 1), expected each "
                 "axis 1 or as in [B, Hq, Sq, Skv] = [1, 3, 4, 5]");
  }
  EXPECT_THROW(check_broadcast(all, {2, 3, 1, 3, 5}), std::invalid_argument);  // longer is not fine
  EXPECT_THROW(check_broadcast(all, {2, 3, 1, 5, 5}), std::invalid_argument);
}

}  // namespace
}  // namespace attn
