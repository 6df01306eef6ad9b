// What the host tells a kernel: the records of sequences, the pages, the tiles that queries see.
#include "optimized/source_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "masks/block_mask_builder.h"
#include "masks/causal.h"
#include "masks/window.h"
#include "optimized/path_fixtures.h"

namespace attn::path_test {
namespace {

/// A plan whose arrays stand in host memory.
struct Placed {
  WorkspacePlan plan;
  Source source;
  explicit Placed(const SourcePlan& from) {
    from.upload(plan, source);
    for (const WorkspacePlan::Part& part : plan.parts())
      *part.pointer = const_cast<void*>(part.values);  // read only, below
  }
};

SourcePlan plan_of(const AttentionCall& call, const char* row) {
  return SourcePlan(call, check_call(call, implementation_named(row)));
}

TEST(SourcePlan, OfDenseTensorsHoldsNothing) {
  Attention<half> x({2, 4, 2, 5, 7, 16, 8});
  const Placed placed(plan_of(x.forward_call(), "flash_forward"));
  EXPECT_EQ(placed.plan.bytes(), 0u);
  EXPECT_EQ(placed.source.sequences, nullptr);
  EXPECT_EQ(placed.source.page_table, nullptr);
  EXPECT_EQ(placed.source.tiles.row_begin, nullptr);
  EXPECT_FALSE(placed.source.packed);
  EXPECT_EQ(placed.source.sizes.b, 2);
  EXPECT_EQ(placed.source.sizes.skv, 7);
}

TEST(SourcePlan, OfPackedSequencesHoldsARecordEach) {
  Attention<half> x({1, 4, 2, 9, 20, 16, 8});
  const std::vector<std::int32_t> cu_q = {0, 2, 2, 9}, cu_kv = {0, 0, 11, 20};
  AttentionCall call = x.forward_call();
  call.cu_q = cu_q;
  call.cu_kv = cu_kv;
  const SourcePlan plan = plan_of(call, "packed_forward");
  const Placed placed(plan);
  EXPECT_TRUE(placed.source.packed);
  EXPECT_EQ(placed.source.sizes.b, 3) << "the sequences are the batch";
  EXPECT_EQ(placed.source.sizes.sq, 7) << "the longest";
  EXPECT_EQ(placed.source.sizes.skv, 11);
  for (int s = 0; s < 3; ++s) {
    const SequenceRecord& record = placed.source.sequences[s];
    EXPECT_EQ(record.q_first, cu_q[s]);
    EXPECT_EQ(record.sq, cu_q[s + 1] - cu_q[s]);
    EXPECT_EQ(record.kv_first, cu_kv[s]);
    EXPECT_EQ(record.skv, cu_kv[s + 1] - cu_kv[s]);
    EXPECT_EQ(record.q_offset, 0);
  }
}

TEST(SourcePlan, OfPagesHoldsWhatIsNeededOfTheTable) {
  Attention<half> x({2, 4, 2, 3, 4, 16, 8});  // K and V: 2 pages of 4 slots
  Tensor<std::int32_t, 2> table({2, 3});
  for (std::int32_t& entry : table.values()) entry = 777;
  table(0, 0) = 1, table(0, 1) = 0, table(1, 0) = 1;
  const std::vector<std::int32_t> lengths = {5, 4};
  AttentionCall call = x.forward_call();
  call.lengths = lengths;
  call.page_table = std::as_const(table).view();
  const SourcePlan plan = plan_of(call, "decode_paged");
  const Placed placed(plan);
  EXPECT_EQ(placed.source.max_pages, 3);
  EXPECT_EQ(placed.source.page_size, 4);
  const std::vector<std::int32_t> pages(placed.source.page_table, placed.source.page_table + 6);
  EXPECT_EQ(pages, (std::vector<std::int32_t>{1, 0, -1, 1, -1, -1}));
  EXPECT_EQ(placed.source.sequences[0].skv, 5);
  EXPECT_EQ(placed.source.sequences[0].q_offset, 2);
  EXPECT_EQ(placed.source.sequences[1].q_offset, 1);
  EXPECT_EQ(placed.source.sequences[1].q_first, 0);
}

/// The spans of a block mask reach the kernel under the numbers that it looks for.
TEST(SourcePlan, OfABlockMaskHoldsItsSpans) {
  Attention<half> x({2, 3, 1, 70, 90, 16, 8});
  for (const char* mask : {"kv <= q", "kv / 20 == b", "(kv / 10 + q / 20) % 3 == h", "false"}) {
    x.mask = mask;
    const AttentionCall call = x.forward_call();
    const BlockMask blocks = make_block_mask(call.mask, {2, 3, 1, 70, 90}, {16, 32});
    SourcePlan plan = plan_of(call, "flash_forward");
    plan.visit(blocks);
    const Placed placed(plan);
    const TileSpans& tiles = placed.source.tiles;
    int most = 0;
    for (int b = 0; b < 2; ++b)
      for (int h = 0; h < 3; ++h)
        for (int row = 0; row < 5; ++row) {
          const std::int64_t at = b * tiles.b_stride + h * tiles.h_stride + row;
          std::vector<BlockSpan> spans;
          int count = 0;
          for (std::int64_t s = tiles.row_begin[at]; s < tiles.row_begin[at + 1]; ++s) {
            const std::int32_t* span = tiles.spans + 3 * s;
            spans.push_back({span[0], span[1], static_cast<BlockKind>(span[2])});
            count += span[1] - span[0] + 1;
          }
          EXPECT_TRUE(std::ranges::equal(spans, blocks.row(b, h, row))) << b << h << row;
          most = std::max(most, count);
        }
    EXPECT_EQ(plan.most_tiles(99), most) << mask;
  }
}

TEST(SourcePlan, WithoutSpansARowVisitsAllTiles) {
  Attention<half> x({1, 1, 1, 5, 7, 16, 8});
  EXPECT_EQ(plan_of(x.forward_call(), "flash_forward").most_tiles(99), 99);
}

using IndexRange = Range<std::int64_t>;

/// What keys first to last are to a box of heads and rows, pair by pair.
template <class Mask>
BlockKind kind_by_hand(const Mask& mask, const Sequence& s, const IndexRange& heads,
                       const IndexRange& rows, int first, int last) {
  ExactEnv env{s.sizes};
  const auto index = [&](std::int64_t i) {
    return Index<ExactEnv>{static_cast<ExactEnv::Int>(i), &env};
  };
  std::int64_t attended = 0, pairs = 0;
  for (std::int64_t h = heads.low; h <= heads.high; ++h)
    for (std::int64_t q = rows.low; q <= rows.high; ++q)
      for (int kv = first; kv <= last; ++kv, ++pairs)
        attended += bool(call_mask(mask, index(s.b), index(h), index(q), index(kv)));
  return attended == 0       ? BlockKind::empty
         : attended == pairs ? BlockKind::full
                             : BlockKind::partial;
}

/// The kind of each tile as visible_tiles says; checks that the spans are as BlockMask's are.
std::vector<BlockKind> kinds(const std::vector<BlockSpan>& spans, int tiles) {
  std::vector<BlockKind> kinds(static_cast<std::size_t>(tiles), BlockKind::empty);
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const auto& [first, last, kind] = spans[i];
    EXPECT_TRUE(0 <= first && first <= last && last < tiles && kind != BlockKind::empty);
    if (i > 0) {
      const BlockSpan& before = spans[i - 1];
      EXPECT_TRUE(first > before.last + 1 || (first == before.last + 1 && kind != before.kind));
    }
    for (int t = first; t <= last; ++t) kinds[static_cast<std::size_t>(t)] = kind;
  }
  return kinds;
}

/// `exact`: the mask's intervals lose nothing for such a box.
template <class Mask>
void expect_visible_tiles(const Mask& mask, const IndexRange& heads, int sq, int skv, bool exact) {
  Sequence s;
  s.b = 1;
  s.sizes = {2, 4, 2, sq, skv};
  s.sizes.q_offset = skv - sq;
  for (const int kv_tile : {1, 32, 64}) {
    const IndexRange rows{skv - sq, skv - 1};
    const int tiles = (skv + kv_tile - 1) / kv_tile;
    const std::vector<BlockKind> got = kinds(visible_tiles(mask, s, heads, rows, kv_tile), tiles);
    for (int t = 0; t < tiles; ++t) {
      const BlockKind is = got[static_cast<std::size_t>(t)];
      const BlockKind should =
          kind_by_hand(mask, s, heads, rows, t * kv_tile, std::min((t + 1) * kv_tile, skv) - 1);
      EXPECT_TRUE(is == should || (!exact && is == BlockKind::partial))
          << "tile " << t << " of " << kv_tile << " keys, " << sq << " rows on " << skv;
    }
  }
}

TEST(VisibleTiles, AreThoseOfTheMaskPairByPair) {
  Attention<half> x({2, 4, 2, 3, 200, 16, 8});
  for (const char* text : {"kv <= q", "kv > q", "kv <= q && kv >= q - 40", "true", "false",
                           "kv < 5 || kv >= q - 9", "(kv / 16) % 2 == h % 2", "kv * kv % 7 == 3",
                           "slope[h] < 1 && kv / 50 == b", "bias[kv / 100] > 0"}) {
    SCOPED_TRACE(text);
    x.mask = text;
    const ProgramMask mask = x.call().mask;
    for (const auto& [sq, skv] : {std::pair{1, 200}, {3, 200}, {1, 1}, {2, 129}, {64, 100}}) {
      expect_visible_tiles(mask, {0, 1}, sq, skv, false);
      expect_visible_tiles(mask, {3, 3}, sq, skv, false);
    }
  }
  for (const char* text : {"kv <= q", "kv > q", "true", "false", "kv < 100"}) {
    x.mask = text;
    const ProgramMask mask = x.call().mask;
    for (const auto& [sq, skv] : {std::pair{1, 200}, {3, 200}, {64, 100}})
      expect_visible_tiles(mask, {0, 3}, sq, skv, true);
  }
  expect_visible_tiles(causal(), {0, 3}, 5, 200, false);
  expect_visible_tiles(window(20, 0), {0, 3}, 1, 200, true);
}

TEST(VisibleTiles, AMaskThatTakesScalarsOnlyIsAskedEverywhere) {
  const auto parity = [](int, int, int q, int kv) { return (q + kv) % 2 == 0; };
  Sequence s;
  s.sizes = {1, 1, 1, 1, 100};
  EXPECT_EQ(visible_tiles(parity, s, {0, 0}, {99, 99}, 32),
            (std::vector<BlockSpan>{{0, 3, BlockKind::partial}}));
  s.sizes.skv = 0;
  EXPECT_TRUE(visible_tiles(parity, s, {0, 0}, {0, 0}, 32).empty());
  EXPECT_TRUE(visible_tiles(causal(), s, {0, 0}, {0, 0}, 32).empty());
}

/// The last 1001 keys; counts how often it is asked.
struct CountingWindow {
  int* questions;
  template <class Index>
  auto operator()(Index, Index, Index q, Index kv) const {
    ++*questions;
    return kv <= q && kv >= q - 1000;
  }
};

/// Found in questions that grow with the spans, not the keys: a long cache costs nothing.
TEST(VisibleTiles, AreFoundByHalving) {
  int questions = 0;
  Sequence s;
  s.sizes = {1, 1, 1, 1, 1 << 30};
  const std::int64_t q = (1 << 30) - 1;
  const auto spans = visible_tiles(CountingWindow{&questions}, s, {0, 0}, {q, q}, 64);
  ASSERT_EQ(spans.size(), 2u) << "a partial tile and full ones behind it";
  EXPECT_EQ(spans.front().first, (q - 1000) / 64);
  EXPECT_EQ(spans.back().last, q / 64);
  EXPECT_LE(questions, 4 * 24) << "two an undecided level of 2^24 tiles, at either end of a span";
}

}  // namespace
}  // namespace attn::path_test
