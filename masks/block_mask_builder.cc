#include "masks/block_mask_builder.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "masks/block_spans.h"

namespace attn {
namespace {

/// first to last, both included, in two halves where it has more than one index.
struct Halves {
  Halves(int first, int last, bool split)
      : count(split && first < last ? 2 : 1),
        first{first, first + (last - first) / 2 + 1},
        last{count == 2 ? first + (last - first) / 2 : last, last} {}
  int count;
  int first[2], last[2];
};

/// Calls `visit` for two or four parts of a rectangle of more than one cell, row by row and each
/// row from left to right. A long rectangle is first split the long way.
template <class Visit>
void for_each_part(int r0, int r1, int c0, int c1, Visit visit) {
  const std::int64_t height = std::int64_t{r1} - r0 + 1, width = std::int64_t{c1} - c0 + 1;
  const Halves rows(r0, r1, height > width / 2), columns(c0, c1, width > height / 2);
  for (int r = 0; r < rows.count; ++r)
    for (int c = 0; c < columns.count; ++c)
      visit(rows.first[r], rows.last[r], columns.first[c], columns.last[c]);
}

/// The blocks of one (b, h).
class PlaneBuilder {
 public:
  PlaneBuilder(BlockQuestions& questions, const BlockMaskShape& shape, BlockSpanCollector& out,
               BlockMaskCost& cost)
      : questions_(questions),
        on_intervals_(questions.runs_on_intervals()),
        shape_(shape),
        out_(out),
        cost_(cost) {}

  void build(int b, int h, std::int64_t first_row) {
    b_ = b;
    h_ = h;
    first_row_ = first_row;
    if (shape_.q_blocks() > 0 && shape_.kv_blocks() > 0)
      visit(0, shape_.q_blocks() - 1, 0, shape_.kv_blocks() - 1);
  }

 private:
  /// Block rows r0 to r1, block columns c0 to c1. Whichever way a rectangle is split, a row meets
  /// its columns from left to right.
  void visit(int r0, int r1, int c0, int c1) {
    const IndexBox box = indices_of(r0, r1, c0, c1);
    const Maybe answer = ask(box);
    if (answer.no()) return;
    if (answer.yes()) return emit(r0, r1, c0, c1, BlockKind::full);
    if (r0 == r1 && c0 == c1) return emit(r0, r1, c0, c1, decide(box));
    for_each_part(r0, r1, c0, c1, [this](int a, int b, int c, int d) { visit(a, b, c, d); });
  }

  /// Of one block that intervals left undecided as a whole. A yes and a no on two parts of it prove
  /// that it is partial: on two corners, most often, else on parts split off it. Parts that stay
  /// undecided are looked at pair by pair.
  BlockKind decide(const IndexBox& block) {
    Maybe seen(false, false);
    const auto both = [&seen] { return seen.can_be_true && seen.can_be_false; };
    const auto decides = [&](const IndexBox& part) {
      const Maybe answer = ask(part);
      seen.can_be_true |= answer.yes();
      seen.can_be_false |= answer.no();
      return answer.yes() || answer.no();
    };
    int questions_left = on_intervals_ ? questions_a_block : 0;
    for (int corner = 0; corner < 4 && on_intervals_ && !both(); ++corner) {
      const int q = corner % 2 ? block.q_last : block.q_first;  // opposite corners first
      const int kv = corner == 0 || corner == 3 ? block.kv_last : block.kv_first;
      decides({b_, h_, q, q, kv, kv});
    }
    undecided_.assign(1, block);
    while (!undecided_.empty() && !both()) {
      const IndexBox part = undecided_.back();
      undecided_.pop_back();
      const std::int64_t pairs = (std::int64_t{part.q_last} - part.q_first + 1) *
                                 (std::int64_t{part.kv_last} - part.kv_first + 1);
      if (pairs <= few_pairs || questions_left <= 0) {
        cost_.scanned_elements += questions_.scan(part, seen);
        continue;
      }
      for_each_part(part.q_first, part.q_last, part.kv_first, part.kv_last,
                    [&](int q0, int q1, int k0, int k1) {
                      const IndexBox smaller{b_, h_, q0, q1, k0, k1};
                      --questions_left;
                      if (!both() && !decides(smaller)) undecided_.push_back(smaller);
                    });
    }
    if (!seen.can_be_false) return BlockKind::full;
    return seen.can_be_true ? BlockKind::partial : BlockKind::empty;
  }

  Maybe ask(const IndexBox& box) {
    if (!on_intervals_) return {true, true};
    ++cost_.interval_questions;
    return questions_.ask(box);
  }
  void emit(int r0, int r1, int c0, int c1, BlockKind kind) {
    for (int r = r0; r <= r1; ++r) out_.append(first_row_ + r, c0, c1, kind);
  }
  /// Blocks at the tails end with the sequence.
  IndexBox indices_of(int r0, int r1, int c0, int c1) const {
    const auto last = [](int block, int size, int length) {
      return static_cast<int>(std::min((std::int64_t{block} + 1) * size, std::int64_t{length}) - 1);
    };
    return {b_,
            h_,
            r0 * shape_.q_block,
            last(r1, shape_.q_block, shape_.sq),
            c0 * shape_.kv_block,
            last(c1, shape_.kv_block, shape_.skv)};
  }

  /// Enough to follow an edge of the mask down to single pairs and give up soon where intervals
  /// cannot decide.
  static constexpr int questions_a_block = 64;
  /// A question costs about as much as a few pairs.
  static constexpr std::int64_t few_pairs = 4;

  BlockQuestions& questions_;
  const bool on_intervals_;
  const BlockMaskShape& shape_;
  BlockSpanCollector& out_;
  BlockMaskCost& cost_;
  std::vector<IndexBox> undecided_;
  int b_ = 0, h_ = 0;
  std::int64_t first_row_ = 0;
};

void require_shared(Sharing wanted, bool shared, const char* option, const char* index) {
  if (wanted == Sharing::required && !shared)
    throw std::invalid_argument(std::string(option) +
                                ": required, but the mask has other blocks for another " + index +
                                ", expected Sharing::automatic or a mask that ignores " + index);
}

}  // namespace

BlockMask build_block_mask(BlockQuestions& questions, const Sizes& sizes,
                           const BlockMaskOptions& options, bool ignores_b, bool ignores_hq) {
  const BlockMaskShape shape{sizes.b,
                             sizes.hq,
                             sizes.sq,
                             sizes.skv,
                             options.q_block,
                             options.kv_block,
                             ignores_b && options.across_b != Sharing::never,
                             ignores_hq && options.across_hq != Sharing::never};
  shape.check();
  BlockSpanCollector collected(shape.stored_rows());
  BlockMaskCost cost;
  cost.ran_on_intervals = questions.runs_on_intervals();
  PlaneBuilder plane(questions, shape, collected, cost);
  std::int64_t row = 0;
  for (int b = 0; b < shape.stored_b(); ++b)
    for (int h = 0; h < shape.stored_hq(); ++h, row += shape.q_blocks()) plane.build(b, h, row);

  BlockMask mask =
      share_equal_planes(collected.finish(shape, cost), options.across_b != Sharing::never,
                         options.across_hq != Sharing::never);
  require_shared(options.across_b, mask.shape().shared_b, "across_b", "b");
  require_shared(options.across_hq, mask.shape().shared_hq, "across_hq", "h");
  return mask;
}

}  // namespace attn
