// What a block asks of its source: which sequence it works on, and which tiles it visits.
#include "optimized/tile_cursor.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "optimized/simt/memory.h"

namespace attn {
inline namespace ATTN_TARGET {
namespace tile_cursor_test {

struct CursorArgs {
  Source source{};
  int b = 0, h = 0, row = 0, count = 0, skip = 0;
  std::int32_t* visited = nullptr;  ///< how many are left, then tile and whether it is full
};

ATTN_KERNEL list_tiles(const ATTN_GRID_CONSTANT CursorArgs args) {
  using simt::lane;
  const lane<bool> first = simt::lane_id() == 0;
  TileCursor at = visited_tiles(args.source, args.b, args.h, args.row, args.count);
  if (args.skip > 0) at.skip(args.skip);
  std::int64_t out = 0;
  const auto write = [&](int x) {
    simt::stg(args.visited, lane<std::int64_t>(out++), lane<std::int32_t>(x), first);
  };
  write(at.count());
  for (; at.valid(); at.next()) write(at.tile()), write(at.full());
}

/// The tiles that are visited, full ones as ~tile; checks what the cursor says of their number.
std::vector<int> visited(const Source& source, int b, int h, int row, int count, int skip) {
  simt::DeviceBuffer<std::int32_t> out(256);
  simt::launch({1, 1, 1}, 32, 0, {}, list_tiles,
               CursorArgs{source, b, h, row, count, skip, out.data()});
  std::vector<int> tiles;
  for (std::size_t i = 1; out.initialised(i); i += 2)
    tiles.push_back(out[i + 1] != 0 ? ~out[i] : out[i]);
  EXPECT_EQ(out[0], static_cast<int>(tiles.size()));
  return tiles;
}

std::vector<int> without_first(const std::vector<int>& tiles, int n) {
  return {tiles.begin() + std::min<std::ptrdiff_t>(n, std::ssize(tiles)), tiles.end()};
}

TEST(TileCursor, WithoutSpansVisitsEveryTile) {
  for (const int count : {0, 1, 5}) {
    std::vector<int> all;
    for (int tile = 0; tile < count; ++tile) all.push_back(tile);
    for (int skip = 0; skip <= count; ++skip)
      EXPECT_EQ(visited({}, 1, 2, 3, count, skip), without_first(all, skip));
  }
}

TEST(TileCursor, VisitsTheSpansOfItsRow) {
  // Rows of one plane, 2 heads to a batch entry, 2 rows a head: row b * 4 + h * 2 + row.
  const std::vector<std::int64_t> row_begin = {0, 0, 1, 4, 4, 5, 7, 7, 8};
  const std::vector<std::int32_t> spans = {0, 0, 1,                     // row 1
                                           1, 3, 2, 4, 4, 1, 9, 10, 2,  // row 2
                                           7, 7, 2,                     // row 4
                                           0, 1, 1, 3, 3, 2,            // row 5
                                           2, 6, 1};                    // row 7
  const std::vector<std::vector<int>> expected = {
      {}, {0}, {~1, ~2, ~3, 4, ~9, ~10}, {}, {~7}, {0, 1, ~3}, {}, {2, 3, 4, 5, 6}};
  const simt::DeviceBuffer<std::int64_t> begins(row_begin, simt::Access::input);
  const simt::DeviceBuffer<std::int32_t> numbers(spans, simt::Access::input);
  Source source;
  source.tiles = {begins.data(), numbers.data(), 4, 2};
  for (int b = 0; b < 2; ++b)
    for (int h = 0; h < 2; ++h)
      for (int row = 0; row < 2; ++row) {
        const std::vector<int>& all = expected[static_cast<std::size_t>(b * 4 + h * 2 + row)];
        for (int skip = 0; skip <= std::ssize(all); ++skip)
          EXPECT_EQ(visited(source, b, h, row, 99, skip), without_first(all, skip))
              << b << h << row << " without " << skip;
      }
  source.tiles.b_stride = 0;  // one plane for all batch entries
  EXPECT_EQ(visited(source, 1, 1, 0, 99, 0), expected[2]);
  source.tiles.h_stride = 0;
  EXPECT_EQ(visited(source, 1, 1, 1, 99, 0), expected[1]);
}

struct SequenceArgs {
  Source source{};
  int b = 0;
  std::int32_t* fields = nullptr;
};

ATTN_KERNEL describe_sequence(const ATTN_GRID_CONSTANT SequenceArgs args) {
  using simt::lane;
  const KernelSequence s = sequence_of(args.source, args.b);
  const int fields[] = {s.b,         s.batch,         s.q_first,        s.kv_first,      s.sizes.sq,
                        s.sizes.skv, s.sizes.q_start, s.sizes.kv_start, s.sizes.q_offset};
  for (int i = 0; i < 9; ++i)
    simt::stg(args.fields, lane<std::int64_t>(std::int64_t{i}), lane<std::int32_t>(fields[i]),
              simt::lane_id() == 0);
}

std::vector<std::int32_t> sequence(const Source& source, int b) {
  simt::DeviceBuffer<std::int32_t> out(9);
  simt::launch({1, 1, 1}, 32, 0, {}, describe_sequence, SequenceArgs{source, b, out.data()});
  return {out.begin(), out.end()};
}

TEST(SequenceOf, ABlockKnowsItsSequence) {
  using Fields = std::vector<std::int32_t>;
  Source source;
  source.sizes = {3, 2, 1, 10, 20};
  EXPECT_EQ(sequence(source, 2), (Fields{2, 2, 0, 0, 10, 20, 0, 0, 0})) << "dense";
  const std::vector<std::int32_t> records = {0, 4, 0, 9, 0, 4, 6, 9, 11, 0, 10, 0, 20, 0, 5};
  const simt::DeviceBuffer<std::int32_t> memory(records, simt::Access::input);
  source.sequences = reinterpret_cast<const SequenceRecord*>(memory.data());
  EXPECT_EQ(sequence(source, 1), (Fields{1, 1, 4, 9, 6, 11, 0, 0, 0})) << "cached";
  EXPECT_EQ(sequence(source, 2), (Fields{2, 2, 10, 20, 0, 0, 0, 0, 5}));
  source.packed = true;
  EXPECT_EQ(sequence(source, 1), (Fields{1, 0, 4, 9, 6, 11, 4, 9, 0})) << "packed";
}

}  // namespace tile_cursor_test
}  // namespace ATTN_TARGET
}  // namespace attn
