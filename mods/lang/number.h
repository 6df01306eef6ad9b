#pragma once

#include <cmath>
#include <concepts>
#include <type_traits>

#include "mods/lang/host_device.h"
#include "mods/lang/storage.h"

/// The functions that a mod or mask may call. Each works on every number type: `double`, `float`,
/// 32 lanes of `float`, dual numbers, numbers with a rounding error, ranges. A class number type
/// joins by two functions that argument-dependent lookup finds: `number_select(c, a, b)` and
/// `number_apply(F{}, x)`.
namespace attn {

/// The numbers of C++ itself.
template <class X>
concept plain_number = std::is_arithmetic_v<X>;

/// `c ? a : b` for every condition type. Both arms are evaluated.
template <class C, class A, class B>
ATTN_INLINE auto select(const C& c, const A& a, const B& b) {
  if constexpr (std::same_as<C, bool> && plain_number<A> && plain_number<B>) {
    using R = std::common_type_t<A, B>;
    return c ? static_cast<R>(a) : static_cast<R>(b);
  } else {
    return number_select(c, a, b);
  }
}

/// f(x) for an elementary function `f` and any number type; an integer counts as a double.
template <class F, class X>
ATTN_INLINE auto apply(F f, const X& x) {
  if constexpr (std::integral<X>)
    return f(static_cast<double>(x));
  else if constexpr (plain_number<X>)
    return f(x);
  else
    return number_apply(f, x);
}

/// `a >= b ? a : b`: at a tie, and its derivative, the first argument; a NaN is not greater.
template <class A, class B>
ATTN_INLINE auto max(const A& a, const B& b) {
  if constexpr (requires { number_max(a, b); })
    return number_max(a, b);
  else
    return select(a >= b, a, b);
}
/// `a <= b ? a : b`.
template <class A, class B>
ATTN_INLINE auto min(const A& a, const B& b) {
  if constexpr (requires { number_min(a, b); })
    return number_min(a, b);
  else
    return select(a <= b, a, b);
}
/// `x` moved into [low, high]; needs low <= high.
template <class X, class L, class H>
ATTN_INLINE auto clamp(const X& x, const L& low, const H& high) {
  return attn::min(attn::max(x, low), high);
}

/// What an elementary function promises beside its value and derivative:
/// `monotone`: it never decreases, so the values at the ends of an interval bound it;
/// otherwise it is 1-Lipschitz and bounded by 1 (sin, cos) or it is `Abs`;
/// `rounding`: the largest relative error of the fp32 function a kernel calls
/// (CUDA C++ Programming Guide, "Mathematical Functions": at most 2 ulp each, 1 ulp = 2^-23).
struct Tanh {
  static constexpr bool monotone = true;       ///< it never decreases
  static constexpr double rounding = 0x1p-22;  ///< relative, of tanhf
  ATTN_INLINE float operator()(float x) const { return ::tanhf(x); }
  ATTN_INLINE double operator()(double x) const { return ::tanh(x); }
  template <class X>
  ATTN_INLINE static X derivative(const X& x) {  /// 1 - tanh^2 x
    const X t = apply(Tanh{}, x);
    return X(1 - t * t);
  }
};
/// e^x.
struct Exp {
  static constexpr bool monotone = true;       ///< it never decreases
  static constexpr double rounding = 0x1p-22;  ///< relative, of expf
  ATTN_INLINE float operator()(float x) const { return ::expf(x); }
  ATTN_INLINE double operator()(double x) const { return ::exp(x); }
  template <class X>
  ATTN_INLINE static X derivative(const X& x) {  /// e^x
    return apply(Exp{}, x);
  }
};
/// The natural logarithm.
struct Log {
  static constexpr bool monotone = true;       ///< it never decreases
  static constexpr double rounding = 0x1p-22;  ///< relative, of logf
  ATTN_INLINE float operator()(float x) const { return ::logf(x); }
  ATTN_INLINE double operator()(double x) const { return ::log(x); }
  template <class X>
  ATTN_INLINE static X derivative(const X& x) {  /// 1 / x
    return X(1 / x);
  }
};
/// 1 / (1 + e^-x): an exponential, a sum and a division.
struct Sigmoid {
  static constexpr bool monotone = true;       ///< it never decreases
  static constexpr double rounding = 0x1p-21;  ///< relative, of all three
  ATTN_INLINE float operator()(float x) const { return 1.0f / (1.0f + ::expf(-x)); }
  ATTN_INLINE double operator()(double x) const { return 1.0 / (1.0 + ::exp(-x)); }
  template <class X>
  ATTN_INLINE static X derivative(const X& x) {  /// g (1 - g)
    const X g = apply(Sigmoid{}, x);
    return X(g * (1 - g));
  }
};
/// sin x.
struct Sin {
  static constexpr bool monotone = false;      ///< 1-Lipschitz and bounded by 1
  static constexpr double rounding = 0x1p-22;  ///< relative, of sinf
  ATTN_INLINE float operator()(float x) const { return ::sinf(x); }
  ATTN_INLINE double operator()(double x) const { return ::sin(x); }
  template <class X>
  ATTN_INLINE static X derivative(const X& x);  ///< cos x
};
/// cos x.
struct Cos {
  static constexpr bool monotone = false;      ///< 1-Lipschitz and bounded by 1
  static constexpr double rounding = 0x1p-22;  ///< relative, of cosf
  ATTN_INLINE float operator()(float x) const { return ::cosf(x); }
  ATTN_INLINE double operator()(double x) const { return ::cos(x); }
  template <class X>
  ATTN_INLINE static X derivative(const X& x) {  /// -sin x
    return X(-apply(Sin{}, x));
  }
};
template <class X>
ATTN_INLINE X Sin::derivative(const X& x) {
  return apply(Cos{}, x);
}
/// The largest whole number that is not above x, with derivative 0.
struct Floor {
  static constexpr bool monotone = true;  ///< it never decreases
  static constexpr double rounding = 0;   ///< floorf is exact
  ATTN_INLINE float operator()(float x) const { return ::floorf(x); }
  ATTN_INLINE double operator()(double x) const { return ::floor(x); }
  template <class X>
  ATTN_INLINE static X derivative(const X& x) {  /// 0, and NaN where x is not finite
    return X(0 * x);
  }
};
/// |x|, with derivative 0 at 0.
struct Abs {
  static constexpr bool monotone = false;  ///< 1-Lipschitz
  static constexpr double rounding = 0;    ///< fabsf is exact
  ATTN_INLINE float operator()(float x) const { return ::fabsf(x); }
  ATTN_INLINE double operator()(double x) const { return ::fabs(x); }
  template <class X>
  ATTN_INLINE static X derivative(const X& x) {  /// -1, 0 or 1
    return X(select(x > 0, X(1), select(x < 0, X(-1), X(0))));
  }
};

/// tanh x.
template <class X>
ATTN_INLINE auto tanh(const X& x) {
  return apply(Tanh{}, x);
}
/// 1 / (1 + e^-x).
template <class X>
ATTN_INLINE auto sigmoid(const X& x) {
  return apply(Sigmoid{}, x);
}
/// e^x.
template <class X>
ATTN_INLINE auto exp(const X& x) {
  return apply(Exp{}, x);
}
/// The natural logarithm.
template <class X>
ATTN_INLINE auto log(const X& x) {
  return apply(Log{}, x);
}
/// sin x.
template <class X>
ATTN_INLINE auto sin(const X& x) {
  return apply(Sin{}, x);
}
/// cos x.
template <class X>
ATTN_INLINE auto cos(const X& x) {
  return apply(Cos{}, x);
}
/// The largest whole number that is not above x.
template <class X>
ATTN_INLINE auto floor(const X& x) {
  return apply(Floor{}, x);
}
/// Keeps integers integers.
template <class X>
ATTN_INLINE auto abs(const X& x) {
  if constexpr (std::integral<X>)
    return x < 0 ? -x : x;
  else
    return apply(Abs{}, x);
}

/// Integer division that rounds to minus infinity; `/` truncates as in C++.
template <class A, class B>
ATTN_INLINE auto floor_div(const A& a, const B& b) {
  if constexpr (requires { number_floor_div(a, b); }) {
    return number_floor_div(a, b);
  } else {
    const auto quotient = a / b;
    const auto rest = a - quotient * b;
    const auto below = (rest < 0 && b > 0) || (rest > 0 && b < 0);
    return select(below, quotient - 1, quotient);
  }
}
/// The remainder of `floor_div`: it has the sign of `b`.
template <class A, class B>
ATTN_INLINE auto floor_mod(const A& a, const B& b) {
  if constexpr (requires { number_floor_mod(a, b); })
    return number_floor_mod(a, b);
  else
    return a - floor_div(a, b) * b;
}

}  // namespace attn
