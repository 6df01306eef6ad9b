#pragma once

#include "masks/algebra.h"
#include "mods/arguments_check.h"

namespace attn {

/// One mask for some heads or batch entries, another for the rest.
///
///     choose_by_head(which, x, y)     attend(b, h, i, j) = which[h] ? x(b, h, i, j) : y(b, h, i,
///     j) choose_by_batch(which, x, y)                         which[b] ? ...
///
/// choose_by_head([1 0], causal(), full()), heads 0 and 1:
///
///     #...     ####
///     ##..     ####
///     ###.     ####
///     ####     ####
///
/// The table is captured, so a new choice needs no new kernel. Both masks run, whichever is chosen.
/// More than two: choose among choices.
///
/// Elsewhere: the buffer that turns causality off in PyTorch FlexAttention's tests is
/// `choose_by_batch(flag, causal(), full())`; local and global heads of Gemma-like models in one
/// call are `choose_by_head(local, causal() && window(w, 0), causal())`.
template <class First, class Second>
struct Choice : MaskBase {
  enum class By { head, batch };  ///< the index that chooses
  By by;                          ///< which of the two
  Captured<1, bool> which;        ///< [Hq] or [B]; [1] chooses for all
  First first;                    ///< where true
  Second second;                  ///< where false

  template <class Env>
  ATTN_HOST_DEVICE auto operator()(Index<Env> b, Index<Env> h, Index<Env> q, Index<Env> kv) const {
    const auto chosen = which(by == By::head ? h : b);
    const auto x = call_mask(first, b, h, q, kv);
    const auto y = call_mask(second, b, h, q, kv);
    // The last term decides a range of heads on which both masks agree.
    return (chosen && x) || (!chosen && y) || (x && y);
  }

  /// @throws std::invalid_argument if there is not one choice a head (batch entry) or one for all.
  void check(const Sizes& sizes) const {
    if (by == By::head)
      check_table("choose_by_head", "which", which, one_or("Hq", sizes.hq));
    else
      check_table("choose_by_batch", "which", which, one_or("B", sizes.b));
    check_mask(first, sizes);
    check_mask(second, sizes);
  }
};

/// `which` is [Hq] or [1]; the memory stays the caller's.
template <class First, class Second>
Choice<First, Second> choose_by_head(const Captured<1, bool>& which, const First& first,
                                     const Second& second) {
  return {{}, Choice<First, Second>::By::head, which, first, second};
}
/// `which` is [B] or [1]; the memory stays the caller's.
template <class First, class Second>
Choice<First, Second> choose_by_batch(const Captured<1, bool>& which, const First& first,
                                      const Second& second) {
  return {{}, Choice<First, Second>::By::batch, which, first, second};
}

}  // namespace attn
