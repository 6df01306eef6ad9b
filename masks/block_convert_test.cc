#include "masks/block_convert.h"

#include <gtest/gtest.h>

#include "masks/block_mask_builder.h"
#include "masks/causal.h"
#include "masks/dense.h"

namespace attn {
namespace {

using List = std::vector<std::int32_t>;

TEST(BlockConvert, lists_of_flex_attention) {
  const FlexBlockLists lists = to_flex(make_block_mask(causal(), {2, 3, 3, 6, 8}, {2, 2}));
  EXPECT_EQ(lists.kv_indices.extents(), (std::array<std::int64_t, 4>{1, 1, 3, 4}));
  EXPECT_EQ(lists.kv_num_blocks.values(), (List{1, 1, 1}));
  EXPECT_EQ(lists.kv_indices.values(), (List{0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0}));
  EXPECT_EQ(lists.full_kv_num_blocks.values(), (List{0, 1, 2}));
  EXPECT_EQ(lists.full_kv_indices.values(), (List{0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0}));
}

TEST(BlockConvert, lists_in_any_order_with_anything_past_the_count) {
  const BlockMaskShape shape{1, 1, 1, 5, 1, 1};
  FlexBlockLists lists = to_flex(BlockMask(shape, {0, 0}, {}));
  lists.kv_num_blocks.values() = {2};
  lists.kv_indices.values() = {4, 1, -7, 99, 4};
  lists.full_kv_num_blocks.values() = {2};
  lists.full_kv_indices.values() = {3, 2, 3, 1 << 30, 0};
  EXPECT_EQ(picture(block_mask_from_flex(lists, shape)), ".+##+\n");
  lists.full_kv_num_blocks = {};
  lists.full_kv_indices = {};
  EXPECT_EQ(picture(block_mask_from_flex(lists, shape)), ".+..+\n");
}

TEST(BlockConvert, refuses_lists_that_are_none) {
  const BlockMaskShape shape{1, 1, 1, 3, 1, 1};
  const auto refuses = [&](List count, List list, List full_count, List full_list) {
    FlexBlockLists lists = to_flex(BlockMask(shape, {0, 0}, {}));
    lists.kv_num_blocks.values() = count;
    lists.kv_indices.values() = list;
    lists.full_kv_num_blocks.values() = full_count;
    lists.full_kv_indices.values() = full_list;
    EXPECT_THROW(block_mask_from_flex(lists, shape), std::invalid_argument);
  };
  refuses({4}, {0, 1, 2}, {0}, {0, 0, 0});  // more than there are
  refuses({-1}, {0, 1, 2}, {0}, {0, 0, 0});
  refuses({1}, {3, 0, 0}, {0}, {0, 0, 0});  // out of range
  refuses({1}, {0, 0, 0}, {1}, {-1, 0, 0});
  refuses({2}, {1, 1, 0}, {0}, {0, 0, 0});  // twice
  refuses({1}, {1, 0, 0}, {1}, {1, 0, 0});  // partial and full
  const FlexBlockLists lists = to_flex(BlockMask(shape, {0, 0}, {}));
  EXPECT_THROW(block_mask_from_flex(lists, {1, 1, 1, 4, 1, 1}), std::invalid_argument);
  EXPECT_THROW(block_mask_from_flex(lists, {1, 1, 1, 3, 0, 1}), std::invalid_argument);
}

TEST(BlockConvert, from_dense_broadcasts) {
  const bool padding[2 * 5] = {true, true, false, false, false,  //
                               true, true, true,  true,  true};
  const TensorView<const bool, 4> view{padding, {2, 1, 1, 5}, {5, 7, 9, 1}};  // 7, 9: of no use
  const BlockMaskShape shape{2, 3, 4, 5, 2, 2};
  const BlockMask mask = block_mask_from_dense(view, shape);
  EXPECT_EQ(picture(mask, 0, 2), "#..\n#..\n");
  EXPECT_EQ(picture(mask, 1, 0), "###\n###\n");
  EXPECT_TRUE(mask.shape().shared_hq);
  EXPECT_FALSE(mask.shape().shared_b);
  EXPECT_EQ(make_block_mask(dense(view), {2, 3, 3, 4, 5}, {2, 2}), mask);
  EXPECT_THROW(block_mask_from_dense(view, {3, 3, 4, 5, 2, 2}), std::invalid_argument);
}

TEST(BlockConvert, partial_blocks_ask_the_mask) {
  // The blocks are those of another mask, so that each kind shows where its answer comes from.
  const BlockMask blocks({1, 1, 2, 6, 2, 2}, {0, 2},
                         {{0, 0, BlockKind::full}, {2, 2, BlockKind::partial}});
  bool memory[12];
  const TensorView<bool, 4> out{memory, {1, 1, 2, 6}, {12, 12, 6, 1}};
  const auto mask = [](int, int, int q, int kv) { return kv == 5 - q; };
  write_dense(blocks, mask, {1, 1, 1, 2, 6}, out);
  std::string text;
  for (const bool attends : memory) text += attends ? '#' : '.';
  EXPECT_EQ(text, "##...###..#.");
  EXPECT_THROW(write_dense(blocks, mask, {1, 1, 1, 2, 7}, out), std::invalid_argument);
  EXPECT_THROW(write_dense(blocks, mask, {1, 1, 1, 2, 6}, TensorView<bool, 4>{}),
               std::invalid_argument);
}

TEST(BlockConvert, kinds_need_their_shape) {
  const Tensor<BlockKind, 4> kinds({1, 1, 2, 3});
  EXPECT_NO_THROW(block_mask_from_kinds(kinds.view(), {1, 1, 2, 3, 1, 1}));
  EXPECT_THROW(block_mask_from_kinds(kinds.view(), {1, 1, 3, 3, 1, 1}), std::invalid_argument);
  EXPECT_THROW(block_mask_from_kinds(kinds.view(), {2, 1, 2, 3, 1, 1}), std::invalid_argument);
}

}  // namespace
}  // namespace attn
