#include "masks/prefix_lm.h"

#include <gtest/gtest.h>

#include "masks/dense_construction.h"

namespace attn {
namespace {

TEST(PrefixLm, one_number_for_all) {
  for (const Sizes& sizes : {Sizes{2, 2, 1, 5, 8}, Sizes{1, 1, 1, 8, 5}, Sizes{1, 1, 1, 1, 6}})
    for (const int n : {0, 1, 4, 50}) {
      EXPECT_EQ(first_difference(prefix_lm(n), sizes,
                                 [=](int, int, int i, int j) { return j < n || j <= i; }),
                "");
      EXPECT_EQ(first_wrong_box(prefix_lm(n), sizes, Verdicts::sound), "");
    }
}

TEST(PrefixLm, a_number_a_batch_entry) {
  Tensor<std::int32_t, 1> numbers({3});
  numbers.values() = {0, 2, 50};
  const auto mask = prefix_lm(numbers);
  const Sizes sizes{3, 2, 1, 4, 6};
  EXPECT_EQ(first_difference(mask, sizes,
                             [&](int b, int, int i, int j) {
                               const int n = numbers(b);
                               return j < n || j <= i;
                             }),
            "");
  EXPECT_EQ(first_wrong_box(mask, sizes, Verdicts::sound), "");
  EXPECT_NO_THROW(check_mask(mask, sizes));
}

TEST(PrefixLm, looks_like_its_picture) {
  EXPECT_EQ(picture(prefix_lm(3), {1, 1, 1, 6, 6}),
            "###...\n"
            "###...\n"
            "###...\n"
            "####..\n"
            "#####.\n"
            "######\n");
}

TEST(PrefixLm, refuses_a_negative_number_and_a_wrong_table) {
  EXPECT_THROW(prefix_lm(-1), std::invalid_argument);
  Tensor<std::int32_t, 1> numbers({3});
  EXPECT_THROW(check_mask(prefix_lm(numbers), {2, 1, 1, 4, 4}), std::invalid_argument);
}

}  // namespace
}  // namespace attn
