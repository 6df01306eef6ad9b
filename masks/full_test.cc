#include "masks/full.h"

#include <gtest/gtest.h>

#include "masks/dense_construction.h"

namespace attn {
namespace {

TEST(Full, attends_everywhere) {
  for (const Sizes& sizes : {Sizes{2, 2, 1, 3, 5}, Sizes{1, 1, 1, 5, 1}, Sizes{1, 1, 1, 1, 4}}) {
    EXPECT_EQ(first_difference(full(), sizes, [](int, int, int, int) { return true; }), "");
    EXPECT_EQ(first_wrong_box(full(), sizes, Verdicts::exact), "");
  }
}

TEST(Full, looks_like_its_picture) {
  EXPECT_EQ(picture(full(), {1, 1, 1, 3, 5}),
            "#####\n"
            "#####\n"
            "#####\n");
}

}  // namespace
}  // namespace attn
