/// The forward half of the oracle. Notation of one query row: s the scaled score, t = mod(s),
/// m = max t, p = exp(t - L), O = sum p v, L = log sum exp t. A hat marks what a kernel computes.
///
///   p^_j = p_j (1 + theta_j)(1 + rho_j),  |theta_j| <= delta_j (scores and exponential),
///                                         |rho_j| <= u_P (P rounded to the storage type)
///   O^ - O = sum p theta (v - O)          normalisation absorbs what the row has in common
///          + sum p rho v                  not so here: l is summed from the unrounded p
///          + accumulation + rounding of the output.
///
/// The rounding errors rho are independent except among keys that round the same number, which
/// form a cell: variance = u_P^2 (sum_j (p v)^2 + sum_cells (sum_{j in cell} p v)^2), taken at 4
/// standard deviations. Whatever the case itself proves exact contributes nothing.
#include "fuzz/forward_bounds.h"

#include <Eigen/Core>
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

namespace attn::fuzz {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using RowVector = Eigen::Array<double, 1, Eigen::Dynamic>;

constexpr double u32 = 0x1p-24;  // fp32, to nearest
constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double deviations = 4;  // Hoeffding: 2 exp(-8) at worst, 6.9 sigma if uniform
constexpr double vanishes = 104;  // exp(-104) < 2^-150: a kernel's weight is exactly 0
constexpr double smallest_normal = 0x1p-126;

/// An n-term fp32 sum, in any order, is within accumulation(n) * sum |terms|. Rigorous: n + 4
/// truncations; working: Higham and Mary's sqrt(n) for rounding to nearest, and one truncation for
/// each group of 16 (as the tensor cores add) where they are used.
struct Accumulation {
  BoundKind kind;
  bool tensor_core;
  double operator()(double n) const {
    if (kind == BoundKind::rigorous) return (n + 4) * 2 * u32;
    const double nearest = 6 * std::sqrt(n + 4) * u32;
    return tensor_core ? std::max(nearest, (n / 8 + 4) * 2 * u32) : nearest;
  }
};

/// The largest power of two that divides every entry (infinity if all are zero, 0 if one is not
/// finite): a sum of such numbers whose magnitudes stay below 2^24 of it is exact in fp32.
double quantum(const Matrix& x) {
  double least = inf;
  for (const double a : x.reshaped()) {
    if (a == 0) continue;
    if (!std::isfinite(a)) return 0;
    const std::uint64_t fraction = std::bit_cast<std::uint64_t>(a) | std::uint64_t{1} << 52;
    least = std::min(least, std::ldexp(1.0, std::ilogb(a) - 52 + std::countr_zero(fraction)));
  }
  return least;
}

bool is_power_of_two(double x) {
  int exponent;
  return std::abs(std::frexp(x, &exponent)) == 0.5;
}

/// The absolute error of storing a number too small for relative ones. Except for fp16, whose
/// subnormals are in daily use, they may be flushed to zero.
double underflow_error(DType t) { return t == DType::f16 ? 0x1p-25 : smallest_normal; }

Matrix head(const Tensor<double, 4>& x, int b, int h) {
  const auto e = x.extents();
  if (e[2] == 0 || e[3] == 0) return Matrix(e[2], e[3]);
  return Eigen::Map<const Matrix>(&x(b, h, 0, 0), e[2], e[3]);
}

/// The bound of the raw scaled score s, with A = |scale| sum_d |q||k|.
struct ScoreError {
  double per_magnitude, per_score, floor, exact_below;
  double operator()(double s, double A) const {
    if (A <= exact_below) return 0;
    return per_magnitude * A + per_score * std::abs(s) + floor;
  }
};

class Pass {
 public:
  Pass(const ForwardInputs& in, const RowScorer& scorer, const Numerics& may, BoundKind kind)
      : in_(in),
        scorer_(scorer),
        may_(may),
        rigorous_(kind == BoundKind::rigorous),
        accumulation_{kind, may.tensor_core} {
    const auto e = in.q.extents();
    const std::int64_t dv = in.v.extents()[3];
    out_.o = out_.o_bound = Tensor<double, 4>({e[0], e[1], e[2], dv});
    out_.o_term = Tensor<Term, 4>({e[0], e[1], e[2], dv});
    out_.lse = out_.lse_bound = Tensor<double, 3>({e[0], e[1], e[2]});
  }

  ForwardBounds run() {
    const int group = in_.sizes.hkv > 0 ? in_.sizes.hq / in_.sizes.hkv : 1;
    for (int b = 0; b < in_.sizes.b; ++b)
      for (int h = 0; h < in_.sizes.hq; ++h) bound_head(b, h, h / group);
    finish();
    return std::move(out_);
  }

 private:
  /// One key of a row, after the mod and the mask.
  struct Key {
    int j;
    double t, e, p, delta;
    bool exact_weight;  // exp(t - m) is exactly 1 or 0 in a kernel
  };

  void bound_head(int b, int h, int hkv) {
    const Matrix q = head(in_.q, b, h), k = head(in_.k, b, hkv);
    v_ = head(in_.v, b, hkv);
    const double c = std::abs(in_.scale);
    // S = scale Q K^T and A = |scale| |Q| |K|^T, both [Sq, Skv]
    const Matrix s = in_.scale * (q * k.transpose());
    const Matrix a = c * (q.cwiseAbs() * k.cwiseAbs().transpose());
    const double n = static_cast<double>(q.cols());
    const double unit = quantum(q) * quantum(k) * c;
    const ScoreError error{accumulation_(n), 2 * u32 + may_.score_rounding, n * smallest_normal,
                           is_power_of_two(in_.scale) ? 0x1p24 * unit : 0};
    v_exact_below_ = 0x1p24 * quantum(v_);
    for (int i = 0; i < in_.sizes.sq; ++i) {
      row_.resize(in_.sizes.skv);
      for (int j = 0; j < in_.sizes.skv; ++j)
        row_[j] = {Rounded(s(i, j), error(s(i, j), a(i, j))), true};
      raw_ = row_;
      scorer_.score_row(b, h, i, row_);
      bound_row(b, h, i);
    }
  }

  void bound_row(int b, int h, int i) {
    keys_.clear();
    double m = -inf;
    for (int j = 0; j < in_.sizes.skv; ++j) {
      const BoundedScore& s = row_[j];
      if (!s.attended.value && s.attended.sure) continue;
      if (std::isnan(s.value.v) || s.value.v == inf) return not_finite_row(b, h, i, j);
      const double e = s.attended.sure ? s.value.e : inf;
      if (s.value.v == -inf && e == 0) continue;  // the mod masks the pair
      keys_.push_back({j, s.attended.value ? s.value.v : -inf, e, 0, 0, false});
      m = std::max(m, keys_.back().t);
    }
    if (m == -inf) return empty_row(b, h, i);

    double m_error = 0, l = 0;
    for (Key& key : keys_) {
      // overflow to -inf changes nothing for a key that weighs nothing anyway
      if (row_[key.j].value.may_be_minus_infinity && key.t + key.e > m - 2 * vanishes) key.e = inf;
      l += std::exp(key.t - m);
      if (key.t + key.e >= m) m_error = std::max(m_error, key.e);
    }
    const double L = m + std::log(l);
    const double theta = weigh(m, m_error, L);
    finish_row(b, h, i, m, L, theta);
  }

  /// Fills p and delta of every key; returns sum p delta. The exponent of a kernel's weight carries
  /// the score's error, three fp32 roundings of t and m, and those of a few exponentials (its own
  /// and the rescales of the online softmax).
  double weigh(double m, double m_error, double L) {
    const double rescales = rigorous_ ? in_.sizes.skv / 16.0 + 3 : may_.tensor_core ? 4 : 3;
    const double roundings = rigorous_ ? 4 : 3;
    double theta = 0, ambiguous = 0;
    for (Key& key : keys_) {
      key.p = std::exp(key.t - L);
      const bool zero = key.t + key.e <= m - m_error - vanishes;
      const bool one = m == 0 && m_error == 0 && key.t == 0 && key.e == 0;
      key.exact_weight = zero || one;
      if (zero) key.p = 0;
      if (!key.exact_weight)
        key.delta =
            std::expm1(std::min(50.0, key.e + roundings * u32 * (std::abs(key.t) + std::abs(m)) +
                                          rescales * may_.exp_rounding));
      theta += key.e == inf ? inf : key.p * key.delta;
      if (row_[key.j].value.ambiguous || !row_[key.j].attended.sure) ambiguous += key.p;
    }
    out_.ambiguous_mass = std::max(out_.ambiguous_mass, ambiguous);
    return theta;
  }

  /// True if rounding P to the storage type changes nothing: every weight exp(t - m) is a power of
  /// two to within far less than half a unit. `t` is measured from m = 0 so that any running
  /// maximum among the keys leaves powers of two. Adds each weight's distance to it to `delta`.
  bool snap_to_powers(double m) {
    if (may_.probability_rounding == 0 || m != 0) return false;
    for (const Key& key : keys_) {
      if (key.exact_weight) continue;
      const double power = std::exp2(std::round(key.t / std::log(2.0)));
      const double off = std::abs(std::exp(key.t) / power - 1);
      if (power < 0x1p-14 || off + key.delta > may_.probability_rounding / 8) return false;
    }
    for (Key& key : keys_)
      if (!key.exact_weight)
        key.delta += std::abs(std::exp(key.t) / std::exp2(std::round(key.t / std::log(2.0))) - 1);
    return true;
  }

  void finish_row(int b, int h, int i, double m, double L, double theta) {
    const bool uniform =
        std::all_of(keys_.begin(), keys_.end(), [](const Key& key) { return key.exact_weight; });
    const auto ones =
        std::count_if(keys_.begin(), keys_.end(), [](const Key& key) { return key.p > 0; });
    const bool one_hot = uniform && ones == 1;
    const bool powers = uniform || snap_to_powers(m);
    const double count = static_cast<double>(keys_.size());

    const Eigen::Index dv = v_.cols();
    RowVector o = RowVector::Zero(dv), magnitude = o, plain = o, squares = o, scores = o;
    for (const Key& key : keys_) {
      if (key.p == 0 && key.exact_weight) continue;
      const auto v = v_.row(key.j).array();
      o += key.p * v;
      magnitude += key.p * v.abs();
      plain += v.abs();
      squares += (key.p * v).square();
    }
    for (const Key& key : keys_)
      if (key.p > 0 && key.delta > 0)
        scores += key.p * key.delta * (v_.row(key.j).array() - o).abs();
    // the weights' errors shift the normaliser too, by up to sum p delta
    if (theta < 1)
      scores /= 1 - theta;
    else
      scores.setConstant(inf);

    RowVector rounding = RowVector::Zero(dv);
    const double u_p = may_.probability_rounding;
    if (!powers && u_p > 0) {
      if (rigorous_)
        rounding = u_p * magnitude;
      else
        rounding = deviations * u_p * (squares + cells(m)).sqrt();
      rounding += underflow_error(may_.storage) * plain;
    }
    const bool exact_sum = uniform && (plain <= v_exact_below_).all();
    RowVector sum = RowVector::Zero(dv);
    if (!exact_sum) sum = accumulation_(count) * magnitude;
    if (!one_hot) sum += (rigorous_ ? 16 : 8) * u32 * magnitude;
    if (!one_hot && !uniform) sum += smallest_normal * plain;

    const double u_o = unit_roundoff(may_.storage), eta = underflow_error(may_.storage);
    double* const value = dv ? &out_.o(b, h, i, 0) : nullptr;
    for (Eigen::Index d = 0; d < dv; ++d) {
      const double inner = scores[d] + rounding[d] + sum[d];
      // a value that the storage type holds is stored as it is
      const bool stored = inner == 0 && (one_hot || o[d] == 0);
      const double output = stored ? 0 : u_o * (std::abs(o[d]) + inner) + eta;
      value[d] = o[d];
      out_.o_bound(b, h, i, d) = inner + output;
      out_.o_term(b, h, i, d) = dominating(scores[d], rounding[d], sum[d], output);
      nonzero_ += o[d] != 0;
      powerless_ += inner >= magnitude[d] && magnitude[d] > 0;
    }
    elements_ += dv;
    out_.lse(b, h, i) = L;
    if (!one_hot)
      out_.lse_bound(b, h, i) = (theta < 1 ? theta / (1 - theta) : inf) +
                                (uniform ? 0 : accumulation_(count)) +
                                (rigorous_ ? 6 : 4) * u32 * (std::abs(m) + std::abs(L) + 1);
    ++(one_hot   ? out_.rows.one_hot
       : uniform ? out_.rows.counted
       : powers  ? out_.rows.powers
                 : out_.rows.general);
    note_amplification(m);
  }

  /// sum over cells of (sum_{j in cell} p v)^2: keys whose weight rounds to one number share its
  /// rounding error.
  RowVector cells(double m) {
    order_.clear();
    for (const Key& key : keys_)
      if (key.p > 0) order_.push_back({rounded_weight(std::exp(key.t - m)), &key});
    std::sort(order_.begin(), order_.end(), [](auto& a, auto& b) { return a.first < b.first; });
    RowVector sum = RowVector::Zero(v_.cols());
    for (std::size_t first = 0, last; first < order_.size(); first = last) {
      for (last = first + 1; last < order_.size() && order_[last].first == order_[first].first;)
        ++last;
      if (last - first < 2) continue;
      RowVector cell = RowVector::Zero(v_.cols());
      for (std::size_t x = first; x < last; ++x)
        cell += order_[x].second->p * v_.row(order_[x].second->j).array();
      sum += cell.square();
    }
    return sum;
  }

  float rounded_weight(double weight) const {
    const float w = static_cast<float>(weight);
    return may_.storage == DType::f16 ? to_float(from_float<half>(w))
                                      : to_float(from_float<bfloat16>(w));
  }

  static Term dominating(double scores, double rounding, double sum, double output) {
    const std::pair<double, Term> terms[] = {{output, Term::output},
                                             {sum, Term::accumulation},
                                             {rounding, Term::probabilities},
                                             {scores, Term::scores}};
    const auto most = std::max_element(std::begin(terms), std::end(terms),
                                       [](auto& a, auto& b) { return a.first < b.first; });
    return most->first > 0 ? most->second : Term::none;
  }

  /// How much more the row's weights may be off than the raw scores' errors alone explain.
  void note_amplification(double m) {
    double with = 0, without = 0, least = 0;
    for (const Key& key : keys_) {
      const double common = 3 * u32 * (std::abs(key.t) + std::abs(m)) + 4 * may_.exp_rounding;
      with += key.p * (key.p > 0 ? key.e + common : 0);
      without += key.p * (raw_[key.j].value.e + common);
      least += key.p;
    }
    const double floor =
        without + (may_.probability_rounding + unit_roundoff(may_.storage)) * least;
    if (floor > 0) amplification_.push_back((with + floor - without) / floor);
  }

  void empty_row(int b, int h, int i) {
    ++out_.rows.empty;
    out_.lse(b, h, i) = -inf;
  }

  void not_finite_row(int b, int h, int i, int j) {
    ++out_.rows.not_finite;
    const double nan = std::numeric_limits<double>::quiet_NaN();
    if (out_.finding.empty())
      out_.finding = "score " + std::to_string(raw_[j].value.v) + " becomes " +
                     std::to_string(row_[j].value.v) + " at b=" + std::to_string(b) +
                     " h=" + std::to_string(h) + " q=" + std::to_string(i) +
                     " kv=" + std::to_string(j);
    for (Eigen::Index d = 0; d < v_.cols(); ++d) out_.o(b, h, i, d) = nan;
    out_.lse(b, h, i) = nan;
  }

  void finish() {
    if (elements_ > 0) {
      out_.zero_share = 1 - static_cast<double>(nonzero_) / static_cast<double>(elements_);
      out_.powerless_share = static_cast<double>(powerless_) / static_cast<double>(elements_);
    }
    if (!amplification_.empty()) {
      const auto middle = amplification_.begin() + amplification_.size() / 2;
      std::nth_element(amplification_.begin(), middle, amplification_.end());
      out_.amplification = *middle;
    }
  }

  const ForwardInputs& in_;
  const RowScorer& scorer_;
  const Numerics& may_;
  bool rigorous_;
  Accumulation accumulation_;
  ForwardBounds out_;
  Matrix v_;  // [Skv, Dv] of the head at hand
  double v_exact_below_ = 0;
  std::vector<BoundedScore> row_, raw_;
  std::vector<Key> keys_;
  std::vector<std::pair<float, const Key*>> order_;
  std::vector<double> amplification_;
  std::int64_t elements_ = 0, nonzero_ = 0, powerless_ = 0;
};

}  // namespace

const char* name_of(Term term) {
  switch (term) {
    case Term::none:
      return "exact";
    case Term::scores:
      return "score error";
    case Term::probabilities:
      return "P rounding";
    case Term::accumulation:
      return "accumulation";
    case Term::output:
      return "output rounding";
  }
  return "?";
}

ForwardBounds bound_forward(const ForwardInputs& in, const RowScorer& scorer, const Numerics& may,
                            BoundKind kind) {
  return Pass(in, scorer, may, kind).run();
}

}  // namespace attn::fuzz
