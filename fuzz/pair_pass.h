#pragma once

#include <cstdint>
#include <vector>

#include "fuzz/gradient_pairs.h"

namespace attn::fuzz {

/// How `gradient_pairs` works: first the weights of all rows (fuzz/gradient_pairs.cc), then delta,
/// which takes all of a row, then dS (fuzz/gradient_terms.cc).
class PairPass {
 public:
  /// One sequence and one key/value head, whose query heads are worked on one after another.
  PairPass(const BackwardContext& context, const Sequence& sequence, int hkv,
           BackwardTotals& totals);
  GradientPairs run();  ///< once

 private:
  enum class RowKind : std::uint8_t { empty, finite, not_finite };

  void allocate();
  int head_of(int r) const { return hkv_ * group_ + r / rows_; }
  ScoreRow score_row(int r) const { return {sequence_, head_of(r), r % rows_}; }
  double d_lse(int r) const {
    return in_.d_lse.values().empty() ? 0 : in_.d_lse(batch_, head_of(r), r % rows_);
  }
  double sink(int r) const { return in_.sink.empty() ? -unbounded : in_.sink[head_of(r)]; }

  /// The products and the factors of one head.
  void prepare_head(int g);
  /// p, f and their errors for one row.
  void weigh_row(int r);
  void weigh_pair(int r, int j, double m);
  /// delta, what storing O moves it by, and what summing it may.
  void find_delta();
  /// Of a kernel that makes O again, in fp32: the weights' errors, and those of another sum.
  double own_delta_error(int r) const;
  /// dSink += exp(sink - LSE) (dLSE - delta), empty rows included.
  void add_sink(int r);
  void differentiate_row(int r);
  /// Where a NaN goes from an attended pair. True if the pair has no numbers of its own.
  bool spread_nan(int r, int j);
  void make_weight(int r, int j);
  /// Nothing is known of dS of this pair.
  void give_up(int r, int j);
  void make_ds(int r, int j);

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

}  // namespace attn::fuzz
