#include "masks/draft_tree.h"

#include <gtest/gtest.h>

#include "masks/dense_construction.h"

namespace attn {
namespace {

// Parents -1 0 0 1: row i lists token i and its ancestors.
const bool tree[] = {true, false, false, false,  //
                     true, true,  false, false,  //
                     true, false, true,  false,  //
                     true, true,  false, true};
const Captured<2, bool> ancestor(TensorView<const bool, 2>{tree, {4, 4}, {4, 1}});

TEST(DraftTree, follows_its_formula) {
  for (const int prefix : {0, 1, 2, 7})
    for (const Sizes& sizes : {Sizes{1, 2, 1, 4, prefix + 4}, Sizes{1, 1, 1, 2, prefix + 3}}) {
      const auto mask = draft_tree(prefix, ancestor);
      EXPECT_EQ(first_difference(mask, sizes,
                                 [=](int, int, int i, int j) {
                                   return j < prefix || tree[4 * i + (j - prefix)];
                                 }),
                "");
      EXPECT_EQ(first_wrong_box(mask, sizes, Verdicts::sound), "");
      EXPECT_NO_THROW(check_mask(mask, sizes));
    }
}

TEST(DraftTree, looks_like_its_picture) {
  EXPECT_EQ(picture(draft_tree(2, ancestor), {1, 1, 1, 4, 6}),
            "###...\n"
            "####..\n"
            "###.#.\n"
            "####.#\n");
}

TEST(DraftTree, refuses_a_table_that_does_not_cover) {
  EXPECT_THROW(draft_tree(-1, ancestor), std::invalid_argument);
  EXPECT_THROW(check_mask(draft_tree(2, ancestor), {1, 1, 1, 5, 6}), std::invalid_argument);
  EXPECT_THROW(check_mask(draft_tree(2, ancestor), {1, 1, 1, 4, 7}), std::invalid_argument);
}

}  // namespace
}  // namespace attn
