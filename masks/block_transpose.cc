// The one file of the library that uses Thrust: counting, scanning and sorting. A build that names
// no host system gets the sequential one; OMP and TBB work as well.
#if !defined(THRUST_HOST_SYSTEM)
#define THRUST_HOST_SYSTEM THRUST_HOST_SYSTEM_CPP
#endif
#if !defined(THRUST_DEVICE_SYSTEM)
#define THRUST_DEVICE_SYSTEM THRUST_DEVICE_SYSTEM_CPP
#endif
#include <thrust/binary_search.h>
#include <thrust/copy.h>
#include <thrust/execution_policy.h>
#include <thrust/for_each.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/scan.h>
#include <thrust/sort.h>

#include <utility>

#include "masks/block_mask.h"
#include "masks/block_spans.h"

namespace attn {
namespace {

/// From `row` on a column is of this kind, up to the column's next event.
struct Event {
  std::int32_t row;
  BlockKind kind;
};

/// Between two rows of blocks only the columns that change matter. There is one boundary above each
/// row and one below the last, so that every column ends empty.
class Boundaries {
 public:
  explicit Boundaries(const BlockMask& mask)
      : mask_(mask), rows_(mask.shape().q_blocks()), columns_(mask.shape().kv_blocks()) {}

  std::int64_t count() const {
    return std::int64_t{mask_.shape().stored_b()} * mask_.shape().stored_hq() * (rows_ + 1);
  }
  /// visit(plane, row below, first column, last column, kind below)
  template <class Visit>
  void for_each_change(std::int64_t boundary, Visit visit) const {
    const std::int64_t plane = boundary / (rows_ + 1);
    const auto row = static_cast<std::int32_t>(boundary % (rows_ + 1));
    const std::int64_t number = plane * rows_ + row;
    const auto above = row == 0 ? std::span<const BlockSpan>() : mask_.row(number - 1);
    const auto below = row == rows_ ? std::span<const BlockSpan>() : mask_.row(number);
    for_each_stretch(above, below, columns_, [&](int first, int last, BlockKind x, BlockKind y) {
      if (x != y) visit(plane, row, first, last, y);
    });
  }

 private:
  const BlockMask& mask_;
  std::int64_t rows_;
  std::int32_t columns_;
};

}  // namespace

/// Work is proportional to the spans that come in and go out, up to the sort. An event is a change
/// of kind on the way down a column; sorted by column, each event and the next bound one span.
BlockMask transpose(const BlockMask& mask) {
  const BlockMaskShape& s = mask.shape();
  const BlockMaskShape shape{s.b,        s.hq,      s.skv,      s.sq,
                             s.kv_block, s.q_block, s.shared_b, s.shared_hq};
  const Boundaries boundaries(mask);
  const auto policy = thrust::host;
  const thrust::counting_iterator<std::int64_t> zero(0);

  // first_event[n] = events of the boundaries before n
  std::vector<std::int64_t> first_event(static_cast<std::size_t>(boundaries.count()) + 1, 0);
  thrust::for_each(policy, zero, zero + boundaries.count(), [&](std::int64_t n) {
    boundaries.for_each_change(n, [&](std::int64_t, int, int first, int last, BlockKind) {
      first_event[static_cast<std::size_t>(n)] += last - first + 1;
    });
  });
  thrust::exclusive_scan(policy, first_event.begin(), first_event.end(), first_event.begin());

  // column[e] = plane * columns + column, which is the number of the new row
  const auto events = static_cast<std::size_t>(first_event.back());
  std::vector<std::int64_t> column(events);
  std::vector<Event> event(events);
  thrust::for_each(policy, zero, zero + boundaries.count(), [&](std::int64_t n) {
    auto at = static_cast<std::size_t>(first_event[static_cast<std::size_t>(n)]);
    boundaries.for_each_change(
        n, [&](std::int64_t plane, std::int32_t row, int first, int last, BlockKind kind) {
          for (int c = first; c <= last; ++c, ++at) {
            column[at] = plane * s.kv_blocks() + c;
            event[at] = {row, kind};
          }
        });
  });
  thrust::stable_sort_by_key(policy, column.begin(), column.end(), event.begin());

  // A column's last event is of kind empty, so that a span never reaches into the next column.
  std::vector<BlockSpan> all(events);
  thrust::for_each(policy, zero, zero + static_cast<std::int64_t>(events), [&](std::int64_t n) {
    const auto e = static_cast<std::size_t>(n);
    all[e] = {event[e].row, 0, event[e].kind};
    if (event[e].kind != BlockKind::empty) all[e].last = event[e + 1].row - 1;
  });
  const auto kept = [](const BlockSpan& span) { return span.kind != BlockKind::empty; };
  std::vector<BlockSpan> spans(events);
  std::vector<std::int64_t> row_of_span(events);
  row_of_span.erase(
      thrust::copy_if(policy, column.begin(), column.end(), all.begin(), row_of_span.begin(), kept),
      row_of_span.end());
  spans.erase(thrust::copy_if(policy, all.begin(), all.end(), spans.begin(), kept), spans.end());
  spans.shrink_to_fit();

  std::vector<std::int64_t> row_begin(static_cast<std::size_t>(shape.stored_rows()) + 1);
  thrust::lower_bound(policy, row_of_span.begin(), row_of_span.end(), zero,
                      zero + static_cast<std::int64_t>(row_begin.size()), row_begin.begin());
  return BlockMask(shape, std::move(row_begin), std::move(spans), mask.statistics());
}

}  // namespace attn
