#pragma once

#include <concepts>
#include <type_traits>

#include "masks/check.h"
#include "mods/lang/call.h"

/// Masks made of masks:
///
///     a && b   all_of(a, b)           both let the pair attend
///     a || b   any_of(a, b)           at least one does
///     a != b   exactly_one_of(a, b)   one does and the other does not
///     !a       negate(a)              a does not
///
/// The named functions take any functor that is a mask, lambdas and plain functions of four `int`
/// included. The operators need one operand that derives from `MaskBase`, as every mask of this
/// folder does; a mask of your own opts in the same way:
///
///     struct EvenKeys : attn::MaskBase {
///       template <class Index>
///       ATTN_HOST_DEVICE auto operator()(Index b, Index h, Index q, Index kv) const {
///         return attn::floor_mod(kv, 2) == 0;
///       }
///     };
///     auto mask = attn::causal() && !EvenKeys{};
///
/// On a range of indices the parts answer yes, no or undecided and the results combine by the rules
/// of three-valued logic: never wrong, but undecided where two undecided parts exclude each other
/// (`a && !a`).
namespace attn {

/// Opts a mask into the operators `&&`, `||`, `!` and `!=`. It is empty, and a struct that derives
/// from it stays an aggregate, `Mask{{}, width}`.
struct MaskBase {};

/// A mask that has opted in.
template <class M>
concept mask_operand = std::derived_from<M, MaskBase>;

/// What may stand on the two sides of a mask operator.
template <class A, class B>
concept mask_operands = (mask_operand<A> ||
                         mask_operand<B>)&&std::is_class_v<A>&& std::is_class_v<B>;

// In each of the four both parts run, whatever the first one says, as they do for the lanes of a
// warp: a captured read out of range is then seen here and not first on a GPU.

/// first(b, h, q, kv) and second(b, h, q, kv).
template <class First, class Second>
struct AllOf : MaskBase {
  First first;    ///< one part
  Second second;  ///< the other

  template <class Env>
  ATTN_HOST_DEVICE auto operator()(Index<Env> b, Index<Env> h, Index<Env> q, Index<Env> kv) const {
    const auto x = call_mask(first, b, h, q, kv);
    const auto y = call_mask(second, b, h, q, kv);
    return x && y;
  }
  void check(const Sizes& sizes) const {  /// both parts
    check_mask(first, sizes);
    check_mask(second, sizes);
  }
};

/// first(b, h, q, kv) or second(b, h, q, kv).
template <class First, class Second>
struct AnyOf : MaskBase {
  First first;    ///< one part
  Second second;  ///< the other

  template <class Env>
  ATTN_HOST_DEVICE auto operator()(Index<Env> b, Index<Env> h, Index<Env> q, Index<Env> kv) const {
    const auto x = call_mask(first, b, h, q, kv);
    const auto y = call_mask(second, b, h, q, kv);
    return x || y;
  }
  void check(const Sizes& sizes) const {  /// both parts
    check_mask(first, sizes);
    check_mask(second, sizes);
  }
};

/// first(b, h, q, kv) differs from second(b, h, q, kv).
template <class First, class Second>
struct ExactlyOneOf : MaskBase {
  First first;    ///< one part
  Second second;  ///< the other

  template <class Env>
  ATTN_HOST_DEVICE auto operator()(Index<Env> b, Index<Env> h, Index<Env> q, Index<Env> kv) const {
    const auto x = call_mask(first, b, h, q, kv);
    const auto y = call_mask(second, b, h, q, kv);
    return (x && !y) || (!x && y);
  }
  void check(const Sizes& sizes) const {  /// both parts
    check_mask(first, sizes);
    check_mask(second, sizes);
  }
};

/// not mask(b, h, q, kv).
template <class Mask>
struct Negation : MaskBase {
  Mask mask;  ///< what is turned round

  template <class Env>
  ATTN_HOST_DEVICE auto operator()(Index<Env> b, Index<Env> h, Index<Env> q, Index<Env> kv) const {
    return !call_mask(mask, b, h, q, kv);
  }
  void check(const Sizes& sizes) const { check_mask(mask, sizes); }  ///< the mask itself
};

/// Both let the pair attend.
template <class First, class Second>
AllOf<First, Second> all_of(const First& first, const Second& second) {
  return {{}, first, second};
}
/// At least one of them lets the pair attend.
template <class First, class Second>
AnyOf<First, Second> any_of(const First& first, const Second& second) {
  return {{}, first, second};
}
/// One of them lets the pair attend and the other does not.
template <class First, class Second>
ExactlyOneOf<First, Second> exactly_one_of(const First& first, const Second& second) {
  return {{}, first, second};
}
/// The mask does not let the pair attend.
template <class Mask>
Negation<Mask> negate(const Mask& mask) {
  return {{}, mask};
}

/// As `all_of`.
template <class A, class B>
requires mask_operands<A, B> AllOf<A, B>
operator&&(const A& a, const B& b) { return all_of(a, b); }
/// As `any_of`.
template <class A, class B>
requires mask_operands<A, B> AnyOf<A, B>
operator||(const A& a, const B& b) { return any_of(a, b); }
/// As `exactly_one_of`.
template <class A, class B>
requires mask_operands<A, B> ExactlyOneOf<A, B>
operator!=(const A& a, const B& b) { return exactly_one_of(a, b); }
/// As `negate`.
template <mask_operand M>
Negation<M> operator!(const M& mask) {
  return negate(mask);
}

}  // namespace attn
