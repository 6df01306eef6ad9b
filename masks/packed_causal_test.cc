#include "masks/packed_causal.h"

#include <gtest/gtest.h>

#include "masks/causal.h"
#include "masks/dense_construction.h"
#include "masks/document_wise.h"

namespace attn {
namespace {

TEST(PackedCausal, is_causal_inside_documents) {
  const auto starts = document_starts({3, 1, 4}), ids = document_ids({3, 1, 4});
  const auto mask = packed_causal(starts);
  for (const Sizes& sizes : {Sizes{2, 2, 1, 8, 8}, Sizes{1, 1, 1, 8, 5}, Sizes{1, 1, 1, 3, 8}}) {
    EXPECT_EQ(first_difference(mask, sizes,
                               [&](int, int, int i, int j) { return starts(i) <= j && j <= i; }),
              "");
    EXPECT_EQ(first_wrong_box(mask, sizes, Verdicts::sound), "");
    EXPECT_EQ(picture(mask, sizes), picture(causal() && document(ids), sizes));
    EXPECT_NO_THROW(check_mask(mask, sizes));
  }
}

TEST(PackedCausal, a_table_a_batch_entry) {
  Tensor<std::int32_t, 2> starts({2, 4});
  starts.values() = {0, 0, 2, 2, 0, 1, 1, 1};
  const Sizes sizes{2, 1, 1, 4, 4};
  EXPECT_EQ(first_difference(packed_causal(starts), sizes,
                             [&](int b, int, int i, int j) { return starts(b, i) <= j && j <= i; }),
            "");
}

TEST(PackedCausal, looks_like_its_picture) {
  const auto starts = document_starts({3, 2, 2});
  EXPECT_EQ(picture(packed_causal(starts), {1, 1, 1, 7, 7}),
            "#......\n"
            "##.....\n"
            "###....\n"
            "...#...\n"
            "...##..\n"
            ".....#.\n"
            ".....##\n");
}

TEST(PackedCausal, refuses_a_short_table) {
  const auto starts = document_starts({3});
  EXPECT_THROW(check_mask(packed_causal(starts), {1, 1, 1, 4, 3}), std::invalid_argument);
}

}  // namespace
}  // namespace attn
