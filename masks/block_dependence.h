#pragma once

#include <cstdint>
#include <type_traits>

#include "mods/lang/call.h"
#include "mods/lang/captured.h"
#include "mods/lang/number.h"

/// Which indices a mask looks at: it runs once on numbers that remember no value, only what they
/// were made of. A mask that ignores b has one plane of blocks for the whole batch.
namespace attn {

/// The indices that something may depend on, a bit each.
struct Dependence {
  static constexpr unsigned on_b = 1, on_h = 2, on_q = 4, on_kv = 8;  ///< a bit each
  unsigned on = 0;                                                    ///< the indices, or'ed
};

/// A condition made of such numbers.
struct DependentCondition : Dependence {
  DependentCondition() = default;
  DependentCondition(bool) {}  // a constant depends on nothing
  explicit DependentCondition(Dependence d) : Dependence(d) {}

  friend DependentCondition operator!(const DependentCondition& a) { return a; }
#define ATTN_DEPENDS_ON_BOTH(op)                                       \
  friend DependentCondition operator op(const DependentCondition& a,   \
                                        const DependentCondition& b) { \
    return DependentCondition(Dependence{a.on | b.on});                \
  }
  ATTN_DEPENDS_ON_BOTH(&&)
  ATTN_DEPENDS_ON_BOTH(||)
  ATTN_DEPENDS_ON_BOTH(==)
  ATTN_DEPENDS_ON_BOTH(!=)
#undef ATTN_DEPENDS_ON_BOTH
};

/// An index or a score that has no value.
struct DependentNumber : Dependence {
  DependentNumber() = default;
  template <plain_number S>
  DependentNumber(S) {}
  explicit DependentNumber(Dependence d) : Dependence(d) {}

  friend DependentNumber operator-(const DependentNumber& a) { return a; }
  friend DependentNumber number_select(const DependentCondition& c, const DependentNumber& a,
                                       const DependentNumber& b) {
    return DependentNumber(Dependence{c.on | a.on | b.on});
  }
  template <class F>
  friend DependentNumber number_apply(F, const DependentNumber& x) {
    return x;
  }
#define ATTN_DEPENDS_ON_BOTH(Result, name)                                 \
  friend Result name(const DependentNumber& a, const DependentNumber& b) { \
    return Result(Dependence{a.on | b.on});                                \
  }
  ATTN_DEPENDS_ON_BOTH(DependentNumber, operator+)
  ATTN_DEPENDS_ON_BOTH(DependentNumber, operator-)
  ATTN_DEPENDS_ON_BOTH(DependentNumber, operator*)
  ATTN_DEPENDS_ON_BOTH(DependentNumber, operator/)
  ATTN_DEPENDS_ON_BOTH(DependentNumber, operator%)
  ATTN_DEPENDS_ON_BOTH(DependentNumber, number_floor_div)
  ATTN_DEPENDS_ON_BOTH(DependentNumber, number_floor_mod)
  ATTN_DEPENDS_ON_BOTH(DependentNumber, number_max)
  ATTN_DEPENDS_ON_BOTH(DependentNumber, number_min)
  ATTN_DEPENDS_ON_BOTH(DependentCondition, operator<)
  ATTN_DEPENDS_ON_BOTH(DependentCondition, operator<=)
  ATTN_DEPENDS_ON_BOTH(DependentCondition, operator>)
  ATTN_DEPENDS_ON_BOTH(DependentCondition, operator>=)
  ATTN_DEPENDS_ON_BOTH(DependentCondition, operator==)
  ATTN_DEPENDS_ON_BOTH(DependentCondition, operator!=)
#undef ATTN_DEPENDS_ON_BOTH
};

/// The environment of a functor that is asked what its result depends on.
struct DependenceEnv {
  using Int = DependentNumber;    ///< what an index holds
  using Score = DependentNumber;  ///< what a score is
  Sizes sizes;                    ///< as functors ask for them
  /// An index as a score.
  Score to_score(const Int& i) const { return i; }
  /// An axis of extent 1 is read at 0, whatever the index.
  template <int Rank, class T>
  auto read(const Captured<Rank, T>& c, const Int (&at)[Rank]) const {
    Dependence sum;
    for (int axis = 0; axis < Rank; ++axis)
      if (c.tensor.extents[axis] != 1) sum.on |= at[axis].on;
    if constexpr (std::is_same_v<T, bool>)
      return DependentCondition(sum);
    else
      return DependentNumber(sum);
  }
  /// What a plain mask does with its arguments is not seen.
  template <class F, class... A>
  static DependentCondition each(F, const A&... a) {
    return DependentCondition(Dependence{(0u | ... | Int(a).on)});
  }
};

/// The indices that the mask's answer may depend on in a problem of these lengths.
template <class Mask>
Dependence dependence_of(const Mask& mask, const Sizes& sizes) {
  DependenceEnv env{sizes};
  const auto index = [&env](unsigned on) {
    return Index<DependenceEnv>{DependentNumber(Dependence{on}), &env};
  };
  return DependentCondition(call_mask(mask, index(Dependence::on_b), index(Dependence::on_h),
                                      index(Dependence::on_q), index(Dependence::on_kv)));
}

}  // namespace attn
