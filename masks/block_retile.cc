#include <algorithm>
#include <stdexcept>
#include <string>

#include "masks/block_mask.h"
#include "masks/block_spans.h"

namespace attn {
namespace {

using Spans = std::vector<BlockSpan>;

/// Appends to a row, merging with the span before.
void append(Spans& row, std::int32_t first, std::int32_t last, BlockKind kind) {
  if (kind == BlockKind::empty || first > last) return;
  if (!row.empty() && row.back().last + 1 == first && row.back().kind == kind)
    row.back().last = last;
  else
    row.push_back({first, last, kind});
}

/// What two rows of blocks say together: where both agree that, else partial.
void join(std::span<const BlockSpan> a, std::span<const BlockSpan> b, int columns, Spans& joined) {
  joined.clear();
  for_each_stretch(a, b, columns, [&](int first, int last, BlockKind x, BlockKind y) {
    append(joined, first, last, x == y ? x : BlockKind::partial);
  });
}

/// Indices first to end (one past the last) of an axis, cut anew.
struct Cut {
  std::int64_t first, end;
  int old_block, new_block;

  int count() const { return static_cast<int>(end - first); }
  std::int64_t blocks() const { return (end - first + new_block - 1) / new_block; }
};

/// Spans of old key blocks become spans of new ones. Only whole new blocks inherit a kind; those at
/// the two ends of a span are partial.
void recut(std::span<const BlockSpan> old, const Cut& keys, std::int64_t row,
           BlockSpanCollector& out) {
  const std::int64_t n = keys.end - keys.first, tile = keys.new_block;
  for (const BlockSpan& span : old) {
    const std::int64_t from =
        std::max<std::int64_t>(std::int64_t{span.first} * keys.old_block - keys.first, 0);
    const std::int64_t to =
        std::min((std::int64_t{span.last} + 1) * keys.old_block - keys.first, n);
    if (from >= to) continue;
    const std::int64_t whole_from = (from + tile - 1) / tile;
    const std::int64_t whole_to = to == n ? keys.blocks() : to / tile;  // one past the last
    const auto add = [&](std::int64_t first, std::int64_t end, BlockKind kind) {
      if (first < end)
        out.append(row, static_cast<std::int32_t>(first), static_cast<std::int32_t>(end - 1), kind);
    };
    if (whole_from > whole_to) {  // inside one new block
      add(from / tile, from / tile + 1, BlockKind::partial);
      continue;
    }
    add(from / tile, whole_from, BlockKind::partial);
    add(whole_from, whole_to, span.kind);
    add(whole_to, (to + tile - 1) / tile, BlockKind::partial);
  }
}

/// One plane of blocks after another, cut anew: rows from `first_row` on.
void recut_plane(const BlockMask& mask, int b, int h, const Cut& queries, const Cut& keys,
                 std::int64_t first_row, BlockSpanCollector& out) {
  const int columns = mask.shape().kv_blocks();
  Spans all, joined;
  for (std::int64_t i = 0; i < queries.blocks(); ++i) {
    const std::int64_t from = queries.first + i * queries.new_block;
    const std::int64_t to = std::min(from + queries.new_block, queries.end);
    const int first = static_cast<int>(from / queries.old_block);
    const int last = static_cast<int>((to - 1) / queries.old_block);
    std::span<const BlockSpan> row = mask.row(b, h, first);
    for (int r = first + 1; r <= last; ++r) {
      join(row, mask.row(b, h, r), columns, joined);
      std::swap(all, joined);
      row = all;
    }
    recut(row, keys, first_row + i, out);
  }
}

void check_axis(const char* name, int first, int& count, int length) {
  if (count == to_the_end && first <= length) count = length - first;
  if (first < 0 || count < 0 || std::int64_t{first} + count > length)
    throw std::invalid_argument("slice: " + std::string(name) + " from " + std::to_string(first) +
                                ", count " + std::to_string(count) + ", expected within 0 to " +
                                std::to_string(length));
}

BlockMask recut_part(const BlockMask& mask, const BlockMaskPart& part, int q_block, int kv_block) {
  const BlockMaskShape& old = mask.shape();
  BlockMaskShape shape{part.b_count, part.h_count, part.q_count, part.kv_count,
                       q_block,      kv_block,     old.shared_b, old.shared_hq};
  shape.check();
  const Cut queries{part.q_first, std::int64_t{part.q_first} + part.q_count, old.q_block, q_block};
  const Cut keys{part.kv_first, std::int64_t{part.kv_first} + part.kv_count, old.kv_block,
                 kv_block};
  BlockSpanCollector out(shape.stored_rows());
  std::int64_t row = 0;
  for (int b = 0; b < shape.stored_b(); ++b)
    for (int h = 0; h < shape.stored_hq(); ++h, row += shape.q_blocks())
      recut_plane(mask, part.b_first + b, part.h_first + h, queries, keys, row, out);
  return out.finish(shape, mask.statistics());
}

}  // namespace

BlockMask retile(const BlockMask& mask, int q_tile, int kv_tile) {
  const BlockMaskShape& shape = mask.shape();
  return recut_part(mask, {0, shape.b, 0, shape.hq, 0, shape.sq, 0, shape.skv}, q_tile, kv_tile);
}

BlockMask slice(const BlockMask& mask, const BlockMaskPart& part) {
  const BlockMaskShape& shape = mask.shape();
  BlockMaskPart p = part;
  check_axis("b", p.b_first, p.b_count, shape.b);
  check_axis("h", p.h_first, p.h_count, shape.hq);
  check_axis("q", p.q_first, p.q_count, shape.sq);
  check_axis("kv", p.kv_first, p.kv_count, shape.skv);
  return recut_part(mask, p, shape.q_block, shape.kv_block);
}

}  // namespace attn
