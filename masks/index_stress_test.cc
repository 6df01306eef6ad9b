#include "masks/index_stress.h"

#include <gtest/gtest.h>

#include "masks/dense_construction.h"

namespace attn {
namespace {

TEST(IndexStress, follows_its_formula) {
  Tensor<std::int32_t, 1> threshold({7});
  threshold.values() = {0, 5, 2, 9, 1, -3, 6};
  const auto mask = index_stress(threshold);
  for (const Sizes& sizes : {Sizes{1, 2, 1, 3, 7}, Sizes{2, 1, 1, 7, 2}}) {
    EXPECT_EQ(
        first_difference(mask, sizes, [&](int, int, int, int j) { return j >= threshold(j); }), "");
    EXPECT_EQ(first_wrong_box(mask, sizes, Verdicts::sound), "");
  }
  EXPECT_EQ(picture(mask, {1, 1, 1, 3, 5}), "#.#.#\n#.#.#\n#.#.#\n");
  EXPECT_THROW(check_mask(mask, {1, 1, 1, 3, 8}), std::invalid_argument);
}

}  // namespace
}  // namespace attn
