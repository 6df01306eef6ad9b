#include "reference/forward.h"

#include <algorithm>
#include <cmath>
#include <limits>

// The page to start on: attention as forward.h states it, one sequence after another and in it one
// block of query rows after another.
// A block costs 2 * rows * Skv * (D + Dv) flops in its two products.
namespace attn::reference {
namespace {

/// The largest score of a row: -inf if it has no key, NaN if one of its scores is.
double largest(const Eigen::Ref<const Eigen::RowVectorXd>& t) {
  return t.size() == 0 ? masked : t.maxCoeff<Eigen::PropagateNaN>();
}

/// A NaN in V[j,:] makes every attended pair of key j a NaN, so that it reaches the LSE as well.
void spread_nan_values(const Eigen::Map<const Matrix>& v, Matrix& t) {
  for (int j = 0; j < v.rows(); ++j)
    if (v.row(j).hasNaN())
      for (int i = 0; i < t.rows(); ++i)
        if (t(i, j) != masked) t(i, j) = std::numeric_limits<double>::quiet_NaN();
}

void forward_head(const Batch& batch, const Sequence& sequence, int h, const ScoreMod& mod,
                  const Mask& mask, ForwardResult& out) {
  const auto& [b, sizes, queries, keys] = sequence;
  const auto q = head(batch.in.q, queries, h);             // [Sq, D]
  const auto k = head(batch.in.k, keys, h / batch.group);  // [Skv, D]
  const auto v = head(batch.in.v, keys, h / batch.group);  // [Skv, Dv]
  auto o = head(out.o, queries, h);                        // [Sq, Dv]
  auto lse = head(out.lse, queries, h);                    // [Sq]
  auto row_max = head(out.row_max, queries, h);            // [Sq]
  const Sink sink = batch.sink[h];
  const PairFactor values(v);

  for (int first = 0; first < sizes.sq; first += block_rows) {
    const int rows = std::min(block_rows, sizes.sq - first);
    const RowBlock at{b, h, first, sizes};

    // s[i,j] = scale * dot(Q[b,h,i,:], K[b,h/G,j,:])                            [rows, Skv]
    Matrix t = row_product(q.middleRows(first, rows), k.transpose());
    t *= batch.scale;

    // t[i,j] = score_mod(s[i,j], b, h, i, j)
    mod.apply(at, t);

    // t[i,j] = mask_mod(b, h, i, j) ? t[i,j] : -inf
    mask.apply(at, t);
    spread_nan_values(v, t);

    // LSE[i] = log( sum_j exp(t[i,j]) + exp(sink[h]) )                          [rows]
    // P[i,j] = exp(t[i,j] - LSE[i])                                             [rows, Skv]
    // The row's largest logit m is taken out first, so that no exponential overflows. A row with no
    // key has P = 0 and LSE = sink[h], or -inf + log 0 = -inf where there is no sink.
    Matrix p = Matrix::Zero(rows, sizes.skv);
    for (int i = 0; i < rows; ++i) {
      row_max(first + i) = largest(t.row(i));
      const double m = std::max(row_max(first + i), sink.logit);
      double sum = sink.weight(m);
      for (int j = 0; j < sizes.skv; ++j)
        if (t(i, j) != masked) sum += p(i, j) = std::exp(t(i, j) - m);
      lse(first + i) = m + std::log(sum);
      for (int j = 0; j < sizes.skv; ++j)
        if (t(i, j) != masked) p(i, j) /= sum;
    }

    // P'[i,j] = P[i,j] / (1 - p) where the pair is kept, 0 where it is dropped
    batch.dropout.apply(at, p);

    // O[i,:] = sum_j P'[i,j] V[b,h/G,j,:]                                       [rows, Dv]
    o.middleRows(first, rows) = values.sum(p, t);
  }
}

}  // namespace

ForwardResult forward(const Batch& batch, const ScoreMod& mod, const Mask& mask) {
  const auto [b, hq, sq, d] = batch.in.q.extents();
  ForwardResult out{Tensor4({b, hq, sq, batch.in.v.extents()[3]}), Tensor3({b, hq, sq}),
                    Tensor3({b, hq, sq})};
  for (const Sequence& sequence : batch.sequences)
    for (int h = 0; h < hq; ++h) forward_head(batch, sequence, h, mod, mask, out);
  return out;
}

}  // namespace attn::reference
