#include "masks/choice.h"

#include <gtest/gtest.h>

#include "masks/causal.h"
#include "masks/dense_construction.h"

namespace attn {
namespace {

const bool flags[] = {true, false, true};
const Captured<1, bool> which(TensorView<const bool, 1>{flags, {3}, {1}});
const Captured<1, bool> one(TensorView<const bool, 1>{flags, {1}, {1}});

/// Attends to every key; a class of its own, so that the two parts differ in type.
struct All : MaskBase {
  template <class Index>
  auto operator()(Index, Index, Index q, Index) const {
    return q >= 0;
  }
};

TEST(Choice, by_head) {
  const auto mask = choose_by_head(which, causal(), All{});
  for (const Sizes& sizes : {Sizes{2, 3, 1, 4, 6}, Sizes{1, 3, 1, 6, 4}}) {
    EXPECT_EQ(
        first_difference(mask, sizes, [](int, int h, int i, int j) { return h == 1 || j <= i; }),
        "");
    EXPECT_EQ(first_wrong_box(mask, sizes, Verdicts::exact), "");
  }
}

TEST(Choice, by_batch) {
  const auto mask = choose_by_batch(which, causal(), !causal());
  const Sizes sizes{3, 2, 1, 5, 4};
  EXPECT_EQ(first_difference(mask, sizes,
                             [](int b, int, int i, int j) { return b == 1 ? j > i : j <= i; }),
            "");
  EXPECT_EQ(first_wrong_box(mask, sizes, Verdicts::exact), "");
}

TEST(Choice, one_flag_serves_all) {
  EXPECT_EQ(first_difference(choose_by_head(one, causal(), All{}), {1, 4, 1, 3, 3},
                             [](int, int, int i, int j) { return j <= i; }),
            "");
}

TEST(Choice, heads_that_agree_are_decided_together) {
  const auto mask = choose_by_head(which, causal(), All{});
  EXPECT_TRUE(verdict(mask, {1, 3, 1, 8, 8}, {{0, 0, 4, 0}, {0, 2, 7, 3}}).yes());
}

TEST(Choice, refuses_another_number_of_flags) {
  EXPECT_NO_THROW(check_mask(choose_by_head(which, causal(), All{}), {1, 3, 1, 2, 2}));
  try {
    check_mask(choose_by_head(which, causal(), All{}), {1, 4, 1, 2, 2});
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "choose_by_head: which has shape [3], expected [1 or Hq = 4]");
  }
  EXPECT_THROW(check_mask(choose_by_batch(which, causal(), All{}), {2, 3, 1, 2, 2}),
               std::invalid_argument);
  Tensor<std::int32_t, 1> offsets({2});
  EXPECT_THROW(
      check_mask(choose_by_head(one, All{}, causal(diagonal_offset(offsets))), {3, 1, 1, 2, 2}),
      std::invalid_argument);
}

}  // namespace
}  // namespace attn
