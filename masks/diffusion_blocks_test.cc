#include "masks/diffusion_blocks.h"

#include <gtest/gtest.h>

#include "masks/dense_construction.h"

namespace attn {
namespace {

TEST(BlockDiffusion, follows_its_formula) {
  for (const auto& [half, n] : {std::pair{4, 2}, {5, 2}, {4, 3}, {3, 1}, {4, 9}})
    for (const Sizes& sizes : {Sizes{1, 2, 1, 2 * half, 2 * half}, Sizes{1, 1, 1, 3, 2 * half},
                               Sizes{1, 1, 1, 2 * half, half + 1}}) {
      const auto mask = block_diffusion(half, n);
      const auto formula = [half = half, n = n](int, int, int i, int j) {
        const bool i_noised = i < half, j_noised = j < half;
        const int a = (i_noised ? i : i - half) / n, c = (j_noised ? j : j - half) / n;
        if (i_noised) return j_noised ? a == c : a > c;
        return !j_noised && a >= c;
      };
      EXPECT_EQ(first_difference(mask, sizes, formula), "");
      EXPECT_EQ(first_wrong_box(mask, sizes, Verdicts::sound), "");
      EXPECT_NO_THROW(check_mask(mask, sizes));
    }
}

TEST(BlockDiffusion, looks_like_its_picture) {
  EXPECT_EQ(picture(block_diffusion(4, 2), {1, 1, 1, 8, 8}),
            "##......\n"
            "##......\n"
            "..####..\n"
            "..####..\n"
            "....##..\n"
            "....##..\n"
            "....####\n"
            "....####\n");
}

TEST(BlockDiffusion, refuses_numbers_out_of_range) {
  EXPECT_THROW(block_diffusion(0, 1), std::invalid_argument);
  EXPECT_THROW(block_diffusion(1, 0), std::invalid_argument);
  EXPECT_THROW(check_mask(block_diffusion(4, 2), {1, 1, 1, 8, 9}), std::invalid_argument);
}

}  // namespace
}  // namespace attn
