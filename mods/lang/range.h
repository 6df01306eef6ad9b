#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>

#include "mods/lang/number.h"

namespace attn {

/// A condition over a whole range: yes (always true), no (always false) or undecided.
struct Maybe {
  bool can_be_true = false;   ///< for some number of the range
  bool can_be_false = false;  ///< for some number of the range

  Maybe() = default;
  Maybe(bool exact) : can_be_true(exact), can_be_false(!exact) {}
  Maybe(bool may_hold, bool may_fail) : can_be_true(may_hold), can_be_false(may_fail) {}

  bool yes() const { return !can_be_false; }  ///< for every number
  bool no() const { return !can_be_true; }    ///< for none

  friend Maybe operator&&(Maybe a, Maybe b) {
    return {a.can_be_true && b.can_be_true, a.can_be_false || b.can_be_false};
  }
  friend Maybe operator||(Maybe a, Maybe b) {
    return {a.can_be_true || b.can_be_true, a.can_be_false && b.can_be_false};
  }
  friend Maybe operator!(Maybe a) { return {a.can_be_false, a.can_be_true}; }
  friend Maybe operator==(Maybe a, Maybe b) { return (a && b) || (!a && !b); }
  friend Maybe operator!=(Maybe a, Maybe b) { return !(a == b); }
};

/// Every number from `low` to `high`, both included. On `Range<std::int64_t>` a mask answers for a
/// whole block of indices at once; on `Range<double>` a mod answers how large a score may become.
///
/// Integer results stand for 32-bit indices: one that may leave 32 bits, or a divisor that may be
/// zero, throws. Real results are widened by a few fp32 roundings, so that an answer holds for
/// fp32 arithmetic too. A real range from -inf to inf is `unknown`: it holds NaN as well, so every
/// function of it but `select` is unknown and every comparison with it undecided.
template <class T>
struct Range {
  T low{};   ///< the least
  T high{};  ///< the greatest

  Range() = default;
  template <plain_number S>
  Range(S exact) : low(static_cast<T>(exact)), high(static_cast<T>(exact)) {}
  Range(T from, T to) : low(from), high(to) {}

  bool single() const { return low == high; }  ///< it holds one number
  bool unknown() const {                       /// from -inf to inf
    if constexpr (std::floating_point<T>)
      return low == -std::numeric_limits<T>::infinity() &&
             high == std::numeric_limits<T>::infinity();
    return false;
  }

  friend Range operator+(const Range& a, const Range& b) {
    return checked(a.low + b.low, a.high + b.high);
  }
  friend Range operator-(const Range& a, const Range& b) {
    return checked(a.low - b.high, a.high - b.low);
  }
  friend Range operator*(const Range& a, const Range& b) {
    if (may_be_zero_times_infinity(a, b)) return everything();
    const T p[] = {product(a.low, b.low), product(a.low, b.high), product(a.high, b.low),
                   product(a.high, b.high)};
    return checked(*std::min_element(p, p + 4), *std::max_element(p, p + 4));
  }
  friend Range operator-(const Range& a) { return checked(-a.high, -a.low); }

  friend Maybe operator<(const Range& a, const Range& b) {
    if (a.unknown() || b.unknown()) return {true, true};
    return {a.low < b.high, a.high >= b.low};
  }
  friend Maybe operator<=(const Range& a, const Range& b) {
    if (a.unknown() || b.unknown()) return {true, true};
    return {a.low <= b.high, a.high > b.low};
  }
  friend Maybe operator>(const Range& a, const Range& b) { return b < a; }
  friend Maybe operator>=(const Range& a, const Range& b) { return b <= a; }
  friend Maybe operator==(const Range& a, const Range& b) {
    return {a.low <= b.high && b.low <= a.high, !(a.single() && b.single() && a.low == b.low)};
  }
  friend Maybe operator!=(const Range& a, const Range& b) { return !(a == b); }

  /// Tighter than a choice by a comparison: the bounds move together.
  friend Range number_max(const Range& a, const Range& b) {
    if (a.unknown() || b.unknown()) return everything();
    return {std::max(a.low, b.low), std::max(a.high, b.high)};
  }
  friend Range number_min(const Range& a, const Range& b) {
    if (a.unknown() || b.unknown()) return everything();
    return {std::min(a.low, b.low), std::min(a.high, b.high)};
  }
  friend Range number_select(Maybe c, const Range& a, const Range& b) {
    if (c.yes()) return a;
    if (c.no()) return b;
    return {std::min(a.low, b.low), std::max(a.high, b.high)};
  }
  template <class F>
  friend Range number_apply(F f, const Range& x) requires std::floating_point<T> {
    if (x.unknown()) return everything();
    if constexpr (F::monotone) return checked(f(x.low), f(x.high));
    if constexpr (std::is_same_v<F, Abs>) {
      const double least = x.low <= 0 && x.high >= 0 ? 0 : std::min(f(x.low), f(x.high));
      return {least, std::max(f(x.low), f(x.high))};
    }
    if (std::isinf(x.low) || std::isinf(x.high)) return everything();  // Sin, Cos: NaN
    return x.single() ? checked(f(x.low), f(x.low)) : Range(-1.0, 1.0);
  }

 private:
  static Range everything() {
    return {-std::numeric_limits<T>::infinity(), std::numeric_limits<T>::infinity()};
  }
  static bool may_be_zero_times_infinity(const Range& a, const Range& b) {
    if constexpr (std::floating_point<T>) {
      const auto zero = [](const Range& x) { return x.low <= 0 && x.high >= 0; };
      const auto infinite = [](const Range& x) { return std::isinf(x.low) || std::isinf(x.high); };
      return (zero(a) && infinite(b)) || (infinite(a) && zero(b));
    }
    return false;
  }
  static T product(T a, T b) { return a == 0 || b == 0 ? 0 : a * b; }
  static Range checked(T low, T high) {
    if constexpr (std::integral<T>) {
      if (low < std::numeric_limits<std::int32_t>::min() ||
          high > std::numeric_limits<std::int32_t>::max())
        throw std::invalid_argument("index arithmetic: may reach " +
                                    std::to_string(low < 0 && -low > high ? low : high) +
                                    ", expected results within 32 bits");
      return {low, high};
    } else {
      if (std::isnan(low) || std::isnan(high)) return everything();
      // fp32 functions may lose a whole subnormal: 1 / (1 + expf(89)) is 0.
      const auto slack = [](T x) {
        return std::isfinite(x) ? 0x1p-21 * std::abs(x) + 0x1p-126 : 0;
      };
      if (low == high && low == std::floor(low) && std::abs(low) <= 0x1p24) return {low, high};
      return {low - slack(low), high + slack(high)};
    }
  }
};

namespace detail {
inline void refuse_zero_divisor(const Range<std::int64_t>& b) {
  if (b.low <= 0 && b.high >= 0)
    throw std::invalid_argument("divisor: may be 0 in index arithmetic (" + std::to_string(b.low) +
                                " to " + std::to_string(b.high) + "), expected not zero");
}
/// Division is monotone in each argument while the divisor keeps its sign: the corners bound it.
template <class Divide>
Range<std::int64_t> divide_corners(const Range<std::int64_t>& a, const Range<std::int64_t>& b,
                                   Divide divide) {
  refuse_zero_divisor(b);
  const std::int64_t q[] = {divide(a.low, b.low), divide(a.low, b.high), divide(a.high, b.low),
                            divide(a.high, b.high)};
  return Range<std::int64_t>(*std::min_element(q, q + 4), *std::max_element(q, q + 4)) + 0;
}
}  // namespace detail

/// Every quotient; the divisor's range may not hold 0.
inline Range<std::int64_t> operator/(const Range<std::int64_t>& a, const Range<std::int64_t>& b) {
  return detail::divide_corners(a, b, [](std::int64_t x, std::int64_t y) { return x / y; });
}
/// Every `floor_div`; the divisor's range may not hold 0.
inline Range<std::int64_t> number_floor_div(const Range<std::int64_t>& a,
                                            const Range<std::int64_t>& b) {
  return detail::divide_corners(a, b, [](std::int64_t x, std::int64_t y) {
    return x / y - (x % y != 0 && (x < 0) != (y < 0));
  });
}
/// The remainder is exact where the quotient is one number, else bounded by the divisor.
inline Range<std::int64_t> operator%(const Range<std::int64_t>& a, const Range<std::int64_t>& b) {
  const Range<std::int64_t> quotient = a / b;
  if (quotient.single() && b.single()) return a - quotient * b;
  const std::int64_t most = std::max(std::abs(b.low), std::abs(b.high)) - 1;
  return {a.low < 0 ? std::max(-most, a.low) : 0, a.high > 0 ? std::min(most, a.high) : 0};
}
/// Every `floor_mod`, bounded by the divisor; its range may not hold 0.
inline Range<std::int64_t> number_floor_mod(const Range<std::int64_t>& a,
                                            const Range<std::int64_t>& b) {
  const Range<std::int64_t> quotient = number_floor_div(a, b);
  if (quotient.single() && b.single()) return a - quotient * b;
  if (quotient.low == 0 && quotient.high == 0) return a;
  return {b.low < 0 ? b.low + 1 : 0, b.high > 0 ? b.high - 1 : 0};
}
/// Every quotient; unknown where the divisor's range holds 0.
inline Range<double> operator/(const Range<double>& a, const Range<double>& b) {
  if (b.low <= 0 && b.high >= 0) return {-infinity, infinity};
  return a * Range<double>(1 / b.high, 1 / b.low);
}

}  // namespace attn
