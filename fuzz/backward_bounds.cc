/// The second half of the backward oracle: from the pairs of gradient_pairs.h to the gradients.
/// Sums of rounded dS (and, alike, of rounded P in dV) are bounded like the forward pass's:
///
///   dQ^ - dQ = scale [ sum_j e_j k_j                       what each pair has of its own, by size
///                    - (shift + epsilon) sum_j p_j f_j k_j through delta: one number for the row
///                    + sum_j rho_j k_j ]                   dS rounded: 4 standard deviations
///            + accumulation + rounding of the output
///
/// and dK likewise, over the rows of all heads of the group, where the shifts, which are known,
/// are added up with their signs.
#include "fuzz/backward_bounds.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "fuzz/gradient_pairs.h"
#include "reference/forward.h"

namespace attn::fuzz {
namespace {

/// The parts of the bounds of one gradient [rows, channels], each added up by the term it is due
/// to. `magnitude` is the sum of the sizes of the terms of the value, `size` that of the terms of
/// these, which may cancel.
struct Parts {
  Matrix value, magnitude, size, pairs, delta, rounding, accumulation;
};

/// A product x y of operands that are rounded: x by r (signed), a share u_x or less where x is not
/// below the normal numbers; y by a share u_y. `magnitude`: |x||y|.
struct RoundedOperands {
  const Matrix& x;
  const Matrix& r;
  double u_x;
  const Matrix& y;
  double u_y;
  const Matrix& magnitude;
};

class BackwardPass {
 public:
  BackwardPass(const BackwardContext& context)
      : context_(context),
        in_(context.in),
        may_(context.may),
        accumulation_{context.kind, context.may.tensor_core},
        totals_{CapturedBounds(context.scorer.captured(largest_sizes(context.in.sequences))),
                {},
                {},
                0,
                {},
                {}} {
    totals_.sinks.resize(in_.sizes.hq);
    for (auto [to, from] : {std::pair(&out_.dq, &in_.q), {&out_.dk, &in_.k}, {&out_.dv, &in_.v}}) {
      to->value = to->bound = Tensor<double, 4>(from->extents());
      to->term = Tensor<Term, 4>(from->extents());
    }
  }

  BackwardBounds run() {
    for (const Sequence& sequence : in_.sequences)
      for (int hkv = 0; hkv < in_.sizes.hkv; ++hkv)
        bound_group(sequence, hkv, gradient_pairs(context_, sequence, hkv, totals_));
    finish();
    return std::move(out_);
  }

 private:
  void bound_group(const Sequence& sequence, int hkv, const GradientPairs& pairs) {
    const int rows = sequence.queries.count, keys = sequence.keys.count, b = sequence.queries.batch;
    if (rows == 0 || keys == 0) return;
    const int group = in_.sizes.hq / in_.sizes.hkv;
    const auto any = [](const std::vector<bool>& x) {
      return std::find(x.begin(), x.end(), true) != x.end();
    };
    const bool any_k_nan = any(pairs.k_nan), any_q_nan = any(pairs.q_nan),
               any_d_o_nan = any(pairs.d_o_nan);

    const Parts dq = bound_dq(pairs);
    for (int r = 0; r < group * rows; ++r)
      for (int d = 0; d < pairs.k.cols(); ++d)
        put(out_.dq, {b, hkv * group + r / rows, r % rows, d}, dq, r, pairs.row_attends[r],
            pairs.nan_dq[r], pairs.any_dq[r] || any_k_nan, Term::gradients, pairs);
    const Parts dk = bound_dk(pairs), dv = bound_dv(pairs);
    for (int j = 0; j < keys; ++j) {
      for (int d = 0; d < pairs.q.cols(); ++d)
        put(out_.dk, {b, hkv, j, d}, dk, j, pairs.key_attended[j], pairs.nan_dk[j],
            pairs.any_dk[j] || any_q_nan, Term::gradients, pairs);
      for (int d = 0; d < pairs.d_o.cols(); ++d)
        put(out_.dv, {b, hkv, j, d}, dv, j, pairs.key_attended[j],
            pairs.nan_dv[j] || pairs.nan_dv_channel(j, d), pairs.any_dv[j] || any_d_o_nan,
            Term::probabilities, pairs);
    }
  }

  Parts bound_dq(const GradientPairs& x) const {
    Parts dq = products(x.ds, x.k, in_.scale, static_cast<double>(x.k.rows()));
    const double c = std::abs(in_.scale);
    dq.size = c * (x.ds_size * x.k.cwiseAbs());
    dq.pairs = c * (x.ds_error * x.k.cwiseAbs());
    dq.delta = c * (x.ds_by_delta * x.k).cwiseAbs();
    for (int r = 0; r < dq.delta.rows(); ++r)
      dq.delta.row(r) *= std::abs(x.delta_shift[r]) + x.delta_error[r];
    const double u_ds = may_.gradient_rounding + may_.input_rounding;
    const Matrix magnitude = c > 0 ? Matrix(dq.magnitude / c) : dq.magnitude;
    dq.rounding =
        c * rounding({x.ds, x.ds_rounding, u_ds, x.k, operand_rounding(may_, x.k), magnitude});
    return dq;
  }

  Parts bound_dk(const GradientPairs& x) const {
    const Matrix ds = x.ds.transpose(), r = x.ds_rounding.transpose();
    Parts dk = products(ds, x.q, in_.scale, static_cast<double>(x.q.rows()));
    const double c = std::abs(in_.scale);
    dk.size = c * (x.ds_size.transpose() * x.q.cwiseAbs());
    dk.pairs = c * (x.ds_error.transpose() * x.q.cwiseAbs());
    const Matrix by_shift = x.ds_by_delta.transpose() * x.delta_shift.asDiagonal(),
                 by_sum = x.ds_by_delta.cwiseAbs().transpose() * x.delta_error.asDiagonal();
    dk.delta = c * ((by_shift * x.q).cwiseAbs() + by_sum * x.q.cwiseAbs());
    const double u_ds = may_.gradient_rounding + may_.input_rounding;
    const Matrix magnitude = c > 0 ? Matrix(dk.magnitude / c) : dk.magnitude;
    dk.rounding = c * rounding({ds, r, u_ds, x.q, operand_rounding(may_, x.q), magnitude});
    return dk;
  }

  Parts bound_dv(const GradientPairs& x) const {
    const Matrix weight = x.weight.transpose(), r = x.weight_rounding.transpose();
    Parts dv = products(weight, x.d_o, 1, static_cast<double>(x.d_o.rows()));
    dv.size = dv.magnitude;
    dv.pairs = x.weight_error.transpose() * x.d_o.cwiseAbs();
    dv.delta = Matrix::Zero(dv.value.rows(), dv.value.cols());
    const double u_y = operand_rounding(may_, x.d_o);
    const double u_p = may_.probability_rounding + may_.input_rounding;
    dv.rounding = rounding({weight, r, u_p, x.d_o, u_y, dv.magnitude});
    // whole multiples of a quantum with a sum below 2^24 of it are added exactly
    const double exact_below = u_y == 0 ? 0x1p24 * quantum(x.d_o) : 0;
    for (int j = 0; j < weight.rows(); ++j)
      if (x.exact_weights[j] && (dv.magnitude.row(j).array() <= exact_below).all())
        dv.accumulation.row(j).setZero();
    return dv;
  }

  /// scale * x y, a sum of n terms.
  Parts products(const Matrix& x, const Matrix& y, double scale, double n) const {
    Parts parts;
    parts.value = scale * (x * y);
    parts.magnitude = std::abs(scale) * (x.cwiseAbs() * y.cwiseAbs());
    const double scaling = scale == 1 ? 0 : context_.rigorous() ? 8 : 4;
    parts.accumulation = (accumulation_(n) + scaling * u32) * parts.magnitude;
    return parts;
  }

  Matrix rounding(const RoundedOperands& o) const {
    if (context_.rigorous()) {
      const Matrix size = o.r.cwiseAbs() + o.u_y * (o.x + o.r).cwiseAbs();
      return size * o.y.cwiseAbs();
    }
    Matrix variance = (o.r.cwiseAbs2() + o.u_y * o.u_y * o.x.cwiseAbs2()) * o.y.cwiseAbs2();
    std::vector<CellMember> members;
    for (int i = 0; i < o.x.rows(); ++i) {
      members.clear();
      for (int n = 0; n < o.x.cols(); ++n)
        if (o.r(i, n) != 0) {
          const double x = as_operand(may_, rounded_to(may_.storage, o.x(i, n)));
          members.push_back({static_cast<float>(x), n, o.r(i, n)});
        }
      RowVector row = variance.row(i).array();
      add_cells(members, o.y, row);
      variance.row(i) = row.matrix();
    }
    return (deviations * variance.cwiseSqrt()).cwiseMin(worst_rounding(o));
  }

  /// At least sum |r||y|, from the sizes alone: |r| <= u |x| + what the smallest numbers lose.
  Matrix worst_rounding(const RoundedOperands& o) const {
    const Matrix beyond = (o.r.cwiseAbs() - o.u_x * o.x.cwiseAbs()).cwiseMax(0);
    const Eigen::VectorXd most = beyond.rowwise().maxCoeff();
    return (o.u_x + o.u_y + o.u_x * o.u_y) * o.magnitude +
           (1 + o.u_y) * most * o.y.cwiseAbs().colwise().sum();
  }

  /// One element; `live`: an attended pair adds to it.
  void put(BackwardBounds::Bounded& to, const std::array<int, 4>& at, const Parts& parts, int row,
           bool live, bool nan, bool any_value, Term rounded, const GradientPairs& pairs) {
    const auto [b, h, i, d] = at;
    const double value = parts.value(row, d), size = parts.size(row, d);
    const double inner = parts.pairs(row, d) + parts.delta(row, d) + parts.rounding(row, d) +
                         parts.accumulation(row, d);
    any_value = any_value || !std::isfinite(inner);
    // Where terms cancel, what is left of the fp64 value is its own rounding.
    const double noise = 0x1p-44 * size;
    double bound = any_value ? unbounded : stored_bound(may_.storage, value, inner);
    if (bound > 0) bound = std::max(bound, noise);
    to.value(b, h, i, d) = nan ? std::numeric_limits<double>::quiet_NaN() : value;
    to.bound(b, h, i, d) = nan ? 0 : bound;
    const Term own = pairs.derivative_share > pairs.score_share && &to != &out_.dv
                         ? Term::derivative
                         : Term::scores;
    to.term(b, h, i, d) = nan ? Term::none
                          : any_value
                              ? Term::poison
                              : dominating_term({{bound - inner, Term::output},
                                                 {parts.accumulation(row, d), Term::accumulation},
                                                 {parts.rounding(row, d), rounded},
                                                 {parts.delta(row, d), Term::delta},
                                                 {parts.pairs(row, d), own}},
                                                bound);
    if (!live) return;
    ++elements_;
    zeros_ += value == 0;
    powerless_ += inner >= size && size > 0;
  }

  void finish() {
    out_.captured = totals_.captured.result();
    out_.d_sink.name = "sink";
    const Accumulation sum{context_.kind, false};
    for (const SinkSums& s : totals_.sinks) {
      const double inner =
          s.error + std::abs(s.shift) + (s.rows > 1 ? sum(s.rows) * s.magnitude : 0);
      out_.d_sink.value.push_back(s.value);
      out_.d_sink.bound.push_back(std::isnan(s.value)    ? 0
                                  : std::isfinite(inner) ? stored_bound(DType::f32, s.value, inner)
                                                         : unbounded);
    }
    out_.rows = totals_.rows;
    out_.ambiguous_mass = totals_.ambiguous_mass;
    out_.finding = totals_.finding;
    out_.amplification = median_or_one(totals_.amplification);
    if (elements_ == 0) return;
    out_.zero_share = static_cast<double>(zeros_) / static_cast<double>(elements_);
    out_.powerless_share = static_cast<double>(powerless_) / static_cast<double>(elements_);
  }

  const BackwardContext& context_;
  const PassInputs& in_;
  const Numerics& may_;
  Accumulation accumulation_;
  BackwardTotals totals_;
  BackwardBounds out_;
  std::int64_t elements_ = 0, zeros_ = 0, powerless_ = 0;
};

}  // namespace

reference::Batch reference_batch(const PassInputs& in) {
  Problem problem;
  problem.b = in.sizes.b, problem.hq = in.sizes.hq, problem.hkv = in.sizes.hkv;
  problem.sq = in.sizes.sq, problem.skv = in.sizes.skv;
  problem.d = static_cast<int>(in.q.extents()[3]), problem.dv = static_cast<int>(in.v.extents()[3]);
  problem.scale = in.scale;
  Options options;
  if (!in.sink.empty())
    options.sink = TensorView<const float, 1>{
        in.sink.data(), {static_cast<std::int64_t>(in.sink.size())}, {1}};
  options.dropout = in.dropout;
  return reference::Batch(problem, {in.q, in.k, in.v}, in.sequences, options);
}

namespace detail {

StoredForwardResult stored_forward_result(const PassInputs& in, const reference::ScoreMod& mod,
                                          const reference::Mask& mask, DType storage) {
  reference::ForwardResult exact = reference::forward(reference_batch(in), mod, mask);
  for (double& o : exact.o.values()) o = rounded_to(storage, o);
  for (double& lse : exact.lse.values()) lse = rounded_to(DType::f32, lse);
  return {std::move(exact.o), std::move(exact.lse)};
}

BackwardBounds bound_backward(const PassInputs& in, const DifferentiableScorer& scorer,
                              const StoredForwardResult& given, const Numerics& may,
                              BoundKind kind) {
  const BackwardContext context{in, scorer, given, may, kind};
  return BackwardPass(context).run();
}

}  // namespace detail
}  // namespace attn::fuzz
