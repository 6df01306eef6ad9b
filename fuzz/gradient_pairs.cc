/// The errors of one pair, in the notation of gradient_pairs.h. A hat marks what a kernel computes.
///
///   p^ = p (1 + theta)         theta: the score, LSE as stored, one exponential
///   X^ = X + xi - (shift_i + epsilon_i)
///                              xi: dP and the subtraction; shift: delta of the stored O, known;
///                              epsilon: the summation of delta; both are one number a row
///   f^ = f + phi               running error analysis on dual numbers (mods/lang/rounded.h)
///   dS^ = p^ X^ f^ + roundings
///
/// What comes through delta is p f (shift + epsilon) to first order and has one sign a row: it is
/// kept apart, so that it may cancel in sum_j dS_j K_j. All else is added up by magnitude.
#include "fuzz/gradient_pairs.h"

#include <algorithm>
#include <cmath>

#include "reference/dropout.h"

namespace attn::fuzz {
namespace {

constexpr double inf = unbounded;

/// Which rows have a number that is not finite; it becomes 0.
std::vector<bool> take_out_nan(Matrix& x) {
  std::vector<bool> nan(x.rows());
  for (Eigen::Index i = 0; i < x.rows(); ++i)
    for (Eigen::Index d = 0; d < x.cols(); ++d)
      if (!std::isfinite(x(i, d))) nan[i] = true, x(i, d) = 0;
  return nan;
}

/// How far rounding a number within `e` of x, by a share u of it, may move it, with the sign of x;
/// nothing where x is such a number and e cannot change that.
double operand_error(const Numerics& may, double u, double x, double e) {
  if (u == 0 || (x == 0 && e == 0)) return 0;
  const double nearest = as_operand(may, rounded_to(may.storage, x)), off = std::abs(nearest - x);
  const bool held = off <= 0x1p-40 * std::abs(x) && std::abs(x) >= smallest_normal;
  if (held && off + e < u / 4 * std::abs(x)) return std::copysign(off, x);
  const double size = std::abs(x) + e;
  return std::copysign(std::min(size, std::max(u * size, underflow_error(may.storage))), x);
}

class PairPass {
 public:
  PairPass(const BackwardContext& context, const Sequence& sequence, int hkv,
           BackwardTotals& totals)
      : context_(context),
        in_(context.in),
        may_(context.may),
        sequence_(sequence),
        totals_(totals),
        group_(in_.sizes.hq / in_.sizes.hkv),
        rows_(sequence.queries.count),
        keys_(sequence.keys.count),
        batch_(sequence.queries.batch),
        hkv_(hkv),
        dropout_exact_(is_power_of_two(1 / (1 - in_.dropout.p))) {
    allocate();
  }

  GradientPairs run() {
    for (int g = 0; g < group_; ++g) prepare_head(g);
    for (int r = 0; r < group_ * rows_; ++r) weigh_row(r);
    out_.weight = factors_.cwiseProduct(p_);
    find_delta();
    for (int r = 0; r < group_ * rows_; ++r) {
      add_sink(r);
      differentiate_row(r);
    }
    return std::move(out_);
  }

 private:
  enum class RowKind : std::uint8_t { empty, finite, not_finite };

  void allocate() {
    const int all = group_ * rows_;
    const auto d = in_.q.extents()[3], dv = in_.v.extents()[3];
    out_.q = Matrix(all, d);
    out_.d_o = o_ = Matrix(all, dv);
    out_.k = k_ = rows_of(in_.k, batch_, hkv_, keys_);
    v_ = rows_of(in_.v, batch_, hkv_, keys_);
    out_.k_nan = take_out_nan(out_.k);
    v_nan_ = take_out_nan(v_);
    const Matrix none = Matrix::Zero(all, keys_);
    out_.weight_error = out_.weight_rounding = out_.ds = out_.ds_error = none;
    out_.ds_rounding = out_.ds_by_delta = out_.ds_size = none;
    s_ = s_error_ = dp_ = dp_error_ = dp_size_ = p_ = p_error_ = e_ = slope_ = slope_error_ = none;
    factors_ = Matrix::Ones(all, keys_);
    attended_.setConstant(all, keys_, false);
    out_.delta_shift = out_.delta_error = Eigen::VectorXd::Zero(all);
    kind_.assign(all, RowKind::empty);
    lse_.assign(all, -inf);
    delta_.assign(all, 0);
    delta_size_.assign(all, 0);
    exact_x_below_.assign(all, 0);
    out_.nan_dq = out_.any_dq = out_.row_attends = std::vector<bool>(all);
    out_.nan_dk = out_.any_dk = out_.nan_dv = out_.any_dv = out_.key_attended =
        std::vector<bool>(keys_);
    out_.exact_weights = std::vector<bool>(keys_, true);
    out_.nan_dv_channel.setConstant(keys_, dv, false);
  }

  int head_of(int r) const { return hkv_ * group_ + r / rows_; }
  ScoreRow score_row(int r) const { return {sequence_, head_of(r), r % rows_}; }
  double d_lse(int r) const {
    return in_.d_lse.values().empty() ? 0 : in_.d_lse(batch_, head_of(r), r % rows_);
  }
  double sink(int r) const { return in_.sink.empty() ? -inf : in_.sink[head_of(r)]; }

  /// The products and the factors of one head.
  void prepare_head(int g) {
    const int h = hkv_ * group_ + g, first = g * rows_;
    Matrix q = rows_of(in_.q, batch_, h, rows_), d_o = rows_of(in_.d_o, batch_, h, rows_);
    const BoundedMatrix s = bounded_scores(q, k_, in_.scale, may_, context_.kind);
    for (const bool nan : take_out_nan(q)) out_.q_nan.push_back(nan);
    for (const bool nan : take_out_nan(d_o)) out_.d_o_nan.push_back(nan);
    const BoundedMatrix dp = bounded_products(d_o, v_, may_, context_.kind);
    const Matrix o = rows_of(context_.given.o, batch_, h, rows_);
    Matrix factors = Matrix::Ones(rows_, keys_);
    reference::DropoutFactors(in_.dropout).apply({sequence_.b, h, 0, sequence_.sizes}, factors);
    s_.middleRows(first, rows_) = s.value;
    s_error_.middleRows(first, rows_) = s.error;
    dp_.middleRows(first, rows_) = dp.value;
    dp_error_.middleRows(first, rows_) = dp.error;
    dp_size_.middleRows(first, rows_) = dp.magnitude;
    factors_.middleRows(first, rows_) = factors;
    out_.q.middleRows(first, rows_) = q;
    out_.d_o.middleRows(first, rows_) = d_o;
    o_.middleRows(first, rows_) = o;
    // X of whole multiples of one quantum is exact while its terms stay below 2^24 of it
    const double quanta = quantum(d_o) * std::min(quantum(v_), quantum(o));
    for (int r = first; r < first + rows_; ++r) {
      Matrix incoming(1, 1);
      incoming(0, 0) = d_lse(r);
      exact_x_below_[r] = dropout_exact_ ? 0x1p24 * std::min(quanta, quantum(incoming)) : 0;
    }
  }

  /// p, f and their errors for one row.
  void weigh_row(int r) {
    scores_.resize(keys_);
    slopes_.assign(keys_, Rounded());
    for (int j = 0; j < keys_; ++j) scores_[j] = {Rounded(s_(r, j), s_error_(r, j)), true};
    context_.scorer.differentiate(score_row(r), scores_, slopes_);
    double m = -inf;
    bool finite = true;
    for (int j = 0; j < keys_; ++j) {
      const BoundedScore& s = scores_[j];
      if (!s.attended.value && s.attended.sure) continue;
      if (s.value.v == -inf && s.attended.sure && s.value.e == 0) continue;  // the mod masks it
      attended_(r, j) = true;
      out_.row_attends[r] = out_.key_attended[j] = true;
      if (std::isnan(s.value.v) || s.value.v == inf || v_nan_[j]) {
        finite = false;
        if (totals_.finding.empty() && !v_nan_[j])
          totals_.finding = describe_pair(s_(r, j), s.value.v, batch_, head_of(r), r % rows_, j);
      } else if (s.attended.value) {
        m = std::max(m, s.value.v);
      }
    }
    if (!out_.row_attends[r]) {
      ++totals_.rows.empty;
      lse_[r] = sink(r);
      return;
    }
    const double top = std::max(m, sink(r));
    if (!finite || std::isnan(sink(r)) || top == inf) {
      ++totals_.rows.not_finite;
      kind_[r] = RowKind::not_finite;
      return;
    }
    kind_[r] = RowKind::finite;
    double l = sink(r) == -inf ? 0 : std::exp(sink(r) - top);
    for (int j = 0; j < keys_; ++j)
      if (attended_(r, j) && scores_[j].attended.value) l += std::exp(scores_[j].value.v - top);
    lse_[r] = top == -inf ? -inf : top + std::log(l);
    double ambiguous = 0;
    for (int j = 0; j < keys_; ++j)
      if (attended_(r, j)) {
        weigh_pair(r, j, m);
        if (scores_[j].value.ambiguous || slopes_[j].ambiguous || !scores_[j].attended.sure)
          ambiguous += p_(r, j);
      }
    totals_.ambiguous_mass = std::max(totals_.ambiguous_mass, ambiguous);
  }

  void weigh_pair(int r, int j, double m) {
    const BoundedScore& s = scores_[j];
    const double L = lse_[r], given = context_.given.lse(batch_, head_of(r), r % rows_);
    const double t = s.attended.value ? s.value.v : -inf;
    double e = s.attended.sure ? s.value.e : inf;
    if (s.value.may_be_minus_infinity && t + e > m - 2 * vanishes) e = inf;
    const bool zero = t + e <= L - vanishes - 0.5;  // exp2 rounds it to 0 whatever log2 e loses
    const bool one = t == 0 && e == 0 && given == 0 && L == 0;
    e_(r, j) = e;
    p_(r, j) = zero ? 0 : std::exp(t - L);
    if (!zero && !one)
      p_error_(r, j) = exponential_spread(t - L, e + std::abs(given - L) + may_.exp_rounding +
                                                     (context_.rigorous() ? 4 : 3) * u32 *
                                                         (std::abs(t) + std::abs(L))) +
                       smallest_normal;
    slope_(r, j) = slopes_[j].v;
    slope_error_(r, j) = slopes_[j].e;
  }

  /// delta, what storing O moves it by, and what summing it may.
  void find_delta() {
    const Matrix o = out_.weight * v_;
    const Accumulation sum{context_.kind, false};
    const double n = static_cast<double>(o.cols());
    for (int r = 0; r < group_ * rows_; ++r) {
      if (kind_[r] != RowKind::finite) continue;
      const auto d_o = out_.d_o.row(r);
      delta_[r] = d_o.dot(o.row(r));
      const double size = d_o.cwiseProduct(o_.row(r)).cwiseAbs().sum();
      out_.delta_shift[r] = may_.delta_from_stored_o ? d_o.dot(o_.row(r) - o.row(r)) : 0;
      delta_size_[r] = size;
      out_.delta_error[r] = size <= exact_x_below_[r] ? 0 : sum(n) * size + n * smallest_normal;
      if (!may_.delta_from_stored_o) out_.delta_error[r] += own_delta_error(r);
    }
  }

  /// Of a kernel that makes O again, in fp32: the weights' errors, and those of another sum.
  double own_delta_error(int r) const {
    double error = 0, size = 0;
    for (int j = 0; j < keys_; ++j) {
      const double dp = factors_(r, j) * std::abs(dp_(r, j));
      error += p_error_(r, j) * (dp + std::abs(delta_[r]));
      size += p_(r, j) * factors_(r, j) * dp_size_(r, j);
    }
    return error + (Accumulation{context_.kind, may_.tensor_core}(keys_) + 8 * u32) * size;
  }

  /// dSink += exp(sink - LSE) (dLSE - delta), empty rows included.
  void add_sink(int r) {
    SinkSums& sums = totals_.sinks[head_of(r)];
    const double logit = sink(r);
    if (logit == -inf) return;
    ++sums.rows;
    if (kind_[r] == RowKind::not_finite || std::isnan(logit) || logit == inf || out_.d_o_nan[r]) {
      sums.value = std::numeric_limits<double>::quiet_NaN();
      return;
    }
    const double given = context_.given.lse(batch_, head_of(r), r % rows_), L = lse_[r];
    const double weight = std::exp(logit - L), x = d_lse(r) - delta_[r];
    const double theta =
        logit == given && logit == L
            ? 0
            : std::expm1(std::abs(given - L) + may_.exp_rounding +
                         (context_.rigorous() ? 4 : 3) * u32 * (std::abs(logit) + std::abs(L)));
    const double by_delta = out_.delta_error[r] + std::abs(out_.delta_shift[r]);
    sums.value += weight * x;
    sums.magnitude += weight * std::abs(x);
    sums.shift -= weight * out_.delta_shift[r];
    sums.error += weight * (theta * (std::abs(x) + by_delta) + out_.delta_error[r] +
                            2 * u32 * (std::abs(x) + std::abs(d_lse(r)) + std::abs(delta_[r]))) +
                  (theta > 0 ? smallest_normal * (1 + std::abs(x)) : 0);
  }

  void differentiate_row(int r) {
    if (kind_[r] == RowKind::empty) return;
    bool sure = true, unrounded = true;
    int ones = 0;
    double with = 0, without = 0, least = 0;
    for (int j = 0; j < keys_; ++j) {
      if (!attended_(r, j)) continue;
      if (spread_nan(r, j)) continue;
      make_weight(r, j);
      make_ds(r, j);
      const double p = p_(r, j), L = std::abs(lse_[r]),
                   common = 3 * u32 * (std::abs(std::log(std::max(p, 1e-300))) + 2 * L) +
                            may_.exp_rounding;
      with += p == 0 ? 0 : p * (e_(r, j) + slope_error_(r, j) + common);
      without += p * (s_error_(r, j) + common);
      least += p;
      sure = sure && p_error_(r, j) == 0;
      unrounded = unrounded && std::abs(out_.weight_rounding(r, j)) <= 0x1p-40 * p;
      ones += p > 0;
    }
    if (kind_[r] != RowKind::finite) return;
    ++(sure && ones == 1 ? totals_.rows.one_hot
       : unrounded       ? totals_.rows.powers
                         : totals_.rows.general);
    const double floor = without + (may_.probability_rounding + may_.gradient_rounding +
                                    may_.input_rounding + unit_roundoff(may_.storage)) *
                                       least;
    if (floor > 0) totals_.amplification.push_back((with + floor - without) / floor);
  }

  /// Where a NaN goes from an attended pair. True if the pair has no numbers of its own.
  bool spread_nan(int r, int j) {
    const bool nan_p = kind_[r] == RowKind::not_finite;
    const bool nan_ds = nan_p || out_.d_o_nan[r] || std::isnan(d_lse(r));
    if (out_.k_nan[j]) out_.any_dq[r] = true;
    if (out_.q_nan[r]) out_.any_dk[j] = true;
    if (!nan_ds) return false;
    out_.nan_dq[r] = out_.nan_dk[j] = true;
    // A dropped pair adds 0 to dV; a kernel may make that 0 * NaN.
    if (nan_p) (factors_(r, j) == 0 ? out_.any_dv : out_.nan_dv)[j] = true;
    if (!nan_p) make_weight(r, j);
    for (Eigen::Index d = 0; d < out_.d_o.cols(); ++d)
      if (!std::isfinite(in_.d_o(batch_, head_of(r), r % rows_, d)))
        out_.nan_dv_channel(j, d) = true;
    each_captured(r, j, [this](const CapturedSlope& read) { totals_.captured.spoil(read, true); });
    return true;
  }

  void make_weight(int r, int j) {
    const double w = factors_(r, j), x = w * p_(r, j);
    const double error = w * p_error_(r, j) + (dropout_exact_ ? 0 : 2 * u32 * x);
    if (error > 0) out_.exact_weights[j] = false;
    if (w == 0) return;
    if (!std::isfinite(error)) {
      out_.any_dv[j] = true;
      return;
    }
    out_.weight_error(r, j) = error;
    out_.weight_rounding(r, j) =
        operand_error(may_, may_.probability_rounding + may_.input_rounding, x, error);
  }

  /// Nothing is known of dS of this pair.
  void give_up(int r, int j) {
    out_.any_dq[r] = out_.any_dk[j] = true;
    each_captured(r, j, [this](const CapturedSlope& read) { totals_.captured.spoil(read, false); });
  }

  void make_ds(int r, int j) {
    const double p = p_(r, j), p_error = p_error_(r, j), f = slope_(r, j),
                 f_error = slope_error_(r, j), w = factors_(r, j);
    if (p == 0 && p_error == 0) return;  // dT is 0 in a kernel, and so is dS beside any slope
    if (!std::isfinite(f)) {
      if (totals_.finding.empty())
        totals_.finding =
            "derivative " + std::to_string(f) + " of " +
            describe_pair(s_(r, j), std::log(p) + lse_[r], batch_, head_of(r), r % rows_, j);
      return give_up(r, j);
    }
    const double incoming = d_lse(r), dp = w * dp_(r, j), x = dp - delta_[r] + incoming;
    const double by_delta = out_.delta_error[r] + std::abs(out_.delta_shift[r]);
    const bool exact_x =
        dp_error_(r, j) == 0 && out_.delta_error[r] == 0 &&
        w * dp_size_(r, j) + delta_size_[r] + std::abs(incoming) <= exact_x_below_[r];
    const double roundings = context_.rigorous() ? 4 : 2;
    // Where P is not exact, neither is x here: O has the rounding of fp64.
    const double noise = x == 0 || p_error_(r, j) == 0
                             ? 0
                             : 0x1p-50 * (w * dp_size_(r, j) + delta_size_[r] + std::abs(incoming));
    const double x_error =
        exact_x ? noise
                : w * dp_error_(r, j) + (dropout_exact_ ? 0 : 2 * u32 * std::abs(dp)) +
                      roundings * u32 * (std::abs(dp) + std::abs(delta_[r] - incoming));
    const double dt = p * x;
    const double dt_error = p_error * (std::abs(x) + x_error + by_delta) + p * x_error +
                            (exact_x && p_error == 0 ? 0 : u32 * std::abs(dt));
    const double ds = dt * f;
    const double by_score = dt_error * std::abs(f),
                 by_slope = (std::abs(dt) + dt_error + p * by_delta) * f_error;
    const bool exact = dt_error == 0 && f_error == 0 && (dt == 0 || is_power_of_two(f));
    const double error = by_score + by_slope +
                         (exact ? 0 : u32 * std::abs(ds) + smallest_normal * (1 + std::abs(f)));
    const double through_delta = p * std::abs(f) * by_delta;
    const double largest = may_.storage == DType::f16 ? 65504 : 0x1.fep127;
    if (!(std::abs(ds) + error + through_delta < largest)) return give_up(r, j);

    out_.ds(r, j) = ds;
    out_.ds_error(r, j) = error;
    out_.ds_by_delta(r, j) = p * f;
    out_.ds_size(r, j) =
        p * std::abs(f) * (w * dp_size_(r, j) + delta_size_[r] + std::abs(incoming));
    out_.ds_rounding(r, j) = operand_error(may_, may_.gradient_rounding + may_.input_rounding, ds,
                                           error + through_delta);
    out_.score_share += by_score;
    out_.derivative_share += by_slope;
    each_captured(r, j, [&](const CapturedSlope& read) {
      const double g = read.slope.v, g_error = read.slope.e, size = std::abs(dt * g);
      if (!std::isfinite(g) || !std::isfinite(g_error)) return totals_.captured.spoil(read, false);
      const bool none = size == 0 && dt_error == 0 && g_error == 0;
      totals_.captured.add(
          read, {dt * g,
                 dt_error * std::abs(g) + (std::abs(dt) + dt_error + p * by_delta) * g_error +
                     p * std::abs(g) * out_.delta_error[r] +
                     (none ? 0 : u32 * size + smallest_normal * (1 + std::abs(g))),
                 -p * g * out_.delta_shift[r]});
    });
  }

  template <class F>
  void each_captured(int r, int j, F f) const {
    if (!totals_.captured.empty())
      context_.scorer.each_captured(score_row(r), j, Rounded(s_(r, j), s_error_(r, j)), f);
  }

  const BackwardContext& context_;
  const PassInputs& in_;
  const Numerics& may_;
  const Sequence& sequence_;
  BackwardTotals& totals_;
  int group_, rows_, keys_, batch_, hkv_;
  bool dropout_exact_;  // the factor of a kept pair is a power of two
  GradientPairs out_;
  Matrix k_, v_, o_;  // K as it is; V without rows that are not finite; O as stored
  std::vector<bool> v_nan_;
  // [R, J]
  Matrix s_, s_error_, dp_, dp_error_, dp_size_, factors_, e_, p_, p_error_, slope_, slope_error_;
  Eigen::Array<bool, Eigen::Dynamic, Eigen::Dynamic> attended_;
  // [R]
  std::vector<RowKind> kind_;
  std::vector<double> lse_, delta_, delta_size_, exact_x_below_;
  std::vector<BoundedScore> scores_;
  std::vector<Rounded> slopes_;
};

}  // namespace

GradientPairs gradient_pairs(const BackwardContext& context, const Sequence& sequence, int hkv,
                             BackwardTotals& totals) {
  return PairPass(context, sequence, hkv, totals).run();
}

}  // namespace attn::fuzz
