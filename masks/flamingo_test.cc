#include "masks/flamingo.h"

#include <gtest/gtest.h>

#include "masks/dense_construction.h"

namespace attn {
namespace {

TEST(Flamingo, follows_its_formula) {
  Tensor<std::int32_t, 1> start({3}), end({3});
  start.values() = {1, 3, 3};
  end.values() = {3, 6, 4};
  for (const int tokens : {2, 3}) {
    const auto mask = flamingo(tokens, start, end);
    for (const Sizes& sizes : {Sizes{1, 2, 1, 7, 6}, Sizes{2, 1, 1, 2, 5}}) {
      EXPECT_EQ(first_difference(mask, sizes,
                                 [&](int, int, int i, int j) {
                                   return start(j / tokens) <= i && i < end(j / tokens);
                                 }),
                "");
      EXPECT_EQ(first_wrong_box(mask, sizes, Verdicts::sound), "");
      EXPECT_NO_THROW(check_mask(mask, sizes));
    }
    EXPECT_THROW(check_mask(mask, {1, 1, 1, 4, 3 * tokens + 1}), std::invalid_argument);
  }
  EXPECT_THROW(flamingo(0, start, end), std::invalid_argument);
}

TEST(Flamingo, looks_like_its_picture) {
  Tensor<std::int32_t, 1> start({2}), end({2});
  start.values() = {0, 3};
  end.values() = {3, 6};
  EXPECT_EQ(picture(flamingo(2, start, end), {1, 1, 1, 6, 4}),
            "##..\n##..\n##..\n..##\n..##\n..##\n");
}

}  // namespace
}  // namespace attn
