#include "masks/key_count.h"

#include <gtest/gtest.h>

#include "masks/dense_construction.h"

namespace attn {
namespace {

TEST(KeyCount, one_number_for_all) {
  for (const Sizes& sizes : {Sizes{2, 2, 1, 5, 8}, Sizes{1, 1, 1, 8, 5}, Sizes{1, 1, 1, 1, 6}})
    for (const int n : {0, 1, 4, 50}) {
      EXPECT_EQ(first_difference(key_count(n), sizes,
                                 [=](int, int, int i, int j) { return i >= 0 && j < n; }),
                "");
      EXPECT_EQ(first_wrong_box(key_count(n), sizes, Verdicts::exact), "");
    }
}

TEST(KeyCount, a_number_a_batch_entry) {
  Tensor<std::int32_t, 1> numbers({3});
  numbers.values() = {0, 2, 50};
  const auto mask = key_count(numbers);
  const Sizes sizes{3, 2, 1, 4, 6};
  EXPECT_EQ(first_difference(mask, sizes,
                             [&](int b, int, int i, int j) {
                               const int n = numbers(b);
                               return i >= 0 && j < n;
                             }),
            "");
  EXPECT_EQ(first_wrong_box(mask, sizes, Verdicts::exact), "");
  EXPECT_NO_THROW(check_mask(mask, sizes));
}

TEST(KeyCount, looks_like_its_picture) {
  EXPECT_EQ(picture(key_count(3), {1, 1, 1, 3, 5}),
            "###..\n"
            "###..\n"
            "###..\n");
}

TEST(KeyCount, refuses_a_negative_number_and_a_wrong_table) {
  EXPECT_THROW(key_count(-1), std::invalid_argument);
  Tensor<std::int32_t, 1> numbers({3});
  EXPECT_THROW(check_mask(key_count(numbers), {2, 1, 1, 4, 4}), std::invalid_argument);
}

}  // namespace
}  // namespace attn
