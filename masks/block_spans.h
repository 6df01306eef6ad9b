#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "masks/block_mask.h"

namespace attn {

/// Walks along two rows of blocks at once: `visit(first, last, kind in a, kind in b)` for each
/// stretch of columns where both keep their kind, from 0 to `columns` - 1.
template <class Visit>
void for_each_stretch(std::span<const BlockSpan> a, std::span<const BlockSpan> b,
                      std::int32_t columns, Visit visit) {
  const auto from_on = [columns](std::span<const BlockSpan>& row, std::int32_t from) {
    if (!row.empty() && row.front().last < from) row = row.subspan(1);
    if (row.empty()) return BlockSpan{from, columns - 1, BlockKind::empty};
    if (row.front().first > from) return BlockSpan{from, row.front().first - 1, BlockKind::empty};
    return row.front();
  };
  for (std::int32_t from = 0; from < columns;) {
    const BlockSpan x = from_on(a, from), y = from_on(b, from);
    const std::int32_t last = std::min(x.last, y.last);
    visit(from, last, x.kind, y.kind);
    from = last + 1;
  }
}

/// Collects the spans of a block mask. Rows may come in any order, and several at once; within a
/// row, from left to right.
class BlockSpanCollector {
 public:
  explicit BlockSpanCollector(std::int64_t rows)
      : last_of_row_(static_cast<std::size_t>(rows), none) {}

  /// Columns first to last become `kind`; those that the row already has keep theirs.
  void append(std::int64_t row, std::int32_t first, std::int32_t last, BlockKind kind);

  /// Sorts by row, keeping the order within each.
  /// @throws std::invalid_argument as the constructor of `BlockMask`.
  BlockMask finish(const BlockMaskShape& shape, const BlockMaskCost& cost = {}) const;

 private:
  static constexpr std::int64_t none = -1;
  struct Entry {
    std::int64_t row;
    BlockSpan span;
  };
  std::vector<Entry> entries_;
  std::vector<std::int64_t> last_of_row_;  ///< the newest entry of each row, or none
};

inline void BlockSpanCollector::append(std::int64_t row, std::int32_t first, std::int32_t last,
                                       BlockKind kind) {
  if (kind == BlockKind::empty) return;
  std::int64_t& newest = last_of_row_[static_cast<std::size_t>(row)];
  if (newest != none) {
    BlockSpan& before = entries_[static_cast<std::size_t>(newest)].span;
    if (first <= before.last) first = before.last + 1;
    if (first > last) return;
    if (first == before.last + 1 && kind == before.kind) {
      before.last = last;
      return;
    }
  }
  if (first > last) return;
  newest = static_cast<std::int64_t>(entries_.size());
  entries_.push_back({row, {first, last, kind}});
}

}  // namespace attn
