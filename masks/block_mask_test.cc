#include "masks/block_mask.h"

#include <gtest/gtest.h>

#include <string>

#include "masks/block_brute_force.h"
#include "masks/block_mask_builder.h"
#include "masks/causal.h"
#include "masks/full.h"

namespace attn {
namespace {

constexpr BlockKind full_block = BlockKind::full, partial = BlockKind::partial;

/// One head of 6 x 10 pairs in blocks of 2 x 2:
///
///     ##+..
///     .....
///     +..##
BlockMask example() {
  return BlockMask({1, 1, 6, 10, 2, 2}, {0, 2, 2, 4},
                   {{0, 1, full_block}, {2, 2, partial}, {0, 0, partial}, {3, 4, full_block}});
}

template <class F>
std::string message_of(F f) {
  try {
    f();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "nothing thrown";
}

TEST(BlockMask, rows_kinds_and_picture) {
  const BlockMask mask = example();
  EXPECT_EQ(picture(mask), "##+..\n.....\n+..##\n");
  EXPECT_EQ(mask.row(0, 0, 0).size(), 2u);
  EXPECT_TRUE(mask.row(0, 0, 1).empty());
  EXPECT_EQ(mask.row(0, 0, 2)[1], (BlockSpan{3, 4, full_block}));
  EXPECT_EQ(mask.kind(0, 0, 0, 1), full_block);
  EXPECT_EQ(mask.kind(0, 0, 0, 2), partial);
  EXPECT_EQ(mask.kind(0, 0, 0, 3), BlockKind::empty);
  EXPECT_EQ(mask.kind(0, 0, 2, 2), BlockKind::empty);
  EXPECT_EQ(mask.kind(0, 0, 2, 4), full_block);
}

TEST(BlockMask, statistics_count_every_head) {
  const BlockMaskStatistics s = example().statistics();
  EXPECT_EQ(s.full_blocks, 4);
  EXPECT_EQ(s.partial_blocks, 2);
  EXPECT_EQ(s.empty_blocks, 9);
  EXPECT_EQ(s.sparsity, 9.0 / 15);
  EXPECT_EQ(s.spans, 4);
  EXPECT_EQ(s.bytes, 4 * sizeof(std::int64_t) + 4 * sizeof(BlockSpan));

  const BlockMaskShape shared{3, 4, 2, 4, 2, 2, true, true};
  const BlockMaskStatistics t = BlockMask(shared, {0, 1}, {{0, 0, full_block}}).statistics();
  EXPECT_EQ(t.full_blocks, 12);
  EXPECT_EQ(t.empty_blocks, 12);
  EXPECT_EQ(t.spans, 1);
}

TEST(BlockMask, equality_is_of_what_the_blocks_say) {
  const BlockMaskShape shared{2, 1, 2, 4, 2, 2, true, false}, apart{2, 1, 2, 4, 2, 2};
  const BlockMask one(shared, {0, 1}, {{0, 1, partial}});
  const BlockMask two(apart, {0, 1, 2}, {{0, 1, partial}, {0, 1, partial}});
  const BlockMask other(apart, {0, 1, 2}, {{0, 1, partial}, {0, 1, full_block}});
  EXPECT_EQ(one, two);
  EXPECT_NE(one, other);
  EXPECT_NE(two, other);
  EXPECT_NE(one, BlockMask({2, 1, 2, 3, 2, 2, true, false}, {0, 1}, {{0, 1, partial}}));
  EXPECT_TRUE(share_equal_planes(two).shape().shared_b);
  EXPECT_EQ(share_equal_planes(two), two);
  EXPECT_FALSE(share_equal_planes(two, false).shape().shared_b);
  EXPECT_FALSE(share_equal_planes(other).shape().shared_b);
}

TEST(BlockMask, refuses_spans_that_are_no_rows) {
  const BlockMaskShape shape{1, 1, 2, 8, 2, 2};
  const auto refuses = [&](std::vector<BlockSpan> spans) {
    const auto count = static_cast<std::int64_t>(spans.size());
    EXPECT_THROW(BlockMask(shape, {0, count}, spans), std::invalid_argument);
  };
  refuses({{0, 4, partial}});  // beyond the last block
  refuses({{-1, 0, partial}});
  refuses({{2, 1, partial}});
  refuses({{0, 0, BlockKind::empty}});
  refuses({{0, 0, static_cast<BlockKind>(3)}});
  refuses({{2, 2, partial}, {0, 0, partial}});     // not sorted
  refuses({{0, 1, partial}, {1, 2, full_block}});  // overlap
  refuses({{0, 1, partial}, {2, 2, partial}});     // not merged
  EXPECT_NO_THROW(BlockMask(shape, {0, 2}, {{0, 1, partial}, {2, 2, full_block}}));
  EXPECT_THROW(BlockMask(shape, {0}, {}), std::invalid_argument);
  EXPECT_THROW(BlockMask(shape, {0, 1}, {}), std::invalid_argument);
  EXPECT_THROW(BlockMask({1, 1, 4, 8, 2, 2}, {0, 1, 0}, {}), std::invalid_argument);
}

TEST(BlockMask, transposed) {
  const BlockMask t = transpose(example());
  EXPECT_EQ(picture(t), "#.+\n#..\n+..\n..#\n..#\n");
  EXPECT_EQ(t.shape().sq, 10);
  EXPECT_EQ(t.shape().skv, 6);
  EXPECT_EQ(transpose(t), example());
  const int length = 1 << 20;
  const BlockMask causal_mask = make_block_mask(causal(), {1, 1, 1, length, length});
  const BlockMask seen_from_keys = transpose(causal_mask);
  EXPECT_EQ(seen_from_keys.spans().size(), 16383u);
  EXPECT_EQ(seen_from_keys.row(0, 0, 5)[0], (BlockSpan{5, 5, partial}));
  EXPECT_EQ(seen_from_keys.row(0, 0, 5)[1], (BlockSpan{6, 8191, full_block}));
  EXPECT_EQ(transpose(seen_from_keys), causal_mask);
}

TEST(BlockMask, retiled) {
  EXPECT_EQ(picture(retile(example(), 2, 4)), "#+.\n...\n++#\n");  // the last tile holds one block
  EXPECT_EQ(picture(retile(example(), 6, 4)), "+++\n");
  EXPECT_EQ(picture(retile(example(), 2, 1)), "####++....\n..........\n++....####\n");
  EXPECT_EQ(picture(retile(example(), 3, 3)), "++..\n+.++\n");
  EXPECT_EQ(picture(retile(make_block_mask(full(), {1, 1, 1, 5, 7}), 2, 3)), "###\n###\n###\n");
  EXPECT_EQ(message_of([] { retile(example(), 0, 4); }),
            "block mask: q_block = 0, expected 1 or more");
}

// pytorch #139462: with a mask built for 128 x 256 and used for 2 x 2, batches after the first
// were zero.
TEST(BlockMask, a_part_of_a_longer_mask_is_right_in_every_batch_entry) {
  BlockMaskOptions options;
  options.across_b = Sharing::never;
  const BlockMask longer = make_block_mask(causal(), {2, 1, 1, 128, 256}, options);
  BlockMaskPart used;
  used.q_count = used.kv_count = 2;
  const BlockMask part = slice(longer, used);
  for (int b = 0; b < 2; ++b) EXPECT_EQ(picture(part, b), "+\n");
  EXPECT_EQ(part, make_block_mask(causal(), {2, 1, 1, 2, 2}));
}

// pytorch #164702: a slice lost its mask function. Here blocks and function are apart: the blocks
// of a slice are those of the function at shifted indices.
TEST(BlockMask, a_slice_is_the_mask_at_shifted_indices) {
  const auto mask = [](auto b, auto h, auto q, auto kv) { return kv <= q + 4 * h - 8 * b; };
  const auto shifted = [&](auto b, auto h, auto q, auto kv) {
    return mask(b + 1, h + 2, q + 4, kv + 8);
  };
  const BlockMask whole = make_block_mask(mask, {3, 4, 4, 20, 30}, {4, 4});
  const BlockMask part = slice(whole, {1, 2, 2, 2, 4, 12, 8, 22});
  EXPECT_EQ(part, make_block_mask(shifted, {2, 2, 2, 12, 22}, {4, 4}));
  EXPECT_EQ(first_wrong_block(part, shifted, Sizes{2, 2, 2, 12, 22}), "");
}

TEST(BlockMask, a_slice_keeps_shared_planes) {
  const BlockMask mask = make_block_mask(causal(), {4, 4, 4, 8, 8}, {4, 4});
  BlockMaskPart part;
  part.b_first = 3;
  part.h_first = 1;
  part.h_count = 2;
  const BlockMask sliced = slice(mask, part);
  EXPECT_EQ(sliced.shape().b, 1);
  EXPECT_EQ(sliced.shape().hq, 2);
  EXPECT_EQ(sliced.spans().size(), mask.spans().size());
}

TEST(BlockMask, refuses_slices_outside) {
  const auto refusal = [](const BlockMaskPart& part) {
    return message_of([&] { slice(example(), part); });
  };
  BlockMaskPart part;
  part.q_first = 7;
  EXPECT_EQ(refusal(part), "slice: q from 7, count -1, expected within 0 to 6");
  part = {};
  part.kv_first = 4;
  part.kv_count = 7;
  EXPECT_EQ(refusal(part), "slice: kv from 4, count 7, expected within 0 to 10");
  part = {};
  part.b_first = -1;
  EXPECT_NE(refusal(part), "nothing thrown");
  part = {};
  part.h_count = 2;
  EXPECT_NE(refusal(part), "nothing thrown");
}

TEST(BlockMask, a_large_picture_is_drawn_in_larger_tiles) {
  const int length = 1 << 20;
  EXPECT_EQ(picture(make_block_mask(causal(), {1, 1, 1, length, length}), 0, 0, 4),
            "+...\n#+..\n##+.\n###+\n");
  EXPECT_EQ(picture(example(), 0, 0, 2), "+.\n+#\n");
  EXPECT_THROW(picture(example(), 1, 0), std::invalid_argument);
  EXPECT_THROW(picture(example(), 0, 0, 0), std::invalid_argument);
}

}  // namespace
}  // namespace attn
