#include "docs/how_to/staircase.h"

#include <gtest/gtest.h>

#include "masks/block_mask_builder.h"
#include "masks/causal.h"
#include "masks/dense_construction.h"
#include "mods/lang/parse.h"
#include "mods/lang/tree_functor.h"

namespace how_to {
namespace {

const attn::Sizes shapes[] = {{1, 2, 1, 5, 8}, {2, 1, 1, 8, 5}, {1, 1, 1, 7, 7}, {1, 1, 1, 1, 6}};

//! [test]
TEST(Staircase, follows_its_formula) {
  for (const attn::Sizes& sizes : shapes)
    for (const int n : {1, 2, 3, 100}) {
      const Staircase mask{{}, n};
      EXPECT_EQ(attn::first_difference(mask, sizes,
                                       [=](int, int, int i, int j) { return j / n <= i / n + 1; }),
                "");
      EXPECT_EQ(attn::first_wrong_box(mask, sizes, attn::Verdicts::sound), "");
    }
}

TEST(Staircase, looks_like_its_picture) {
  EXPECT_EQ(attn::picture(Staircase{{}, 2}, {1, 1, 1, 6, 8}),
            "####....\n"
            "####....\n"
            "######..\n"
            "######..\n"
            "########\n"
            "########\n");
}
//! [test]

//! [blocks]
TEST(Staircase, its_blocks_are_found_without_looking_at_a_pair) {
  const attn::BlockMask blocks =
      attn::make_block_mask(Staircase{{}, 256}, {1, 1, 1, 1 << 16, 1 << 16});
  EXPECT_EQ(blocks.statistics().scanned_elements, 0);
  EXPECT_EQ(blocks.kind(0, 0, 0, 3), attn::BlockKind::full);   // the end of the next step
  EXPECT_EQ(blocks.kind(0, 0, 0, 4), attn::BlockKind::empty);  // beyond it
}
//! [blocks]

TEST(Staircase, combines_with_other_masks) {
  const auto mask = Staircase{{}, 2} && attn::causal();
  EXPECT_EQ(attn::first_difference(mask, shapes[0], [](int, int, int i, int j) { return j <= i; }),
            "");
}

//! [expression]
TEST(Staircase, says_the_same_as_its_expression) {
  const attn::Tables none;
  const attn::TreeMask text(attn::parse_mask("floor_div(kv, 3) <= floor_div(q, 3) + 1"), none);
  for (const attn::Sizes& sizes : shapes)
    EXPECT_EQ(attn::first_difference(Staircase{{}, 3}, sizes,
                                     [&](int b, int h, int i, int j) {
                                       return attn::attends<attn::ExactEnv>(text, sizes, b, h, i,
                                                                            j);
                                     }),
              "");
}
//! [expression]

}  // namespace
}  // namespace how_to
