// lane<T> of the warp engine: the 32 values that the threads of one warp hold for one variable.
//
// Arithmetic is element by element and promotes as C++ does for the element types, so that a kernel
// gives the same bits here, on the thread engine (where lane<T> is T) and, but for the functions
// named approximate, on a GPU. A condition is lane<bool>; to branch on it is a compile error,
// because the 32 threads may disagree.
#pragma once
#include <cstdint>
#include <type_traits>

#include "mods/lang/number.h"
#include "optimized/simt/cpu_inline.h"
#include "optimized/simt/simt_target.h"

namespace attn::simt {
inline namespace ATTN_TARGET {

/// The 32 values of a variable, one for each thread of a warp.
template <class T>
class lane;

template <class T>
inline constexpr bool is_lane = false;  ///< true of lane<T>, whatever T
template <class T>
inline constexpr bool is_lane<lane<T>> = true;  ///< as it says

/// What an element is: T of lane<T>, T itself of a plain T.
template <class T>
struct ElementOf {
  using type = T;  ///< a plain number is its own element
};
/// Of a lane: what it has 32 of.
template <class T>
struct ElementOf<lane<T>> {
  using type = T;  ///< of one thread
};
template <class T>
using element = typename ElementOf<T>::type;  ///< what an operand has for one thread

/// Operands of lane arithmetic: at least one lane, the other a lane or a plain number.
template <class A, class B>
concept lane_operands =
    (is_lane<A> || is_lane<B>) && std::is_arithmetic_v<element<A>> &&
    std::is_arithmetic_v<element<B>>;

/// Element i of a lane; a plain value is the same in all of them.
template <class T>
ATTN_FORCE_INLINE T pick(const lane<T>& x, int i) {
  return x[i];
}
template <class T>
ATTN_FORCE_INLINE T pick(const T& x, int) {  /// the same in all 32
  return x;
}

/// Arithmetic is element by element. A condition is lane<bool>, which no `if` takes.
template <class T>
class alignas(64) lane {
 public:
  /// A bool is kept as 0 or -1 in 32 bits, which is what vector comparisons give.
  using Stored = std::conditional_t<std::is_same_v<T, bool>, std::int32_t, T>;
  Stored v[32];  ///< element i is thread i's

  lane() = default;
  ATTN_FORCE_INLINE lane(T x) {
    for (int i = 0; i < 32; ++i) set(i, x);
  }
  /// Plain numbers convert as in C++; a number is not a condition.
  template <class U>
    requires(std::is_arithmetic_v<U> && std::is_arithmetic_v<T> && !std::is_same_v<U, T> &&
             !std::is_same_v<T, bool>)
  ATTN_FORCE_INLINE lane(U x) : lane(static_cast<T>(x)) {}
  template <class U>
    requires(std::is_arithmetic_v<U> && std::is_arithmetic_v<T> && !std::is_same_v<U, T>)
  ATTN_FORCE_INLINE explicit(std::is_same_v<T, bool>) lane(const lane<U>& x) {  /// as C++ does
    for (int i = 0; i < 32; ++i) set(i, static_cast<T>(x[i]));
  }

  ATTN_FORCE_INLINE T operator[](int i) const {
    if constexpr (std::is_same_v<T, bool>)
      return v[i] != 0;
    else
      return v[i];
  }
  ATTN_FORCE_INLINE void set(int i, T x) {  /// element i
    if constexpr (std::is_same_v<T, bool>)
      v[i] = -static_cast<std::int32_t>(x);
    else
      v[i] = x;
  }

  /// Never usable: `if`, `while`, `?:` and a `bool` parameter would ask one answer of 32 threads.
  template <class B>
    requires std::is_same_v<B, bool>
  explicit(!std::is_same_v<T, bool>) operator B() const {
    static_assert(!std::is_same_v<B, bool>,
                  "the lanes of a warp may disagree, so this cannot be a branch: "
                  "write select(condition, a, b), or any(condition) for one answer");
    return false;
  }

  template <class A, class B>
    requires(std::is_same_v<T, bool> && std::is_arithmetic_v<element<A>> &&
             std::is_arithmetic_v<element<B>>)
  friend auto number_select(const lane& condition, const A& a, const B& b) {
    using R = std::common_type_t<element<A>, element<B>>;
    lane<R> r;
    for (int i = 0; i < 32; ++i)
      r.set(i, condition.v[i] ? static_cast<R>(pick(a, i)) : static_cast<R>(pick(b, i)));
    return r;
  }
  template <class C, class B>
    requires(std::is_same_v<C, bool> && std::is_arithmetic_v<element<B>>)
  friend auto number_select(C condition, const lane& a, const B& b) {
    using R = std::common_type_t<T, element<B>>;
    return condition ? lane<R>(a) : lane<R>(b);
  }
  template <class C, class A>
    requires(std::is_same_v<C, bool> && std::is_arithmetic_v<A>)
  friend auto number_select(C condition, const A& a, const lane& b) {
    using R = std::common_type_t<A, T>;
    return condition ? lane<R>(a) : lane<R>(b);
  }
  /// What attn::apply gives for each element: F takes float or double, an integer is passed as
  /// double; the absolute value of an integer is an integer.
  template <class F>
  friend auto number_apply(F f, const lane& x) {
    constexpr bool integer = std::is_integral_v<T>;
    if constexpr (integer && std::is_same_v<F, attn::Abs>) {
      lane<decltype(-T())> r;
      for (int i = 0; i < 32; ++i) r.set(i, x[i] < 0 ? -x[i] : x[i]);
      return r;
    } else {
      using Argument = std::conditional_t<integer, double, T>;
      lane<decltype(f(Argument{}))> r;
      for (int i = 0; i < 32; ++i) r.set(i, f(static_cast<Argument>(x[i])));
      return r;
    }
  }

#define ATTN_LANE_ASSIGN(op)                                                            \
  template <class B>                                                                    \
    requires lane_operands<lane, B>                                                     \
  ATTN_FORCE_INLINE lane& operator op##=(const B& b) {                                  \
    for (int i = 0; i < 32; ++i) set(i, static_cast<T>((*this)[i] op pick(b, i)));      \
    return *this;                                                                       \
  }
  ATTN_LANE_ASSIGN(+)
  ATTN_LANE_ASSIGN(-)
  ATTN_LANE_ASSIGN(*)
  ATTN_LANE_ASSIGN(/)
  ATTN_LANE_ASSIGN(%)
  ATTN_LANE_ASSIGN(&)
  ATTN_LANE_ASSIGN(|)
  ATTN_LANE_ASSIGN(^)
  ATTN_LANE_ASSIGN(<<)
  ATTN_LANE_ASSIGN(>>)
#undef ATTN_LANE_ASSIGN
};

// The result of an operator has the type that C++ gives for the elements: int for bool + bool,
// double for float * double, bool for a comparison.
#define ATTN_LANE_BINARY(op)                                                            \
  template <class A, class B>                                                           \
    requires lane_operands<A, B>                                                        \
  ATTN_FORCE_INLINE auto operator op(const A& a, const B& b) {                          \
    lane<decltype(element<A>() op element<B>())> r;                                     \
    for (int i = 0; i < 32; ++i) r.set(i, pick(a, i) op pick(b, i));                    \
    return r;                                                                           \
  }
ATTN_LANE_BINARY(+)
ATTN_LANE_BINARY(-)
ATTN_LANE_BINARY(*)
ATTN_LANE_BINARY(/)
ATTN_LANE_BINARY(%)
ATTN_LANE_BINARY(&)
ATTN_LANE_BINARY(|)
ATTN_LANE_BINARY(^)
ATTN_LANE_BINARY(<<)
ATTN_LANE_BINARY(>>)
ATTN_LANE_BINARY(<)
ATTN_LANE_BINARY(<=)
ATTN_LANE_BINARY(>)
ATTN_LANE_BINARY(>=)
ATTN_LANE_BINARY(==)
ATTN_LANE_BINARY(!=)
#undef ATTN_LANE_BINARY

/// Conditions. Both operands are evaluated, as the threads of a warp would between them.
template <class A, class B>
concept condition_operands =
    (is_lane<A> || is_lane<B>) && std::is_same_v<element<A>, bool> &&
    std::is_same_v<element<B>, bool>;
template <class A, class B>
  requires condition_operands<A, B>
ATTN_FORCE_INLINE lane<bool> operator&&(const A& a, const B& b) {
  const lane<bool> x(a), y(b);
  lane<bool> r;
  for (int i = 0; i < 32; ++i) r.v[i] = x.v[i] & y.v[i];
  return r;
}
template <class A, class B>
  requires condition_operands<A, B>
ATTN_FORCE_INLINE lane<bool> operator||(const A& a, const B& b) {
  const lane<bool> x(a), y(b);
  lane<bool> r;
  for (int i = 0; i < 32; ++i) r.v[i] = x.v[i] | y.v[i];
  return r;
}
ATTN_FORCE_INLINE lane<bool> operator!(const lane<bool>& a) {
  lane<bool> r;
  for (int i = 0; i < 32; ++i) r.v[i] = ~a.v[i];
  return r;
}
template <class T>
ATTN_FORCE_INLINE auto operator-(const lane<T>& a) {
  lane<decltype(-T())> r;
  for (int i = 0; i < 32; ++i) r.set(i, -a[i]);
  return r;
}
template <class T>
ATTN_FORCE_INLINE auto operator+(const lane<T>& a) {
  return lane<decltype(+T())>(a);
}
template <class T>
ATTN_FORCE_INLINE auto operator~(const lane<T>& a) {
  lane<decltype(~T())> r;
  for (int i = 0; i < 32; ++i) r.set(i, ~a[i]);
  return r;
}

}  // namespace ATTN_TARGET
}  // namespace attn::simt
