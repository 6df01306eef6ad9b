#include "masks/draft_training.h"

#include <gtest/gtest.h>

#include "masks/dense_construction.h"

namespace attn {
namespace {

TEST(DraftTraining, follows_its_formula) {
  for (const int prefix : {0, 1, 4})
    for (const int n : {1, 2, 3})
      for (const Sizes& sizes : {Sizes{1, 2, 1, 6, 9}, Sizes{1, 1, 1, 8, 5}}) {
        const auto mask = draft_training(prefix, n);
        EXPECT_EQ(first_difference(mask, sizes,
                                   [=](int, int, int i, int j) {
                                     if (j < prefix) return true;
                                     const int key = j - prefix;
                                     return i / n == key / n && key % n <= i % n;
                                   }),
                  "");
        EXPECT_EQ(first_wrong_box(mask, sizes, Verdicts::sound), "");
      }
}

TEST(DraftTraining, looks_like_its_picture) {
  EXPECT_EQ(picture(draft_training(2, 3), {1, 1, 1, 6, 8}),
            "###.....\n"
            "####....\n"
            "#####...\n"
            "##...#..\n"
            "##...##.\n"
            "##...###\n");
}

TEST(DraftTraining, refuses_numbers_out_of_range) {
  EXPECT_THROW(draft_training(-1, 1), std::invalid_argument);
  EXPECT_THROW(draft_training(0, 0), std::invalid_argument);
}

}  // namespace
}  // namespace attn
