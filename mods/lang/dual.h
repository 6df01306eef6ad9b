#pragma once

#include <type_traits>

#include "mods/lang/number.h"

namespace attn {

/// A dual number v + d*epsilon with epsilon^2 = 0: `d` is the derivative of `v` along the one
/// direction that was seeded with 1. `T` is any number type: `Dual<double>` in the reference,
/// `Dual<Rounded>` in the oracle, `Dual<lane<float>>` in a kernel's backward pass.
template <class T>
struct Dual {
  T v{};  ///< the value
  T d{};  ///< its derivative

  Dual() = default;
  ATTN_INLINE Dual(const T& value) : v(value), d(0) {}
  ATTN_INLINE Dual(const T& value, const T& derivative) : v(value), d(derivative) {}
  template <plain_number S>
  requires(!std::same_as<S, T>) ATTN_INLINE Dual(S value) : v(static_cast<T>(value)), d(0) {}

  ATTN_INLINE friend Dual operator+(const Dual& a, const Dual& b) {
    return {T(a.v + b.v), T(a.d + b.d)};
  }
  ATTN_INLINE friend Dual operator-(const Dual& a, const Dual& b) {
    return {T(a.v - b.v), T(a.d - b.d)};
  }
  ATTN_INLINE friend Dual operator*(const Dual& a, const Dual& b) {
    return {T(a.v * b.v), T(a.d * b.v + a.v * b.d)};
  }
  ATTN_INLINE friend Dual operator/(const Dual& a, const Dual& b) {
    const T r(a.v / b.v);
    return {r, T((a.d - r * b.d) / b.v)};
  }
  ATTN_INLINE friend Dual operator-(const Dual& a) { return {T(-a.v), T(-a.d)}; }

  // Conditions look at values only: at a tie the derivative is that of the branch taken.
  ATTN_INLINE friend auto operator<(const Dual& a, const Dual& b) { return a.v < b.v; }
  ATTN_INLINE friend auto operator<=(const Dual& a, const Dual& b) { return a.v <= b.v; }
  ATTN_INLINE friend auto operator>(const Dual& a, const Dual& b) { return a.v > b.v; }
  ATTN_INLINE friend auto operator>=(const Dual& a, const Dual& b) { return a.v >= b.v; }
  ATTN_INLINE friend auto operator==(const Dual& a, const Dual& b) { return a.v == b.v; }
  ATTN_INLINE friend auto operator!=(const Dual& a, const Dual& b) { return a.v != b.v; }
};

/// As `select`: both parts of the number chosen.
template <class C, class T>
ATTN_INLINE Dual<T> number_select(const C& c, const Dual<T>& a, const Dual<T>& b) {
  return {T(select(c, a.v, b.v)), T(select(c, a.d, b.d))};
}
/// The same with a constant, whose derivative is 0.
template <class C, class T, class S>
requires std::convertible_to<S, Dual<T>> ATTN_INLINE Dual<T> number_select(const C& c,
                                                                           const Dual<T>& a,
                                                                           const S& b) {
  return number_select(c, a, Dual<T>(b));
}
/// The same with a constant, whose derivative is 0.
template <class C, class T, class S>
requires std::convertible_to<S, Dual<T>> ATTN_INLINE Dual<T> number_select(const C& c, const S& a,
                                                                           const Dual<T>& b) {
  return number_select(c, Dual<T>(a), b);
}

/// Chain rule; where the inner derivative is zero the result is too, even beside an infinite f'.
template <class F, class T>
ATTN_INLINE Dual<T> number_apply(F f, const Dual<T>& x) {
  const T slope = T(F::derivative(x.v) * x.d);
  return {T(apply(f, x.v)), T(select(x.d == 0, T(0), slope))};
}

}  // namespace attn
