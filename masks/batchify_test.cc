#include "masks/batchify.h"

#include <gtest/gtest.h>

#include "masks/causal.h"
#include "masks/dense_construction.h"
#include "masks/window.h"

namespace attn {
namespace {

TEST(Batchify, each_entry_sees_itself) {
  for (const Sizes& sizes : {Sizes{1, 2, 1, 7, 8}, Sizes{1, 1, 1, 8, 5}, Sizes{1, 1, 1, 1, 6}})
    for (const int n : {1, 3, 4, 20}) {
      EXPECT_EQ(first_difference(batchify(window(1, 1), n), sizes,
                                 [=](int, int, int i, int j) {
                                   const int distance = j % n - i % n;
                                   return i / n == j / n && -1 <= distance && distance <= 1;
                                 }),
                "");
      EXPECT_EQ(first_wrong_box(batchify(causal(), n), sizes, Verdicts::sound), "");
    }
}

TEST(Batchify, looks_like_its_picture) {
  EXPECT_EQ(picture(batchify(causal(), 3), {1, 1, 1, 6, 6}),
            "#.....\n"
            "##....\n"
            "###...\n"
            "...#..\n"
            "...##.\n"
            "...###\n");
}

TEST(Batchify, refuses_a_length_of_zero) {
  EXPECT_THROW(batchify(causal(), 0), std::invalid_argument);
  Tensor<std::int32_t, 1> offsets({2});
  EXPECT_THROW(check_mask(batchify(causal(diagonal_offset(offsets)), 2), {3, 1, 1, 4, 4}),
               std::invalid_argument);
}

}  // namespace
}  // namespace attn
