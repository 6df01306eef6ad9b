#include "masks/streaming.h"

#include <gtest/gtest.h>

#include "masks/dense_construction.h"

namespace attn {
namespace {

TEST(Streaming, follows_its_formula) {
  for (const Sizes& sizes : {Sizes{1, 2, 1, 5, 8}, Sizes{1, 1, 1, 8, 5}, Sizes{1, 1, 1, 1, 6}})
    for (const int sinks : {0, 1, 3})
      for (const int left : {0, 1, 50}) {
        const auto mask = streaming(sinks, left);
        EXPECT_EQ(first_difference(mask, sizes,
                                   [=](int, int, int i, int j) {
                                     return j <= i && (j < sinks || i - j <= left);
                                   }),
                  "");
        EXPECT_EQ(first_wrong_box(mask, sizes, Verdicts::sound), "");
      }
}

TEST(Streaming, looks_like_its_picture) {
  EXPECT_EQ(picture(streaming(2, 1), {1, 1, 1, 8, 8}),
            "#.......\n"
            "##......\n"
            "###.....\n"
            "####....\n"
            "##.##...\n"
            "##..##..\n"
            "##...##.\n"
            "##....##\n");
}

TEST(Streaming, refuses_negative_numbers) {
  EXPECT_THROW(streaming(-1, 0), std::invalid_argument);
  EXPECT_THROW(streaming(0, -1), std::invalid_argument);
}

}  // namespace
}  // namespace attn
