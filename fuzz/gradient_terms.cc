/// The second half of the pairs of the backward pass, in the notation of gradient_pairs.h: from
/// weights and delta to dS, and what is summed over the case.
#include <algorithm>
#include <cmath>
#include <limits>

#include "fuzz/pair_pass.h"

namespace attn::fuzz {
namespace {

constexpr double inf = unbounded;

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

}  // namespace

void PairPass::add_sink(int r) {
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

void PairPass::differentiate_row(int r) {
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

bool PairPass::spread_nan(int r, int j) {
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
    if (!std::isfinite(in_.d_o(batch_, head_of(r), r % rows_, d))) out_.nan_dv_channel(j, d) = true;
  each_captured(r, j, [this](const CapturedSlope& read) { totals_.captured.spoil(read, true); });
  return true;
}

void PairPass::make_weight(int r, int j) {
  const double w = factors_(r, j), x = w * p_(r, j);
  const double error = w * p_error_(r, j) + (dropout_exact_ ? 0 : 2 * u32 * x);
  if (error > 0) out_.exact_weights[j] = false;
  if (w == 0) return;
  if (!(x + error < std::numeric_limits<float>::max())) {  // it may overflow in fp32
    out_.any_dv[j] = true;
    return;
  }
  out_.weight_error(r, j) = error;
  out_.weight_rounding(r, j) =
      operand_error(may_, may_.probability_rounding + may_.input_rounding, x, error);
}

void PairPass::give_up(int r, int j) {
  out_.any_dq[r] = out_.any_dk[j] = true;
  each_captured(r, j, [this](const CapturedSlope& read) { totals_.captured.spoil(read, false); });
}

void PairPass::make_ds(int r, int j) {
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
  const double error =
      by_score + by_slope + (exact ? 0 : u32 * std::abs(ds) + smallest_normal * (1 + std::abs(f)));
  const double through_delta = p * std::abs(f) * by_delta;
  const double largest = may_.storage == DType::f16 ? 65504 : 0x1.fep127;
  if (!(std::abs(ds) + error + through_delta < largest)) return give_up(r, j);

  out_.ds(r, j) = ds;
  out_.ds_error(r, j) = error;
  out_.ds_by_delta(r, j) = p * f;
  out_.ds_size(r, j) = p * std::abs(f) * (w * dp_size_(r, j) + delta_size_[r] + std::abs(incoming));
  out_.ds_rounding(r, j) =
      operand_error(may_, may_.gradient_rounding + may_.input_rounding, ds, error + through_delta);
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

}  // namespace attn::fuzz
