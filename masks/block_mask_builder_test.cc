#include "masks/block_mask_builder.h"

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "masks/block_brute_force.h"
#include "masks/causal.h"
#include "masks/dense.h"
#include "masks/document.h"
#include "masks/full.h"
#include "masks/window.h"
#include "mods/lang/parse.h"
#include "mods/lang/tree_functor.h"

namespace attn {
namespace {

BlockMaskOptions blocks(int q_block, int kv_block) { return {q_block, kv_block}; }

template <class F>
std::string message_of(F f) {
  try {
    f();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "nothing thrown";
}

TEST(BlockMaskBuilder, causal_looks_like_its_picture) {
  EXPECT_EQ(picture(make_block_mask(causal(), {1, 1, 1, 8, 8}, blocks(2, 2))),
            "+...\n"
            "#+..\n"
            "##+.\n"
            "###+\n");
  EXPECT_EQ(picture(make_block_mask(causal(bottom_right), {1, 1, 1, 5, 11}, blocks(2, 3))),
            "##+.\n"
            "###+\n"
            "####\n");  // the last block of keys holds two, 9 and 10
}

TEST(BlockMaskBuilder, a_million_tokens_of_causal) {
  const int length = 1 << 20;
  const BlockMask mask = make_block_mask(causal(), {1, 1, 1, length, length});
  const BlockMaskStatistics s = mask.statistics();
  EXPECT_EQ(s.partial_blocks, 8192);
  EXPECT_EQ(s.full_blocks, 8192 * 8191 / 2);
  EXPECT_EQ(s.empty_blocks, 8192 * 8191 / 2);
  EXPECT_EQ(s.spans, 16383);
  EXPECT_EQ(s.scanned_elements, 0);
  EXPECT_TRUE(s.ran_on_intervals);
  EXPECT_LE(s.bytes, 1u << 20);
}

TEST(BlockMaskBuilder, documents_of_a_million_tokens) {
  const int length = 1 << 20;
  std::vector<std::int64_t> lengths;
  std::int64_t expected = 0;  // blocks of 128 that hold a pair, counted document by document
  std::int64_t start = 0;
  for (int n = 0; start < length; ++n) {
    lengths.push_back(std::min<std::int64_t>(500 + 37 * (n % 100), length - start));
    start += lengths.back();
  }
  const Tensor<std::int32_t, 1> ids = document_ids(lengths);
  std::vector<std::int64_t> first_column(8192, 8192);  // of each row of blocks
  start = 0;
  for (const std::int64_t n : lengths) {
    for (std::int64_t r = start / 128; r <= (start + n - 1) / 128; ++r)
      first_column[r] = std::min(first_column[r], start / 128);
    start += n;
  }
  for (std::int64_t r = 0; r < 8192; ++r) expected += r - first_column[r] + 1;
  const BlockMaskStatistics s =
      make_block_mask(causal() && document(ids), {1, 1, 1, length, length}).statistics();
  EXPECT_EQ(s.full_blocks + s.partial_blocks, expected);
  EXPECT_LT(s.interval_questions, 200000);
  EXPECT_LT(s.scanned_elements, length);
}

TEST(BlockMaskBuilder, any_block_size_and_tails) {
  const Sizes sizes{1, 1, 1, 29, 37};
  for (const int q_block : {1, 3, 8, 29, 64})
    for (const int kv_block : {1, 5, 16, 37, 100})
      EXPECT_EQ(first_wrong_block(
                    make_block_mask(window(6, 2, bottom_right), sizes, blocks(q_block, kv_block)),
                    window(6, 2, bottom_right), sizes),
                "");
  const int huge = std::numeric_limits<int>::max();
  EXPECT_EQ(picture(make_block_mask(causal(), sizes, blocks(huge, huge))), "+\n");
}

/// Remembers the largest indices it was asked about, of any number type.
struct Watched : MaskBase {
  int* most_q;
  int* most_kv;

  static int largest(int i) { return i; }
  static int largest(const RangeEnv::Int& i) { return static_cast<int>(i.high); }
  static int largest(const DependentNumber&) { return 0; }

  template <class Index>
  auto operator()(Index, Index, Index q, Index kv) const {
    *most_q = std::max(*most_q, largest(q.value));
    *most_kv = std::max(*most_kv, largest(kv.value));
    return floor_mod(q * 7 + kv * 3, 11) < 5;
  }
};

// pytorch #137801: a table of S entries was read beyond S where S is no multiple of the block.
TEST(BlockMaskBuilder, asks_about_no_index_beyond_the_sequence) {
  int q = 0, kv = 0;
  make_block_mask(Watched{{}, &q, &kv}, {1, 1, 1, 130, 254}, blocks(128, 128));
  EXPECT_EQ(q, 129);
  EXPECT_EQ(kv, 253);
  const int length = 2046;
  const Tensor<std::int32_t, 1> ids = document_ids({1000, 1000, 46});
  EXPECT_NO_THROW(make_block_mask(document(ids), {1, 1, 1, length, length}));
}

// pytorch #159247: keys beyond a cache of 64 were visible in a block of 128.
TEST(BlockMaskBuilder, a_full_tail_block_ends_with_the_sequence) {
  const BlockMask mask = make_block_mask(full(), {1, 1, 1, 3, 70}, blocks(128, 128));
  EXPECT_EQ(picture(mask), "#\n");
  EXPECT_EQ(retile(mask, 1, 32).shape().kv_blocks(), 3);
}

// yalis #53: a mask that reads b was built with one plane for the whole batch.
TEST(BlockMaskBuilder, planes_are_shared_only_where_that_is_right) {
  const auto per_batch = Tensor<std::int32_t, 1>({3});
  Tensor<std::int32_t, 1> offsets({3});
  offsets.values() = {0, 4, 8};
  const Sizes sizes{3, 2, 1, 16, 24};
  const auto shares = [](const BlockMask& mask) {
    return std::to_string(mask.shape().shared_b) + std::to_string(mask.shape().shared_hq);
  };
  const auto by_batch = causal(diagonal_offset(offsets));
  const BlockMask built = make_block_mask(by_batch, sizes, blocks(4, 4));
  EXPECT_EQ(shares(built), "01");
  EXPECT_EQ(first_wrong_block(built, by_batch, sizes), "");
  EXPECT_NE(picture(built, 0, 0), picture(built, 1, 0));

  const auto by_head = [](auto, auto h, auto q, auto kv) { return kv <= q + 3 * h; };
  const BlockMask heads = make_block_mask(by_head, sizes, blocks(4, 4));
  EXPECT_EQ(shares(heads), "10");
  EXPECT_EQ(first_wrong_block(heads, by_head, sizes), "");

  EXPECT_EQ(shares(make_block_mask(causal(), sizes, blocks(4, 4))), "11");
  // It reads b, but to no effect on the blocks.
  EXPECT_EQ(shares(make_block_mask(causal(diagonal_offset(per_batch)), sizes, blocks(4, 4))), "11");

  BlockMaskOptions apart = blocks(4, 4);
  apart.across_b = apart.across_hq = Sharing::never;
  EXPECT_EQ(shares(make_block_mask(causal(), sizes, apart)), "00");
  EXPECT_EQ(make_block_mask(causal(), sizes, apart),
            make_block_mask(causal(), sizes, blocks(4, 4)));

  BlockMaskOptions together = blocks(4, 4);
  together.across_b = Sharing::required;
  EXPECT_NO_THROW(make_block_mask(by_head, sizes, together));
  EXPECT_EQ(message_of([&] { make_block_mask(by_batch, sizes, together); }),
            "across_b: required, but the mask has other blocks for another b, expected "
            "Sharing::automatic or a mask that ignores b");
}

bool within_three(int, int, int q, int kv) { return kv <= q && q < kv + 3; }

TEST(BlockMaskBuilder, a_function_is_a_mask) {
  const Sizes sizes{1, 1, 1, 9, 12};
  const BlockMask mask = make_block_mask(within_three, sizes, blocks(2, 2));
  EXPECT_EQ(first_wrong_block(mask, within_three, sizes), "");
  EXPECT_FALSE(mask.statistics().ran_on_intervals);
}

TEST(BlockMaskBuilder, scalar_masks_are_looked_at_pair_by_pair) {
  const Sizes sizes{2, 1, 1, 9, 12};
  const auto plain = [](int b, int, int q, int kv) { return kv <= q + 4 * b; };
  const BlockMask mask = make_block_mask(plain, sizes, blocks(4, 4));
  EXPECT_EQ(first_wrong_block(mask, plain, sizes), "");
  EXPECT_FALSE(mask.shape().shared_b);
  EXPECT_FALSE(mask.statistics().ran_on_intervals);
  EXPECT_EQ(mask.statistics().interval_questions, 0);
  EXPECT_GT(mask.statistics().scanned_elements, 0);
  BlockMaskOptions together = blocks(4, 4);
  together.across_b = Sharing::required;
  EXPECT_THROW(make_block_mask(plain, sizes, together), std::invalid_argument);

  // One part of a mask takes scalars only: the other still decides by intervals.
  const auto mixed = causal() && plain;
  const BlockMask both = make_block_mask(mixed, sizes, blocks(4, 4));
  EXPECT_EQ(first_wrong_block(both, mixed, sizes), "");
  EXPECT_TRUE(both.statistics().ran_on_intervals);
  EXPECT_LT(both.statistics().scanned_elements, 2 * 9 * 12);
}

TEST(BlockMaskBuilder, exact_where_intervals_cannot_decide) {
  const Sizes sizes{1, 1, 1, 48, 48};
  const auto even = [](auto, auto, auto q, auto kv) { return floor_mod(q - kv, 2) == 0; };
  const auto always = any_of(even, negate(even));  // undecided on every box of more than one pair
  EXPECT_EQ(picture(make_block_mask(always, sizes, blocks(16, 24))), "##\n##\n##\n");
  EXPECT_EQ(picture(make_block_mask(negate(always), sizes, blocks(16, 24))), "..\n..\n..\n");
  // One pair of a block of 48 x 48.
  const auto one = [](auto, auto, auto q, auto kv) { return q * 48 + kv == 1235; };
  EXPECT_EQ(picture(make_block_mask(one, sizes, blocks(48, 48))), "+\n");
  EXPECT_EQ(picture(make_block_mask(all_of(one, even), sizes, blocks(48, 48))), "+\n");
}

Expression parsed(const std::string& text, const Tables& tables) {
  return parse_mask(text, tables.declarations());
}

TEST(BlockMaskBuilder, a_read_out_of_range_is_an_error_not_an_answer) {
  const Sizes sizes{1, 1, 1, 40, 40};
  Tensor<std::int32_t, 1> ids({30});
  Tables tables;
  tables.add("doc", ids.view());
  // Every entry is 0, so that the part in range answers "yes" for every box.
  EXPECT_EQ(message_of([&] {
              make_block_mask(TreeMask(parsed("doc[kv] == 0", tables), tables), sizes,
                              blocks(8, 8));
            }),
            "doc: index 30 in axis 0 of shape [30], expected 0 to 29");
  // Guarded reads are fine.
  const TreeMask guarded(parsed("kv < 30 && doc[kv < 30 ? kv : 0] == 0", tables), tables);
  EXPECT_EQ(first_wrong_block(make_block_mask(guarded, sizes, blocks(8, 8)), guarded, sizes), "");
  const TreeMask clamped(parsed("doc[clamp(kv, 0, 29)] == 0", tables), tables);
  EXPECT_EQ(make_block_mask(clamped, sizes, blocks(8, 8)).statistics().scanned_elements, 0);
}

TEST(BlockMaskBuilder, not_a_number_in_a_table_decides_nothing) {
  const Sizes sizes{1, 1, 1, 8, 64};
  Tensor<float, 1> gate({64});
  for (int i = 0; i < 64; ++i) gate(i) = 1;
  gate(5) = std::numeric_limits<float>::quiet_NaN();
  gate(50) = -1;
  Tables tables;
  tables.add("gate", gate.view());
  for (const char* text :
       {"gate[kv] > 0", "!(gate[kv] > 0)", "tanh(gate[kv]) <= 1", "gate[kv] <= inf",
        "gate[kv] * 0 == 0", "abs(gate[kv]) >= 0", "sin(gate[kv]) < 2"}) {
    const TreeMask mask(parsed(text, tables), tables);
    EXPECT_EQ(first_wrong_block(make_block_mask(mask, sizes, blocks(4, 16)), mask, sizes), "")
        << text;
  }
}

TEST(BlockMaskBuilder, refuses_arithmetic_beyond_32_bits) {
  const auto product = [](auto, auto, auto q, auto kv) { return q * kv >= 0; };
  EXPECT_THROW(make_block_mask(product, {1, 1, 1, 1 << 20, 1 << 20}), std::invalid_argument);
  EXPECT_NO_THROW(make_block_mask(product, {1, 1, 1, 1 << 10, 1 << 10}));
}

TEST(BlockMaskBuilder, refuses_bad_sizes_and_tables) {
  const Sizes sizes{1, 1, 1, 8, 8};
  EXPECT_EQ(message_of([&] { make_block_mask(causal(), sizes, blocks(0, 8)); }),
            "block mask: q_block = 0, expected 1 or more");
  EXPECT_EQ(message_of([&] { make_block_mask(causal(), sizes, blocks(8, -3)); }),
            "block mask: kv_block = -3, expected 1 or more");
  EXPECT_EQ(message_of([&] {
              make_block_mask(causal(), {1, 1, 1, -1, 8});
            }),
            "block mask: sq = -1, expected 0 or more");
  const Tensor<std::int32_t, 1> ids = document_ids({4, 3});
  EXPECT_EQ(message_of([&] { make_block_mask(document(ids), sizes); }),
            "document: q_ids has shape [1, 7], expected [1 or B = 1, at least Sq = 8]");
}

TEST(BlockMaskBuilder, empty_problems_are_valid) {
  for (const Sizes& sizes : {Sizes{0, 1, 1, 8, 8}, Sizes{1, 0, 0, 8, 8}, Sizes{1, 1, 1, 0, 8},
                             Sizes{1, 1, 1, 8, 0}, Sizes{}}) {
    const BlockMask mask = make_block_mask(causal(), sizes, blocks(4, 4));
    EXPECT_TRUE(mask.spans().empty());
    EXPECT_EQ(mask.statistics().full_blocks, 0);
    EXPECT_EQ(transpose(transpose(mask)), mask);
    EXPECT_EQ(retile(mask, 3, 3).statistics().spans, 0);
  }
  EXPECT_EQ(picture(make_block_mask(causal(), {1, 1, 1, 8, 0}, blocks(4, 4))), "\n\n");
}

}  // namespace
}  // namespace attn
