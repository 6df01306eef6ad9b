#pragma once

#include <cstdint>

#include "masks/block_dependence.h"
#include "masks/block_mask.h"
#include "masks/check.h"
#include "mods/lang/call.h"
#include "mods/lang/environments.h"

namespace attn {

/// Whether batch entries, or heads, share one plane of blocks. None of the three trusts anybody: a
/// plane is shared only where the mask cannot depend on the index (masks/block_dependence.h; costs
/// one call) or where all planes came out equal.
enum class Sharing {
  automatic,  ///< share where that is right
  never,      ///< store a plane for each
  required    ///< share, or throw
};

/// The block size, and whether batch entries or heads may share a plane.
struct BlockMaskOptions {
  int q_block = 128;                       ///< queries of a block, at least 1
  int kv_block = 128;                      ///< keys of a block, at least 1
  Sharing across_b = Sharing::automatic;   ///< of batch entries
  Sharing across_hq = Sharing::automatic;  ///< of heads
};

/// Pairs of one batch entry and head: queries and keys, first to last, both included.
struct IndexBox {
  int b, h;               ///< the batch entry and query head
  int q_first, q_last;    ///< queries
  int kv_first, kv_last;  ///< keys
};

/// A mask as the builder sees it, its type erased.
class BlockQuestions {
 public:
  virtual ~BlockQuestions() = default;
  /// False where the mask takes scalars only: `ask` then never decides.
  virtual bool runs_on_intervals() const = 0;
  /// "Yes" only if every pair attends, "no" only if none does.
  virtual Maybe ask(const IndexBox& box) = 0;
  /// Looks at pair after pair until `seen` can be both true and false. Returns how many.
  virtual std::int64_t scan(const IndexBox& box, Maybe& seen) = 0;
};

/// `ignores`: the mask cannot depend on b (`ignores_b`), on h (`ignores_hq`).
/// @throws std::invalid_argument
BlockMask build_block_mask(BlockQuestions& questions, const Sizes& sizes,
                           const BlockMaskOptions& options, bool ignores_b, bool ignores_hq);

namespace detail {

template <class Mask>
class QuestionsOf final : public BlockQuestions {
 public:
  QuestionsOf(const Mask& mask, const Sizes& sizes)
      : mask_(mask), exact_{sizes}, range_{sizes, &tables_} {}
  bool runs_on_intervals() const override { return mask_runs_on<Mask, RangeEnv>; }

  Maybe ask(const IndexBox& box) override {
    const auto index = [this](int first, int last) {
      return Index<RangeEnv>{RangeEnv::Int(first, last), &range_};
    };
    range_.may_read_outside = false;
    const Maybe answer(call_mask(mask_, index(box.b, box.b), index(box.h, box.h),
                                 index(box.q_first, box.q_last), index(box.kv_first, box.kv_last)));
    return range_.may_read_outside ? Maybe(true, true) : answer;
  }

  std::int64_t scan(const IndexBox& box, Maybe& seen) override {
    const auto index = [this](int i) { return Index<ExactEnv>{i, &exact_}; };
    std::int64_t count = 0;
    for (int q = box.q_first; q <= box.q_last; ++q)
      for (int kv = box.kv_first; kv <= box.kv_last; ++kv) {
        if (seen.can_be_true && seen.can_be_false) return count;
        const bool attends(call_mask(mask_, index(box.b), index(box.h), index(q), index(kv)));
        (attends ? seen.can_be_true : seen.can_be_false) = true;
        ++count;
      }
    return count;
  }

 private:
  const Mask& mask_;
  ExactEnv exact_;
  RangeTables tables_;
  RangeEnv range_;
};

}  // namespace detail

/// The blocks of a mask in a problem of these lengths; `b`, `hq`, `sq` and `skv` of `sizes` are the
/// axes. The index plane is split like a quadtree and the mask asked on intervals; an undecided
/// block is split on, and only what stays undecided is looked at pair by pair. The answer is exact:
/// a block is full if and only if every pair attends, empty if and only if none does. No index
/// outside the problem is ever asked about.
///
/// A mask that takes scalars only (a plain function or lambda of four `int`) is looked at pair by
/// pair throughout: O(B Hq Sq Skv). `statistics()` of the result says which way it went.
///
/// @throws std::invalid_argument if a length is negative or a block size below 1; if the mask does
///     not fit the problem (`check_mask`, or it reads a table out of range); if its index
///     arithmetic may leave 32 bits or divide by zero anywhere in the problem; if sharing is
///     required and planes differ.
template <class Mask>
BlockMask make_block_mask(const Mask& mask, const Sizes& sizes,
                          const BlockMaskOptions& options = {}) {
  BlockMaskShape{sizes.b, sizes.hq, sizes.sq, sizes.skv, options.q_block, options.kv_block}.check();
  check_mask(mask, sizes);
  const unsigned on = dependence_of(mask, sizes).on;
  detail::QuestionsOf<Mask> questions(mask, sizes);
  return build_block_mask(questions, sizes, options, !(on & Dependence::on_b),
                          !(on & Dependence::on_h));
}

}  // namespace attn
