#pragma once

#include <concepts>
#include <utility>

#include "mods/lang/dual.h"
#include "mods/lang/index.h"
#include "mods/lang/range.h"
#include "mods/lang/rounded.h"

/// What the two ways of running an expression (tree_functor.h, program.h) share.
namespace attn {

/// The conditions of an environment. Comparing indices may give a simpler type, which converts.
template <class Env>
using ConditionOf =
    decltype(std::declval<typename Env::Score>() < std::declval<typename Env::Score>());

/// Numbers that keep fp64 constants; kernels hold theirs in fp32.
template <class Score>
inline constexpr bool keeps_double = std::same_as<Score, double> || std::same_as<Score, Rounded>;
/// A dual number keeps what its parts keep.
template <class T>
inline constexpr bool keeps_double<Dual<T>> = keeps_double<T>;

/// A constant of an expression as a score. A range holds both the constant and what a kernel keeps.
template <class Score>
ATTN_INLINE Score literal(double value) {
  if constexpr (keeps_double<Score>) {
    return Score(value);
  } else if constexpr (std::same_as<Score, Range<double>>) {
    const double kept = static_cast<float>(value);
    return value < kept ? Score(value, kept) : Score(kept, value);
  } else {
    return Score(static_cast<float>(value));
  }
}

/// The condition as a chooser of indices. The tree's types promise that rounding cannot flip it.
template <class C>
ATTN_INLINE auto decided(const C& condition) {
  if constexpr (std::same_as<C, Fuzzy>)
    return condition.value;
  else
    return condition;
}

/// `c ? a : b` among conditions; the last term answers where `c` is undecided and both arms agree.
template <class C>
ATTN_INLINE C select_condition(const C& c, const C& a, const C& b) {
  return (c && a) || (!c && b) || (a && b);
}
/// Whether two conditions agree, of any condition type.
template <class C>
ATTN_INLINE C same_condition(const C& a, const C& b) {
  return (a && b) || (!a && !b);
}

}  // namespace attn
