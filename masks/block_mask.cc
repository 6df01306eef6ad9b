#include "masks/block_mask.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "masks/block_spans.h"

namespace attn {
namespace {

void require(bool good, const char* name, int value, const char* expected) {
  if (!good)
    throw std::invalid_argument("block mask: " + std::string(name) + " = " + std::to_string(value) +
                                ", expected " + expected);
}

std::string text_of(const BlockSpan& span) {
  return "(" + std::to_string(span.first) + ", " + std::to_string(span.last) + ", kind " +
         std::to_string(static_cast<int>(span.kind)) + ")";
}

void check_row(std::span<const BlockSpan> row, int columns) {
  std::int64_t end = 0;  // one past the span before
  BlockKind before = BlockKind::empty;
  for (const BlockSpan& span : row) {
    const bool known = span.kind == BlockKind::partial || span.kind == BlockKind::full;
    if (!known || span.first < end || span.last < span.first || span.last >= columns ||
        (span.first == end && span.kind == before))
      throw std::invalid_argument("block mask: span " + text_of(span) +
                                  ", expected sorted, merged, partial or full spans within " +
                                  std::to_string(columns) + " blocks");
    end = std::int64_t{span.last} + 1;
    before = span.kind;
  }
}

/// Whether the planes of (b, h) and (b2, h2) have the same blocks. `first` and `second` have as
/// many rows and columns.
bool same_plane(const BlockMask& first, int b, int h, const BlockMask& second, int b2, int h2) {
  for (int r = 0; r < first.shape().q_blocks(); ++r) {
    const auto x = first.row(b, h, r), y = second.row(b2, h2, r);
    if (!std::equal(x.begin(), x.end(), y.begin(), y.end())) return false;
  }
  return true;
}

}  // namespace

void BlockMaskShape::check() const {
  require(q_block >= 1, "q_block", q_block, "1 or more");
  require(kv_block >= 1, "kv_block", kv_block, "1 or more");
  require(b >= 0, "b", b, "0 or more");
  require(hq >= 0, "hq", hq, "0 or more");
  require(sq >= 0, "sq", sq, "0 or more");
  require(skv >= 0, "skv", skv, "0 or more");
}

BlockMask::BlockMask(const BlockMaskShape& shape, std::vector<std::int64_t> row_begin,
                     std::vector<BlockSpan> spans, const BlockMaskCost& cost)
    : shape_(shape), row_begin_(std::move(row_begin)), spans_(std::move(spans)), cost_(cost) {
  shape_.check();
  const auto rows = static_cast<std::size_t>(shape_.stored_rows());
  if (row_begin_.size() != rows + 1 || row_begin_.front() != 0 ||
      row_begin_.back() != static_cast<std::int64_t>(spans_.size()) ||
      !std::is_sorted(row_begin_.begin(), row_begin_.end()))
    throw std::invalid_argument("block mask: row_begin of " + std::to_string(row_begin_.size()) +
                                " entries, expected " + std::to_string(rows + 1) +
                                " that rise from 0 to the " + std::to_string(spans_.size()) +
                                " spans");
  for (std::size_t r = 0; r < rows; ++r)
    check_row(row(static_cast<std::int64_t>(r)), shape_.kv_blocks());
}

BlockKind BlockMask::kind(int b, int h, int q_block, int kv_block) const {
  const auto spans = row(b, h, q_block);
  const auto at = std::lower_bound(spans.begin(), spans.end(), kv_block,
                                   [](const BlockSpan& s, int column) { return s.last < column; });
  return at == spans.end() || at->first > kv_block ? BlockKind::empty : at->kind;
}

BlockMaskStatistics BlockMask::statistics() const {
  BlockMaskStatistics s{cost_};
  for (const BlockSpan& span : spans_)
    (span.kind == BlockKind::full ? s.full_blocks : s.partial_blocks) +=
        std::int64_t{span.last} - span.first + 1;
  const std::int64_t stored = std::int64_t{shape_.stored_b()} * shape_.stored_hq();
  const std::int64_t planes = std::int64_t{shape_.b} * shape_.hq;
  const std::int64_t times = stored == 0 ? 0 : planes / stored;
  s.full_blocks *= times;
  s.partial_blocks *= times;
  const std::int64_t all = planes * shape_.q_blocks() * shape_.kv_blocks();
  s.empty_blocks = all - s.full_blocks - s.partial_blocks;
  s.spans = static_cast<std::int64_t>(spans_.size());
  s.bytes = row_begin_.size() * sizeof(row_begin_[0]) + spans_.size() * sizeof(BlockSpan);
  s.sparsity = all == 0 ? 0 : static_cast<double>(s.empty_blocks) / static_cast<double>(all);
  return s;
}

bool operator==(const BlockMask& a, const BlockMask& b) {
  BlockMaskShape unshared_a = a.shape_, unshared_b = b.shape_;
  unshared_a.shared_b = unshared_a.shared_hq = unshared_b.shared_b = unshared_b.shared_hq = false;
  if (unshared_a != unshared_b) return false;
  if (a.shape_ == b.shape_) return a.row_begin_ == b.row_begin_ && a.spans_ == b.spans_;
  const bool one_b = a.shape_.shared_b && b.shape_.shared_b;
  const bool one_h = a.shape_.shared_hq && b.shape_.shared_hq;
  for (int i = 0; i < (one_b ? a.shape_.stored_b() : a.shape_.b); ++i)
    for (int h = 0; h < (one_h ? a.shape_.stored_hq() : a.shape_.hq); ++h)
      if (!same_plane(a, i, h, b, i, h)) return false;
  return true;
}

BlockMask share_equal_planes(BlockMask mask, bool across_b, bool across_hq) {
  BlockMaskShape shape = mask.shape();
  const int batch = shape.stored_b(), heads = shape.stored_hq();
  bool same_b = across_b, same_h = across_hq;
  for (int b = 0; b < batch; ++b)
    for (int h = 0; h < heads; ++h) {
      same_b = same_b && (b == 0 || same_plane(mask, b, h, mask, 0, h));
      same_h = same_h && (h == 0 || same_plane(mask, b, h, mask, b, 0));
    }
  shape.shared_b |= same_b;
  shape.shared_hq |= same_h;
  if (shape == mask.shape()) return mask;
  BlockSpanCollector collected(shape.stored_rows());
  std::int64_t row = 0;
  for (int b = 0; b < shape.stored_b(); ++b)
    for (int h = 0; h < shape.stored_hq(); ++h)
      for (int r = 0; r < shape.q_blocks(); ++r, ++row)
        for (const BlockSpan& span : mask.row(b, h, r))
          collected.append(row, span.first, span.last, span.kind);
  return collected.finish(shape, mask.statistics());
}

BlockMask BlockSpanCollector::finish(const BlockMaskShape& shape, const BlockMaskCost& cost) const {
  std::vector<std::int64_t> row_begin(last_of_row_.size() + 1, 0);
  for (const Entry& e : entries_) ++row_begin[static_cast<std::size_t>(e.row) + 1];
  for (std::size_t r = 1; r < row_begin.size(); ++r) row_begin[r] += row_begin[r - 1];
  std::vector<std::int64_t> next(row_begin.begin(), row_begin.end() - 1);
  std::vector<BlockSpan> spans(entries_.size());
  for (const Entry& e : entries_)
    spans[static_cast<std::size_t>(next[static_cast<std::size_t>(e.row)]++)] = e.span;
  return BlockMask(shape, std::move(row_begin), std::move(spans), cost);
}

std::string picture(const BlockMask& mask, int b, int h, int limit) {
  const BlockMaskShape& shape = mask.shape();
  require(limit >= 1, "limit", limit, "1 or more");
  require(b >= 0 && b < shape.b, "b", b, "an entry of the batch");
  require(h >= 0 && h < shape.hq, "h", h, "a head");
  const int q_times = (shape.q_blocks() + limit - 1) / limit;
  const int kv_times = (shape.kv_blocks() + limit - 1) / limit;
  if (q_times > 1 || kv_times > 1) {
    const auto grown = [](int block, int times) {  // stays within an int where the length does
      return static_cast<int>(
          std::min<std::int64_t>(std::int64_t{block} * std::max(times, 1), INT32_MAX));
    };
    return picture(retile(mask, grown(shape.q_block, q_times), grown(shape.kv_block, kv_times)), b,
                   h, limit);
  }
  std::string text;
  for (int r = 0; r < shape.q_blocks(); ++r) {
    std::string line(static_cast<std::size_t>(shape.kv_blocks()), '.');
    for (const BlockSpan& span : mask.row(b, h, r))
      std::fill(line.begin() + span.first, line.begin() + span.last + 1,
                span.kind == BlockKind::full ? '#' : '+');
    text += line + '\n';
  }
  return text;
}

}  // namespace attn
