#include "optimized/source_plan.h"

#include <limits>
#include <stdexcept>
#include <string>

namespace attn {

SourcePlan::SourcePlan(const AttentionArguments& call, const CheckedCall& checked) {
  source_.sizes = checked.problem.sizes();
  if (checked.sequences.empty()) return;
  source_.packed = !call.cu_q.empty();
  if (source_.packed) {  // the problem is one batch entry; the sequences are the batch
    const Sizes largest = largest_sizes(checked.sequences);
    source_.sizes.b = static_cast<int>(checked.sequences.size());
    source_.sizes.sq = largest.sq;
    source_.sizes.skv = largest.skv;
  }
  for (const Sequence& s : checked.sequences)
    sequences_.push_back({s.queries.first, s.queries.count, s.keys.first, s.keys.count,
                          static_cast<std::int32_t>(s.sizes.q_offset)});
  if (call.page_table.data == nullptr) return;
  source_.max_pages = static_cast<int>(call.page_table.extents[1]);
  source_.page_size = static_cast<int>(call.k.extents[2]);
  for (const Sequence& s : checked.sequences)
    for (int page = 0; page < source_.max_pages; ++page)  // entries past the length are not read
      pages_.push_back(
          std::int64_t{page} * source_.page_size < s.keys.count ? call.page_table(s.b, page) : -1);
}

void SourcePlan::visit(const BlockMask& mask) {
  const BlockMaskShape& shape = mask.shape();
  const std::int64_t rows = shape.q_blocks();
  visit(mask.row_begin(), mask.spans(), shape.shared_b ? 0 : shape.stored_hq() * rows,
        shape.shared_hq ? 0 : rows);
}

void SourcePlan::visit(std::vector<std::int64_t> row_begin, const std::vector<BlockSpan>& spans,
                       std::int64_t b_stride, std::int64_t h_stride) {
  if (spans.size() > std::numeric_limits<std::int32_t>::max())
    throw std::invalid_argument("blocks: " + std::to_string(spans.size()) +
                                " spans, expected fewer than 2^31");
  row_begin_ = std::move(row_begin);
  source_.tiles.b_stride = b_stride;
  source_.tiles.h_stride = h_stride;
  spans_.clear();
  for (const BlockSpan& s : spans)
    spans_.insert(spans_.end(), {s.first, s.last, static_cast<std::int32_t>(s.kind)});
  if (spans_.empty()) spans_.resize(3);  // memory to point at
}

int SourcePlan::most_tiles(int all) const {
  if (row_begin_.empty()) return all;
  int most = 0;
  for (std::size_t row = 0; row + 1 < row_begin_.size(); ++row) {
    int count = 0;
    for (auto s = row_begin_[row]; s < row_begin_[row + 1]; ++s)
      count += spans_[3 * s + 1] - spans_[3 * s] + 1;
    most = std::max(most, count);
  }
  return most;
}

void SourcePlan::upload(WorkspacePlan& plan, Source& source) const {
  source = source_;
  plan.upload(source.sequences, std::span<const SequenceRecord>(sequences_));
  plan.upload(source.page_table, std::span<const std::int32_t>(pages_));
  plan.upload(source.tiles.row_begin, std::span<const std::int64_t>(row_begin_));
  plan.upload(source.tiles.spans, std::span<const std::int32_t>(spans_));
}

}  // namespace attn
