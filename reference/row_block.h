#pragma once

#include <Eigen/Core>
#include <limits>
#include <type_traits>
#include <vector>

#include "mods/lang/call.h"
#include "mods/lang/environments.h"
#include "mods/lang/tensor.h"
#include "reference/sequences.h"

/// What the passes of the reference share: fp64 matrices, and mods and masks behind virtual calls
/// that work on a block of rows of the score matrix, so that each pass is compiled once.
namespace attn::reference {

/// A block of scores, row by row.
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
/// A number a row.
using Vector = Eigen::VectorXd;
/// Tensors [B, H, S, D] in fp64,
using Tensor4 = Tensor<double, 4>;
/// and [B, H, S].
using Tensor3 = Tensor<double, 3>;

/// Rows of scores that are worked on together.
inline constexpr int block_rows = 64;

/// A masked pair is one whose modified score is -inf.
inline constexpr double masked = -std::numeric_limits<double>::infinity();

/// The exact values of a strided tensor.
template <class T, int Rank>
Tensor<double, Rank> to_fp64(TensorView<T, Rank> view) {
  using Element = std::remove_const_t<T>;
  Tensor<double, Rank> exact(view.extents);
  auto out = exact.values().begin();
  const auto copy = [&](const auto& self, const T* from, int axis) -> void {
    if (axis == Rank) {
      *out++ = stored_score<double, Element>(*from);
      return;
    }
    for (std::int64_t i = 0; i < view.extents[axis]; ++i)
      self(self, from + i * view.strides[axis], axis + 1);
  };
  if (view.size() > 0) copy(copy, view.data, 0);
  return exact;
}

/// Rows of one head as a matrix: X[b,h,rows,:] of X [B, H, S, D].
inline Eigen::Map<const Matrix> head(const Tensor4& x, RowRange rows, int h) {
  return {x.view().data + x.view().offset(rows.batch, h, rows.first, 0), rows.count,
          x.extents()[3]};
}
/// The rows of one head as a matrix that shares the tensor's memory.
inline Eigen::Map<Matrix> head(Tensor4& x, RowRange rows, int h) {
  return {x.view().data + x.view().offset(rows.batch, h, rows.first, 0), rows.count,
          x.extents()[3]};
}
/// Per-row numbers of one head: x[b,h,rows] of x [B, H, S].
inline Eigen::Map<const Vector> head(const Tensor3& x, RowRange rows, int h) {
  return {x.view().data + x.view().offset(rows.batch, h, rows.first), rows.count};
}
/// The rows of one head as a vector that shares the tensor's memory.
inline Eigen::Map<Vector> head(Tensor3& x, RowRange rows, int h) {
  return {x.view().data + x.view().offset(rows.batch, h, rows.first), rows.count};
}
/// All rows.
inline auto head(const Tensor4& x, int b, int h) {
  return head(x, RowRange{b, 0, static_cast<int>(x.extents()[2])}, h);
}

/// w * x, in a product of at least block_rows rows: Eigen has other loops for few rows, which round
/// otherwise, and the bits of a row must not depend on how many rows come with it.
template <class Weights, class Factor>
Matrix row_product(const Weights& w, const Factor& x) {
  const auto rows = w.rows();
  if (rows >= block_rows) return w * x;
  Matrix padded = Matrix::Zero(block_rows, w.cols());
  padded.topRows(rows) = w;
  const Matrix product = padded * x;
  return product.topRows(rows);
}

/// Where a block of scores [rows, Skv] lies: query head h of sequence b, from row `first_row` on.
struct RowBlock {
  int b, h, first_row;  ///< first_row from the sequence's first
  Sizes sizes;          ///< of the sequence
};

/// A score mod on a block of rows.
class ScoreMod {
 public:
  virtual ~ScoreMod() = default;
  /// s[i,j] becomes score_mod(s[i,j], b, h, q, j), q = i + q_offset.
  virtual void apply(RowBlock at, Matrix& s) const = 0;
};

/// A mask on a block of rows.
class Mask {
 public:
  virtual ~Mask() = default;
  /// t[i,j] becomes mask_mod(b, h, q, j) ? t[i,j] : -inf, q = i + q_offset.
  virtual void apply(RowBlock at, Matrix& t) const = 0;
};

/// Calls f(i, j, b, h, q, kv) for every pair of the block, the last four being indices of `env`.
template <class Env, class F>
void for_each_pair(RowBlock at, const Matrix& s, Env& env, F f) {
  const Index<Env> b{at.b, &env}, h{at.h, &env};
  for (int i = 0; i < s.rows(); ++i)
    for (int j = 0; j < s.cols(); ++j)
      f(i, j, b, h, Index<Env>{at.sizes.q_offset + at.first_row + i, &env}, Index<Env>{j, &env});
}

/// A score mod functor run in fp64. The functor outlives this object.
template <class F, class Base = ScoreMod>
class ExactMod : public Base {
 public:
  explicit ExactMod(const F& functor) : functor_(functor) {}
  void apply(RowBlock at, Matrix& s) const override {
    ExactEnv env{at.sizes};
    for_each_pair(at, s, env, [&](int i, int j, auto b, auto h, auto q, auto kv) {
      s(i, j) = call_mod(functor_, s(i, j), b, h, q, kv);
    });
  }

 protected:
  const F& functor_;  ///< the caller's
};

/// A mask functor. The functor outlives this object.
template <class F>
class ExactMask final : public Mask {
 public:
  explicit ExactMask(const F& functor) : functor_(functor) {}
  void apply(RowBlock at, Matrix& t) const override {
    ExactEnv env{at.sizes};
    for_each_pair(at, t, env, [&](int i, int j, auto b, auto h, auto q, auto kv) {
      if (!call_mask(functor_, b, h, q, kv)) t(i, j) = masked;
    });
  }

 private:
  const F& functor_;
};

/// The right-hand factor X [J, D] of sums over attended pairs. Its rows that hold NaN or infinity
/// stand apart: in a plain matrix product a masked pair would still add 0 * NaN.
class PairFactor {
 public:
  explicit PairFactor(const Eigen::Ref<const Matrix>& x) : finite_(x) {
    for (int j = 0; j < x.rows(); ++j)
      if (!x.row(j).allFinite()) {
        apart_.push_back({j, x.row(j)});
        finite_.row(j).setZero();
      }
  }
  /// y[i,:] = sum of w[i,j] X[j,:] over the attended j. w [I, J] is 0 where t [I, J] is -inf.
  template <class Weights, class Scores>
  Matrix sum(const Weights& w, const Scores& t) const {
    Matrix y = row_product(w, finite_);
    for (const Row& x : apart_)
      for (int i = 0; i < y.rows(); ++i)
        if (t(i, x.j) != masked) y.row(i) += w(i, x.j) * x.values;
    return y;
  }

 private:
  struct Row {
    int j;
    Eigen::RowVectorXd values;
  };
  Matrix finite_;
  std::vector<Row> apart_;
};

}  // namespace attn::reference
