/// The forward half of the oracle. Notation of one query row: s the scaled score, t = mod(s),
/// m = max t, p = exp(t - L), L = log sum exp t, f the factor of dropout (0 or 1 / (1 - p)),
/// O = sum f p v. A sink is one more key, whose value is 0. A hat marks what a kernel computes.
///
///   p^_j = p_j (1 + theta_j)(1 + rho_j),  p_j |theta_j| <= spread_j (scores and exponential),
///                                         |rho_j| <= u_P (P rounded to the storage type)
///   O^ - O = sum p theta (f v - O)        normalisation absorbs what the row has in common
///          + sum f p rho v                not so here: l is summed from the unrounded p
///          + accumulation + rounding of the output.
///
/// The rounding errors rho are independent except among keys that round the same number, which
/// form a cell: variance = u_P^2 (sum_j (p v)^2 + sum_cells (sum_{j in cell} p v)^2), taken at 4
/// standard deviations. Whatever the case itself proves exact contributes nothing.
#include "fuzz/forward_bounds.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "reference/dropout.h"

namespace attn::fuzz {
namespace {

constexpr double inf = unbounded;

class ForwardPass {
 public:
  ForwardPass(const PassInputs& in, const RowScorer& scorer, const Numerics& may, BoundKind kind)
      : in_(in),
        scorer_(scorer),
        may_(may),
        kind_(kind),
        rigorous_(kind == BoundKind::rigorous),
        accumulation_{kind, may.tensor_core},
        kept_(1 / (1 - in.dropout.p)),
        dropout_exact_(is_power_of_two(kept_)) {
    const auto e = in.q.extents();
    const std::int64_t dv = in.v.extents()[3];
    out_.o = out_.o_bound = Tensor<double, 4>({e[0], e[1], e[2], dv});
    out_.o_term = Tensor<Term, 4>({e[0], e[1], e[2], dv});
    out_.lse = out_.lse_bound = out_.row_max = out_.row_max_bound =
        Tensor<double, 3>({e[0], e[1], e[2]});
  }

  ForwardBounds run() {
    const int hq = in_.sizes.hq, group = in_.sizes.hkv > 0 ? hq / in_.sizes.hkv : 1;
    for (const Sequence& sequence : in_.sequences)
      for (int h = 0; h < hq; ++h) bound_head(sequence, h, h / group);
    finish();
    return std::move(out_);
  }

 private:
  /// One key of a row, after the mod and the mask; the sink, if there is one, is the last.
  struct Key {
    int j;  ///< -1: the sink
    double t, e, p = 0, spread = 0, f = 1;
    bool exact_weight = false;  ///< exp(t - m) is exactly 1 or 0 in a kernel
  };
  struct Row {
    int b, h, i;
  };

  void bound_head(const Sequence& sequence, int h, int hkv) {
    const int rows = sequence.queries.count, keys = sequence.keys.count, b = sequence.queries.batch;
    const Matrix q = rows_of(in_.q, b, h, rows), k = rows_of(in_.k, b, hkv, keys);
    v_ = rows_of(in_.v, b, hkv, keys);
    v_rounding_ = operand_rounding(may_, v_);
    v_exact_below_ = v_rounding_ == 0 ? 0x1p24 * quantum(v_) : 0;
    nan_keys_.assign(keys, false);
    for (int j = 0; j < keys; ++j)
      if (!v_.row(j).allFinite()) nan_keys_[j] = true, v_.row(j).setZero();
    poisoned_ = std::find(nan_keys_.begin(), nan_keys_.end(), true) != nan_keys_.end();
    sink_ = in_.sink.empty() ? -inf : in_.sink[h];
    const BoundedMatrix s = bounded_scores(q, k, in_.scale, may_, kind_);
    Matrix factors = Matrix::Ones(rows, keys);  // of dropout
    reference::DropoutFactors(in_.dropout).apply({sequence.b, h, 0, sequence.sizes}, factors);
    for (int i = 0; i < rows; ++i) {
      row_.resize(keys);
      for (int j = 0; j < keys; ++j) row_[j] = {Rounded(s.value(i, j), s.error(i, j)), true};
      raw_ = row_;
      scorer_.score({sequence, h, i}, row_);
      bound_row({b, h, i}, factors.row(i).array());
    }
  }

  void bound_row(const Row& at, const RowVector& factors) {
    keys_.clear();
    double m = -inf;
    for (int j = 0; j < static_cast<int>(row_.size()); ++j) {
      const BoundedScore& s = row_[j];
      if (!s.attended.value && s.attended.sure) continue;
      const double e = s.attended.sure ? s.value.e : inf;
      if (s.value.v == -inf && e == 0) continue;  // the mod masks the pair
      if (std::isnan(s.value.v) || s.value.v == inf || nan_keys_[j])
        return not_finite_row(at, j, factors);
      keys_.push_back({j, s.attended.value ? s.value.v : -inf, e});
      keys_.back().f = factors[j];
      m = std::max(m, keys_.back().t);
    }
    if (std::isnan(sink_) || sink_ == inf) return not_finite_sink(at, m);
    if (keys_.empty()) return empty_row(at);
    out_.rows.one_key += keys_.size() == 1;
    if (m == -inf) return unknown_row(at);

    double m_error = 0;
    for (Key& key : keys_) {
      // overflow to -inf changes nothing for a key that weighs nothing anyway
      if (row_[key.j].value.may_be_minus_infinity && key.t + key.e > m - 2 * vanishes) key.e = inf;
      if (key.t + key.e >= m) m_error = std::max(m_error, key.e);
    }
    out_.row_max(at.b, at.h, at.i) = m;
    out_.row_max_bound(at.b, at.h, at.i) = m_error + (rigorous_ ? 4 : 3) * u32 * std::abs(m);
    if (sink_ != -inf) keys_.push_back({-1, sink_, 0});
    const double top = std::max(m, sink_);
    double l = 0;
    for (const Key& key : keys_) l += std::exp(key.t - top);
    weigh(m, m_error, top + std::log(l));
    finish_row(at, m, top + std::log(l));
  }

  /// Fills p and spread of every key. The exponent of a kernel's weight carries the score's error,
  /// three fp32 roundings of t and m, and those of a few exponentials (its own and the rescales of
  /// the online softmax, to which the sink adds one).
  void weigh(double m, double m_error, double L) {
    const double rescales = (rigorous_          ? static_cast<double>(row_.size()) / 16 + 3
                             : may_.tensor_core ? 4
                                                : 3) +
                            (sink_ != -inf ? 1 : 0);
    const double roundings = rigorous_ ? 4 : 3;
    const double top = std::max(m, sink_), least_top = std::max(m - m_error, sink_);
    const double size = std::max(std::abs(m), sink_ == -inf ? 0 : std::abs(sink_));
    // what is left of a part's whole sum vanishes too
    const double gone =
        vanishes + (may_.most_splits > 1 ? std::log(static_cast<double>(keys_.size())) : 0);
    double ambiguous = 0;
    for (Key& key : keys_) {
      const bool zero = key.t + key.e <= least_top - gone;
      const bool one = top == 0 && m_error == 0 && key.t == 0 && key.e == 0;
      key.exact_weight = zero || one;
      key.p = zero ? 0 : std::exp(key.t - L);
      if (!key.exact_weight)
        key.spread =
            exponential_spread(key.t - L, key.e + roundings * u32 * (std::abs(key.t) + size) +
                                              rescales * may_.exp_rounding);
      if (key.j >= 0 && (row_[key.j].value.ambiguous || !row_[key.j].attended.sure))
        ambiguous += key.p;
    }
    out_.ambiguous_mass = std::max(out_.ambiguous_mass, ambiguous);
  }

  /// Parts of a row are merged with weights exp(LSE_part - LSE), where LSE_part is between the
  /// scores of the part and LSE.
  void merge_parts(double L) {
    const double roundings = rigorous_ ? 8 : 6;
    for (Key& key : keys_)
      if (key.p > 0)
        key.spread +=
            key.p *
            std::expm1(roundings * u32 * (std::max(std::abs(key.t), std::abs(L)) + std::abs(L)) +
                       2 * may_.exp_rounding + 4 * u32);
  }

  /// True if rounding P to the storage type changes nothing: every weight exp(t - m) is a power of
  /// two to within far less than half a unit. `t` is measured from m = 0 so that any running
  /// maximum among the keys leaves powers of two. Adds each weight's distance to it to its spread.
  bool snap_to_powers(double m) {
    if (may_.probability_rounding == 0 || m != 0 || !dropout_exact_) return false;
    const auto distance = [](const Key& key) {
      return std::abs(std::exp(key.t) / std::exp2(std::round(key.t / std::log(2.0))) - 1);
    };
    const auto is_rounded = [](const Key& key) { return key.j >= 0 && !key.exact_weight; };
    for (const Key& key : keys_)
      if (is_rounded(key) &&
          (std::exp(key.t) < 0x1p-14 ||
           distance(key) * key.p + key.spread > may_.probability_rounding / 8 * key.p))
        return false;
    for (Key& key : keys_)
      if (is_rounded(key)) key.spread += key.p * distance(key);
    return true;
  }

  /// The sums of a row over its keys, one channel of V an entry.
  struct Sums {
    RowVector o, magnitude, plain, squares;  ///< f p v, its |.|, |v|, its square
  };
  Sums sums() const {
    const RowVector zero = RowVector::Zero(v_.cols());
    Sums sum{zero, zero, zero, zero};
    for (const Key& key : keys_) {
      if (key.j < 0 || key.f == 0 || (key.p == 0 && key.exact_weight)) continue;
      const auto v = v_.row(key.j).array();
      const double w = key.f * key.p;
      sum.o += w * v;
      sum.magnitude += w * v.abs();
      sum.plain += v.abs();
      sum.squares += (w * v).square();
    }
    return sum;
  }

  void finish_row(const Row& at, double m, double L) {
    const bool uniform =
        std::all_of(keys_.begin(), keys_.end(), [](const Key& key) { return key.exact_weight; });
    const bool one_hot = uniform && 1 == std::count_if(keys_.begin(), keys_.end(),
                                                       [](auto& key) { return key.p > 0; });
    const bool powers = (uniform && dropout_exact_) || snap_to_powers(m);
    if (may_.most_splits > 1 && !one_hot) merge_parts(L);
    double theta = 0;
    for (const Key& key : keys_) theta += key.spread;
    finish_o(at, uniform, one_hot && dropout_exact_ && v_rounding_ == 0, powers, theta, m);
    out_.lse(at.b, at.h, at.i) = L;
    if (!one_hot)
      out_.lse_bound(at.b, at.h, at.i) =
          (theta < 1 ? theta / (1 - theta) : inf) +
          (uniform ? 0 : accumulation_(static_cast<double>(keys_.size()))) +
          (rigorous_ ? 6 : 4) * u32 *
              (std::max(std::abs(m), sink_ == -inf ? 0 : std::abs(sink_)) + std::abs(L) + 1);
    ++(one_hot   ? out_.rows.one_hot
       : uniform ? out_.rows.counted
       : powers  ? out_.rows.powers
                 : out_.rows.general);
    note_amplification(m);
  }

  /// `a_row`: O is one row of V, times a power of two.
  void finish_o(const Row& at, bool uniform, bool a_row, bool powers, double theta, double m) {
    const auto [o, magnitude, plain, squares] = sums();
    RowVector scores = RowVector::Zero(v_.cols());
    for (const Key& key : keys_)
      if (key.spread > 0) {
        if (key.j < 0)
          scores += key.spread * o.abs();
        else
          scores += key.spread * (key.f * v_.row(key.j).array() - o).abs();
      }
    // the weights' errors shift the normaliser too, by up to their sum
    if (theta < 1)
      scores /= 1 - theta;
    else
      scores.setConstant(inf);

    const double u_p = powers ? 0 : may_.probability_rounding + may_.input_rounding;
    RowVector rounding = (u_p + v_rounding_) * magnitude;
    if (!rigorous_ && u_p + v_rounding_ > 0) {
      RowVector variance = (u_p * u_p + v_rounding_ * v_rounding_) * squares;
      if (u_p > 0) variance += u_p * u_p * cells(m);
      rounding = rounding.min(deviations * variance.sqrt());
    }
    if (u_p > 0) rounding += underflow_error(may_.storage) * kept_ * plain;
    RowVector sum = RowVector::Zero(v_.cols());
    if (!(uniform && dropout_exact_ && (plain <= v_exact_below_).all()))
      sum = accumulation_(static_cast<double>(keys_.size())) * magnitude;
    if (!a_row) sum += ((rigorous_ ? 16 : 8) + (dropout_exact_ ? 0 : 2)) * u32 * magnitude;
    if (!uniform) sum += smallest_normal * kept_ * plain;

    const RowVector vanished = (o == 0).any() ? vanished_values() : o;
    for (Eigen::Index d = 0; d < v_.cols(); ++d) {
      const double left =
          o[d] == 0 ? rounded_to(may_.storage, std::exp(-vanishes) * vanished[d]) : 0;
      const double inner = scores[d] + rounding[d] + sum[d] + left;
      const double bound = poisoned_ ? inf : stored_bound(may_.storage, o[d], inner);
      out_.o(at.b, at.h, at.i, d) = o[d];
      out_.o_bound(at.b, at.h, at.i, d) = bound;
      out_.o_term(at.b, at.h, at.i, d) = poisoned_
                                             ? Term::poison
                                             : dominating_term({{bound - inner, Term::output},
                                                                {sum[d], Term::accumulation},
                                                                {rounding[d], Term::probabilities},
                                                                {scores[d], Term::scores}},
                                                               bound);
      nonzero_ += o[d] != 0;
      powerless_ += inner >= magnitude[d] && magnitude[d] > 0;
    }
    elements_ += v_.cols();
  }

  /// sum f |v| of the keys whose weight vanishes. A kernel that met such a key before the row's
  /// largest score has multiplied it with v before its weight fell below what fp32 can hold: that
  /// shows in fp32 where nothing else does, as where the key with all the weight is dropped.
  RowVector vanished_values() const {
    RowVector sum = RowVector::Zero(v_.cols());
    for (const Key& key : keys_)
      if (key.j >= 0 && key.p == 0 && key.exact_weight) sum += key.f * v_.row(key.j).array().abs();
    return sum;
  }

  /// sum over cells of (sum_{j in cell} f p v)^2: keys whose weight rounds to one number share its
  /// rounding error.
  RowVector cells(double m) {
    order_.clear();
    for (const Key& key : keys_) {
      if (key.j < 0 || key.f * key.p == 0) continue;
      const double weight = key.f * std::exp(key.t - m);
      order_.push_back({static_cast<float>(as_operand(may_, rounded_to(may_.storage, weight))),
                        key.j, key.f * key.p});
    }
    RowVector sum = RowVector::Zero(v_.cols());
    add_cells(order_, v_, sum);
    return sum;
  }

  /// How much more the row's weights may be off than the raw scores' errors alone explain.
  void note_amplification(double m) {
    double with = 0, without = 0, least = 0;
    for (const Key& key : keys_) {
      if (key.j < 0) continue;
      const double common = 3 * u32 * (std::abs(key.t) + std::abs(m)) + 4 * may_.exp_rounding;
      with += key.p * (key.p > 0 ? key.e + common : 0);
      without += key.p * (raw_[key.j].value.e + common);
      least += key.p;
    }
    const double floor =
        without +
        (may_.probability_rounding + may_.input_rounding + unit_roundoff(may_.storage)) * least;
    if (floor > 0) amplification_.push_back((with + floor - without) / floor);
  }

  void empty_row(const Row& at) {
    ++out_.rows.empty;
    out_.lse(at.b, at.h, at.i) = sink_;
    out_.row_max(at.b, at.h, at.i) = -inf;
    if (poisoned_) poison(at, 0);
  }
  /// Rounding decides whether the row attends any key.
  void unknown_row(const Row& at) {
    ++out_.rows.general;
    out_.ambiguous_mass = 1;
    out_.lse(at.b, at.h, at.i) = sink_;
    out_.row_max(at.b, at.h, at.i) = -inf;
    poison(at, 0);
  }
  void poison(const Row& at, double value) {
    for (Eigen::Index d = 0; d < v_.cols(); ++d) {
      out_.o(at.b, at.h, at.i, d) = value;
      out_.o_bound(at.b, at.h, at.i, d) = inf;
      out_.o_term(at.b, at.h, at.i, d) = Term::poison;
    }
  }

  static constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  void not_finite_row(const Row& at, int j, const RowVector& factors) {
    ++out_.rows.not_finite;
    if (out_.finding.empty() && !nan_keys_[j])
      out_.finding = describe_pair(raw_[j].value.v, row_[j].value.v, at.b, at.h, at.i, j);
    out_.lse(at.b, at.h, at.i) = out_.row_max(at.b, at.h, at.i) = nan;
    bool kept = false;  // where dropout leaves no pair, a kernel may give 0 or 0 * NaN
    for (std::size_t key = 0; key < row_.size(); ++key) {
      const BoundedScore& s = row_[key];
      const bool masked = (!s.attended.value && s.attended.sure) || s.value.v == -inf;
      kept |= !masked && factors[static_cast<Eigen::Index>(key)] != 0;
    }
    if (!kept) return poison(at, 0);
    for (Eigen::Index d = 0; d < v_.cols(); ++d) out_.o(at.b, at.h, at.i, d) = nan;
  }
  /// A sink of NaN or +inf, which leaves O = 0 where the row has no key.
  void not_finite_sink(const Row& at, double m) {
    ++out_.rows.not_finite;
    for (Eigen::Index d = 0; d < v_.cols(); ++d)
      out_.o(at.b, at.h, at.i, d) = keys_.empty() ? 0 : nan;
    out_.lse(at.b, at.h, at.i) = nan;
    out_.row_max(at.b, at.h, at.i) = m;
    out_.row_max_bound(at.b, at.h, at.i) = m == -inf ? 0 : inf;
  }

  void finish() {
    if (elements_ > 0) {
      out_.zero_share = 1 - static_cast<double>(nonzero_) / static_cast<double>(elements_);
      out_.powerless_share = static_cast<double>(powerless_) / static_cast<double>(elements_);
    }
    out_.amplification = median_or_one(amplification_);
  }

  const PassInputs& in_;
  const RowScorer& scorer_;
  const Numerics& may_;
  BoundKind kind_;
  bool rigorous_;
  Accumulation accumulation_;
  double kept_;         // the factor of a pair that dropout keeps
  bool dropout_exact_;  // it is a power of two
  ForwardBounds out_;
  // of the head at hand
  Matrix v_;  // [Skv, Dv], rows that are not finite 0
  double v_exact_below_ = 0, v_rounding_ = 0, sink_ = -inf;
  std::vector<bool> nan_keys_;
  bool poisoned_ = false;
  // of the row at hand
  std::vector<BoundedScore> row_, raw_;
  std::vector<Key> keys_;
  std::vector<CellMember> order_;
  std::vector<double> amplification_;
  std::int64_t elements_ = 0, nonzero_ = 0, powerless_ = 0;
};

}  // namespace

ForwardBounds bound_forward(const PassInputs& in, const RowScorer& scorer, const Numerics& may,
                            BoundKind kind) {
  return ForwardPass(in, scorer, may, kind).run();
}

}  // namespace attn::fuzz
