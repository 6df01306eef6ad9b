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

#include "fuzz/pair_pass.h"
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

}  // namespace

PairPass::PairPass(const BackwardContext& context, const Sequence& sequence, int hkv,
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

GradientPairs PairPass::run() {
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

void PairPass::allocate() {
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

void PairPass::prepare_head(int g) {
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

void PairPass::weigh_row(int r) {
  scores_.resize(keys_);
  slopes_.assign(keys_, Rounded());
  for (int j = 0; j < keys_; ++j) scores_[j] = {Rounded(s_(r, j), s_error_(r, j)), true};
  context_.scorer.differentiate(score_row(r), scores_, slopes_);
  double m = -inf;
  bool finite = true;
  int attended = 0;
  for (int j = 0; j < keys_; ++j) {
    const BoundedScore& s = scores_[j];
    if (!s.attended.value && s.attended.sure) continue;
    if (s.value.v == -inf && s.attended.sure && s.value.e == 0) continue;  // the mod masks it
    attended_(r, j) = true;
    ++attended;
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
  totals_.rows.one_key += attended == 1;
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

void PairPass::weigh_pair(int r, int j, double m) {
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

void PairPass::find_delta() {
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

double PairPass::own_delta_error(int r) const {
  double error = 0, size = 0;
  for (int j = 0; j < keys_; ++j) {
    const double dp = factors_(r, j) * std::abs(dp_(r, j));
    error += p_error_(r, j) * (dp + std::abs(delta_[r]));
    size += p_(r, j) * factors_(r, j) * dp_size_(r, j);
  }
  return error + (Accumulation{context_.kind, may_.tensor_core}(keys_) + 8 * u32) * size;
}

GradientPairs gradient_pairs(const BackwardContext& context, const Sequence& sequence, int hkv,
                             BackwardTotals& totals) {
  return PairPass(context, sequence, hkv, totals).run();
}

}  // namespace attn::fuzz
