#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "mods/lang/number.h"

namespace attn {

/// A condition between numbers with errors: the branch that exact arithmetic takes, and whether
/// fp32 arithmetic must take the same one.
struct Fuzzy {
  bool value = false;  ///< in exact arithmetic
  bool sure = true;    ///< in fp32 it is the same

  Fuzzy() = default;
  Fuzzy(bool exact) : value(exact) {}
  Fuzzy(bool branch, bool certain) : value(branch), sure(certain) {}

  friend Fuzzy operator&&(Fuzzy a, Fuzzy b) {
    const bool decided = (a.sure && !a.value) || (b.sure && !b.value);
    return {a.value && b.value, decided || (a.sure && b.sure)};
  }
  friend Fuzzy operator||(Fuzzy a, Fuzzy b) { return !(!a && !b); }
  friend Fuzzy operator!(Fuzzy a) { return {!a.value, a.sure}; }
  friend Fuzzy operator==(Fuzzy a, Fuzzy b) { return {a.value == b.value, a.sure && b.sure}; }
  friend Fuzzy operator!=(Fuzzy a, Fuzzy b) { return !(a == b); }
};

/// An exact value (fp64) with a bound on how far the same expression, computed in fp32 by a correct
/// kernel, may lie from it: running error analysis. (N. J. Higham, Accuracy and Stability of
/// Numerical Algorithms, 2nd ed., section 3.3.) `Dual<Rounded>` bounds the derivative too.
///
/// Where rounding may flip a branch, both branches are allowed for: the error becomes the size of
/// the jump and the number is marked `ambiguous`.
class Rounded {
 public:
  double v = 0;            ///< the exact value
  double e = 0;            ///< the bound; infinity: nothing is known
  bool ambiguous = false;  ///< a branch may have gone the other way
  /// fp32 may have overflowed to -infinity here, as where a mask adds the lowest finite number.
  /// Kept through additions; anything else that meets it is unbounded.
  bool may_be_minus_infinity = false;

  Rounded() = default;
  /// A constant: fp32 code may hold it rounded.
  Rounded(double constant) : v(constant), e(representation_error(constant)) {}
  Rounded(float constant) : v(constant) {}
  Rounded(int constant) : Rounded(static_cast<double>(constant)) {}
  Rounded(double value, double error, bool may_jump = false)
      : v(value), e(error), ambiguous(may_jump) {}

  friend Rounded operator+(const Rounded& a, const Rounded& b) {
    return sum(a.v + b.v, a, b, a.may_be_minus_infinity || b.may_be_minus_infinity);
  }
  friend Rounded operator-(const Rounded& a, const Rounded& b) {
    if (b.may_be_minus_infinity) return sum(a.v - b.v, a, unbounded(b), false);
    return sum(a.v - b.v, a, b, a.may_be_minus_infinity);
  }
  friend Rounded operator*(const Rounded& a, const Rounded& b) {
    return result(a.v * b.v,
                  product(std::abs(a.v), b.e) + product(std::abs(b.v), a.e) + product(a.e, b.e), a,
                  b);
  }
  friend Rounded operator/(const Rounded& a, const Rounded& b) {
    const double r = a.v / b.v, least = std::abs(b.v) - b.e;
    const double error = least > 0 ? (a.e + product(std::abs(r), b.e)) / least
                                   : std::numeric_limits<double>::infinity();
    return result(r, error, a, b);
  }
  friend Rounded operator-(const Rounded& a) { return {-a.v, unbounded(a).e, a.ambiguous}; }

  friend Fuzzy operator<(const Rounded& a, const Rounded& b) { return {a.v < b.v, apart(a, b)}; }
  friend Fuzzy operator<=(const Rounded& a, const Rounded& b) { return {a.v <= b.v, apart(a, b)}; }
  friend Fuzzy operator>(const Rounded& a, const Rounded& b) { return {a.v > b.v, apart(a, b)}; }
  friend Fuzzy operator>=(const Rounded& a, const Rounded& b) { return {a.v >= b.v, apart(a, b)}; }
  friend Fuzzy operator==(const Rounded& a, const Rounded& b) { return {a.v == b.v, apart(a, b)}; }
  friend Fuzzy operator!=(const Rounded& a, const Rounded& b) { return {a.v != b.v, apart(a, b)}; }

  friend Rounded number_select(Fuzzy c, const Rounded& a, const Rounded& b) {
    const Rounded& taken = c.value ? a : b;
    if (c.sure) return taken;
    const Rounded& other = c.value ? b : a;
    if (taken.v == other.v && taken.e == 0 && other.e == 0) return taken;
    const double jump = taken.v == other.v ? 0 : std::abs(other.v - taken.v);
    return {taken.v, at_least_as_large(unbounded(taken).e, jump + unbounded(other).e), true};
  }
  template <class F>
  friend Rounded number_apply(F f, const Rounded& argument) {
    const Rounded x = unbounded(argument);
    const double y = f(x.v);
    double error = x.e;           // Abs, Sin, Cos never stretch a distance
    if constexpr (F::monotone) {  // an unbounded error may be a NaN in fp32, and stays
      if (x.e != 0 && !std::isinf(x.e))
        error = at_least_as_large(f(x.v + x.e) - y, y - f(x.v - x.e));
    }
    const bool jumps = std::is_same_v<F, Floor> && error > 0;
    return with_rounding({y, error, x.ambiguous || jumps}, F::rounding, lost_by_functions);
  }

  /// |fp32(x) - x|.
  static double representation_error(double x) {
    return std::isfinite(x) ? std::abs(x - static_cast<double>(static_cast<float>(x))) : 0;
  }

 private:
  static constexpr double arithmetic = 0x1p-24;  // fp32 rounds to nearest

  /// Half a quantum of the subnormals is what + - * / may lose; a function, the whole subnormal:
  /// 1 / (1 + expf(-x)) is 0 as soon as expf overflows, at e^-88.7 > 2^-128.
  static constexpr double lost_by_arithmetic = 0x1p-150, lost_by_functions = 0x1p-126;

  /// An unbounded error times zero is unbounded: fp32 may have inf * 0.
  static double product(double value, double error) {
    if (error == 0 || std::isinf(error)) return error;
    return value == 0 ? 0 : value * error;
  }
  /// The larger error; a NaN stands for an unbounded one.
  static double at_least_as_large(double a, double b) {
    return std::isnan(a) || std::isnan(b) ? std::numeric_limits<double>::infinity()
                                          : std::max(a, b);
  }
  /// Equal exact values (ties) are apart only when both are free of error.
  static bool apart(const Rounded& a, const Rounded& b) {
    const double reach = a.e + b.e;
    return reach == 0 || std::abs(a.v - b.v) > reach || std::isinf(a.v) || std::isinf(b.v);
  }
  /// The same number, its error unbounded if fp32 may hold -infinity in its place.
  static Rounded unbounded(const Rounded& a) {
    if (!a.may_be_minus_infinity) return a;
    return {a.v, std::numeric_limits<double>::infinity(), a.ambiguous};
  }
  static Rounded result(double v, double error, const Rounded& a, const Rounded& b) {
    if (a.may_be_minus_infinity || b.may_be_minus_infinity)
      error = std::numeric_limits<double>::infinity();
    return with_rounding({v, error, a.ambiguous || b.ambiguous}, arithmetic);
  }
  static Rounded sum(double v, const Rounded& a, const Rounded& b, bool may_be_minus_infinity) {
    Rounded r = with_rounding({v, a.e + b.e, a.ambiguous || b.ambiguous}, arithmetic);
    r.may_be_minus_infinity |= may_be_minus_infinity;
    return r;
  }
  /// Adds the rounding of the operation itself: `unit` relative, half a quantum below the normals.
  /// A result that is free of error and that fp32 holds is not rounded by + - * / (IEEE 754).
  static Rounded with_rounding(Rounded r, double unit, double lost = lost_by_arithmetic) {
    if (!std::isfinite(r.v)) return r;
    const double largest = std::numeric_limits<float>::max();
    const bool exact =
        r.e == 0 && (r.v == 0 || (unit == arithmetic && representation_error(r.v) == 0));
    if (unit > 0 && !exact) r.e += unit * (std::abs(r.v) + r.e) + lost;
    if (r.v + r.e > largest || (r.v > 0 && r.v - r.e < -largest))
      r.e = std::numeric_limits<double>::infinity();
    else if (r.v - r.e < -largest)
      r.may_be_minus_infinity = true;
    return r;
  }
};

}  // namespace attn
