#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "masks/block_mask.h"
#include "mods/lang/call.h"
#include "mods/lang/environments.h"
#include "optimized/attention_call.h"
#include "optimized/call_check.h"
#include "optimized/source.h"
#include "optimized/workspace_plan.h"

namespace attn {

/// The host's side of a `Source`: the arrays that are copied to the device.
class SourcePlan {
 public:
  /// Sequences and page table of a checked call.
  SourcePlan(const AttentionArguments& call, const CheckedCall& checked);

  /// Visits the blocks of a mask in tiles of a kernel; `mask` is already in these tiles.
  void visit(const BlockMask& mask);
  /// Visits spans of tiles, a row after another: row b * b_stride + h * h_stride + tile.
  void visit(std::vector<std::int64_t> row_begin, const std::vector<BlockSpan>& spans,
             std::int64_t b_stride, std::int64_t h_stride);
  /// The most tiles that one row visits, out of `all` where every tile is visited.
  int most_tiles(int all) const;

  /// Names the arrays in the plan; `source` will point at their copies.
  void upload(WorkspacePlan& plan, Source& source) const;

 private:
  Source source_;
  std::vector<SequenceRecord> sequences_;
  std::vector<std::int32_t> pages_;  // [B, max_pages]
  std::vector<std::int64_t> row_begin_;
  std::vector<std::int32_t> spans_;
};

/// The tiles of `kv_tile` keys of which some pair may attend, for query rows [q_first, q_last] (as
/// the mask sees them) of heads [h_first, h_last]: the mask is asked on intervals, a stretch of
/// keys at a time, and an undecided one is halved. Found in time that grows with the number of
/// spans, not of keys.
template <class Mask>
std::vector<BlockSpan> visible_tiles(const Mask& mask, const Sequence& sequence,
                                     Range<std::int64_t> heads, Range<std::int64_t> rows,
                                     int kv_tile) {
  std::vector<BlockSpan> spans;
  const int tiles = (sequence.sizes.skv + kv_tile - 1) / kv_tile;
  const auto append = [&](int first, int last, BlockKind kind) {
    if (!spans.empty() && spans.back().last + 1 == first && spans.back().kind == kind)
      spans.back().last = last;
    else
      spans.push_back({first, last, kind});
  };
  if constexpr (!mask_runs_on<Mask, RangeEnv>) {
    if (tiles > 0) append(0, tiles - 1, BlockKind::partial);
  } else {
    RangeEnv env{sequence.sizes};
    using I = Index<RangeEnv>;
    const auto visit = [&](const auto& self, int first, int last) -> void {
      if (first > last) return;
      env.may_read_outside = false;
      const std::int64_t kv_last =
          std::min<std::int64_t>((last + std::int64_t{1}) * kv_tile, sequence.sizes.skv) - 1;
      const Maybe answer(call_mask(mask, I{RangeEnv::Int(sequence.b, sequence.b), &env},
                                   I{heads, &env}, I{rows, &env},
                                   I{RangeEnv::Int(std::int64_t{first} * kv_tile, kv_last), &env}));
      const bool unsure = env.may_read_outside;
      if (!unsure && !answer.can_be_true) return;
      if (!unsure && !answer.can_be_false) return append(first, last, BlockKind::full);
      if (first == last) return append(first, last, BlockKind::partial);
      const int middle = first + (last - first) / 2;
      self(self, first, middle);
      self(self, middle + 1, last);
    };
    visit(visit, 0, tiles - 1);
  }
  return spans;
}

}  // namespace attn
