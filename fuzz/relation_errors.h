#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "fuzz/relations.h"
#include "fuzz/score_bounds.h"

/// By how much correct runs may differ, from the lengths of the vectors alone: O(S D) work, for a
/// mod that adds numbers of at most T_i to the scores of row i.
///
///   |s_ij| <= A_i = |scale| |q_i| max_j |k_j|,   |dP_ij| <= B_i = |dO_i| max_j |v_j|   (Cauchy)
///   e_i     = (c(D) + u_S + 2 u_in + 4 u) A_i + D 2^-126                       of one score
///   delta_i = expm1(e_i + (n/16 + 3 + splits) u_exp + 2^-20 (A_i + T_i + log n + 1)) of one
///             weight, rescales and the merge of splits included
///   E_L     = delta_i + c(n) + 8 u (A_i + T_i + log n + 1)                     of LSE
///   E_O     = (2 delta_i + u_P + c(n)) max_j |v_jd| + n eta max_j |v_jd| + u_out |O|     of O
///
/// u = 2^-24, c(n) the error of an n-term fp32 sum in any order. Nothing here is probabilistic: a
/// correct kernel cannot exceed it.
namespace attn::fuzz {

/// The errors of one pass, from the lengths of its vectors.
class RelationErrors {
 public:
  /// `in`: the inputs of one of the runs; the other's must have vectors of the same lengths.
  RelationErrors(const Case& c, const PassInputs& in)
      : in_(in), may_(row_of(c).numerics(c.dtype)), group_(c.hkv ? c.hq / c.hkv : 1) {
    longest_key_ = longest(in.k), longest_value_ = longest(in.v);
  }

  double sum(double n) const { return (n + 4) * 2 * u32; }          ///< c(n)
  double probability() const { return may_.probability_rounding; }  ///< u_P
  /// Of dS, and of what enters the products that it comes from and goes into.
  double gradient() const { return may_.gradient_rounding + 4 * may_.input_rounding; }
  double output() const { return unit_roundoff(may_.storage); }       ///< u_out
  double underflow() const { return underflow_error(may_.storage); }  ///< eta
  int keys(int b) const { return in_.sequences[b].sizes.skv; }        ///< n, of sequence b

  /// A_i
  double largest_score(int b, int h, int i) const {
    return std::abs(in_.scale) * length(in_.q, b, h, i) * longest_key_[b][h / group_];
  }
  /// B_i, of a backward pass.
  double largest_gradient(int b, int h, int i) const {
    return length(in_.d_o, b, h, i) * longest_value_[b][h / group_];
  }
  /// max_j |v_jd|
  double largest_value(int b, int h, int d) const {
    double v = 0;
    for (int j = 0; j < keys(b); ++j) v = std::max(v, std::abs(in_.v(b, h / group_, j, d)));
    return v;
  }
  /// delta_i, of a row whose raw scores reach `a` and to which the mod adds at most `added`.
  double weight(int b, double a, double added = 0) const {
    const double d = static_cast<double>(in_.q.extents()[3]), n = keys(b),
                 inputs = 2 * may_.input_rounding,
                 score = (sum(d) + may_.score_rounding + inputs + 4 * u32) * a + d * 0x1p-126;
    return std::expm1(score + (n / 16 + 3 + may_.most_splits) * may_.exp_rounding +
                      0x1p-20 * (a + added + std::log(n + 1) + 1));
  }
  /// E_L of a row whose raw scores reach `a` and to which the mod adds at most `added`.
  double lse(int b, double a, double added = 0) const {
    return weight(b, a, added) + sum(keys(b)) + 8 * u32 * (a + added + std::log(keys(b) + 1.0) + 1);
  }
  /// E_O of one element: `largest` is max_j |v_jd|, `value` the element.
  double o(int b, double a, double largest, double value) const {
    const double inner =
        (2 * weight(b, a) + probability() + sum(keys(b)) + keys(b) * underflow()) * largest;
    return inner + output() * (std::abs(value) + inner) + underflow();
  }

 private:
  static double length(const Tensor<double, 4>& x, int b, int h, int s) {
    double sum = 0;
    for (std::int64_t d = 0; d < x.extents()[3]; ++d) sum += x(b, h, s, d) * x(b, h, s, d);
    return std::sqrt(sum);
  }
  using Lengths = std::vector<std::vector<double>>;
  Lengths longest(const Tensor<double, 4>& x) const {
    Lengths l(x.extents()[0], std::vector<double>(x.extents()[1]));
    for (int b = 0; b < x.extents()[0]; ++b)
      for (int h = 0; h < x.extents()[1]; ++h)
        for (int j = 0; j < keys(b); ++j) l[b][h] = std::max(l[b][h], length(x, b, h, j));
    return l;
  }
  const PassInputs& in_;
  Numerics may_;
  int group_;
  Lengths longest_key_, longest_value_;  ///< [B][Hkv]: of the rows of K and of V
};

/// Written so that a NaN is not near anything.
inline bool within(double got, double expected, double bound) {
  return got == expected || std::abs(got - expected) <= bound;
}
/// The report of what is not.
inline std::string off(const std::string& what, double got, double expected, double bound) {
  return fmt::format("{} is {:.9g}, expected {:.9g} within {:.3g}", what, got, expected, bound);
}

}  // namespace attn::fuzz
