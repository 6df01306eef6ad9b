#pragma once

#include <vector>

#include "fuzz/backward_bounds.h"
#include "fuzz/captured_bounds.h"

namespace attn::fuzz {

/// What a backward pass computes for pairs of a query row and a key, with error bounds: the first
/// half of the backward oracle. The rows are those of all query heads that share one key/value
/// head, one head after another; R = G * (queries of the sequence) rows, J keys.
///
/// Notation of a pair: s the scaled score, t = mod(s), f = d mod / d score, p = exp(t - LSE), w the
/// factor of dropout, dP = dO V^T, X = w dP - delta + dLSE, dT = p X, dS = dT f. A kernel makes all
/// of it again; only O, of delta = dot(dO, O), and LSE are given to it.
struct GradientPairs {
  Matrix q, d_o, k;                         ///< [R, D], [R, Dv], [J, D]; rows not finite are 0
  std::vector<bool> q_nan, d_o_nan, k_nan;  ///< which rows are not

  Matrix weight, weight_error;  ///< w p [R, J], before it is rounded as an operand
  Matrix weight_rounding;       ///< how far that may move it, with the sign of the weight
  Matrix ds, ds_error;          ///< dS, and the error that does not come through delta
  Matrix ds_rounding;           ///< as weight_rounding
  Matrix ds_by_delta;           ///< p f, minus which is d dS / d delta
  Matrix ds_size;               ///< p |f| times the sizes of the terms of X: dS before it cancels
  Eigen::VectorXd delta_shift;  ///< [R] delta of the stored O, minus delta
  Eigen::VectorXd delta_error;  ///< [R] of its computation

  /// Rows [R] and keys [J] whose gradient meets a NaN of an attended pair, or a number that may be
  /// anything.
  std::vector<bool> nan_dq, any_dq, nan_dk, any_dk, nan_dv, any_dv;
  Eigen::Array<bool, Eigen::Dynamic, Eigen::Dynamic> nan_dv_channel;  ///< [J, Dv]
  std::vector<bool> row_attends, key_attended;  ///< [R], [J]: it attends, or is attended by, a pair
  std::vector<bool> exact_weights;  ///< [J] all weights are exactly 0 or powers of two in a kernel
  double score_share = 0, derivative_share = 0;  ///< of ds_error, summed over the pairs
};

/// What is summed over the rows of a query head: dSink.
struct SinkSums {
  /// The sum, the sum of its terms' sizes, of their errors and of their shifts by delta, and how
  /// many.
  double value = 0, magnitude = 0, error = 0, shift = 0, rows = 0;
};

/// What is summed over the whole case beside dQ, dK and dV.
struct BackwardTotals {
  CapturedBounds captured;            ///< the gradients of captured tensors
  std::vector<SinkSums> sinks;        ///< [Hq]
  RowCounts rows;                     ///< how they fell out
  double ambiguous_mass = 0;          ///< the largest share of a row's weight whose branch may flip
  std::string finding;                ///< the first pair that is not finite; empty: none
  std::vector<double> amplification;  ///< one a row
};

/// How and from what the bounds are made.
struct BackwardContext {
  const PassInputs& in;                ///< of the case
  const DifferentiableScorer& scorer;  ///< its mod and mask
  const StoredForwardResult& given;    ///< the O and LSE that the kernel reads
  const Numerics& may;                 ///< what the kernel may round
  BoundKind kind;                      ///< which bound is made

  bool rigorous() const { return kind == BoundKind::rigorous; }  ///< no term may be probabilistic
};

/// The pairs of one sequence and one key/value head; what they add to sums over the case goes to
/// `totals`.
GradientPairs gradient_pairs(const BackwardContext& context, const Sequence& sequence, int hkv,
                             BackwardTotals& totals);

}  // namespace attn::fuzz
