#include "reference/backward.h"

#include <algorithm>
#include <cmath>

// The backward pass as backward.h states it: scores and probabilities are formed again, one block
// of query rows after another. A block costs 2 * rows * Skv * (3 D + 2 Dv) flops in its products.
namespace attn::reference {
namespace {

struct Gradients {
  const Tensor4& d_o;
  const Tensor3& d_lse;
  BackwardResult& out;
  CapturedSums& captured;
};

void backward_head(const Batch& batch, const Sequence& sequence, int h, const ForwardResult& fwd,
                   const DifferentiableMod& mod, const Mask& mask, Gradients& grad) {
  const auto& [b, sizes, queries, keys] = sequence;
  const int h_kv = h / batch.group;
  const auto q = head(batch.in.q, queries, h), o = head(fwd.o, queries, h),
             d_o = head(grad.d_o, queries, h);
  const auto k = head(batch.in.k, keys, h_kv), v = head(batch.in.v, keys, h_kv);
  const auto lse = head(fwd.lse, queries, h), d_lse = head(grad.d_lse, queries, h);
  auto dq = head(grad.out.dq, queries, h), dk = head(grad.out.dk, keys, h_kv),
       dv = head(grad.out.dv, keys, h_kv);
  const Sink sink = batch.sink[h];
  const PairFactor key_rows(k);

  for (int first = 0; first < sizes.sq; first += block_rows) {
    const int rows = std::min(block_rows, sizes.sq - first);
    const RowBlock at{b, h, first, sizes};
    const auto q_rows = q.middleRows(first, rows), d_o_rows = d_o.middleRows(first, rows);

    // s[i,j] = scale * dot(Q[i,:], K[j,:])        t[i,j] = mask ? score_mod(s[i,j]) : -inf
    Matrix s = row_product(q_rows, k.transpose());  // [rows, Skv]
    s *= batch.scale;
    Matrix t = s;
    mod.apply(at, t);
    mask.apply(at, t);

    // delta[i] = dot(dO[i,:], O[i,:])             dP[i,j] = dot(dO[i,:], V[j,:]), through dropout
    const Vector delta = d_o_rows.cwiseProduct(o.middleRows(first, rows)).rowwise().sum();
    Matrix dp = d_o_rows * v.transpose();
    batch.dropout.apply(at, dp);

    // P[i,j] = exp(t[i,j] - LSE[i])               dT[i,j] = P[i,j] (dP[i,j] - delta[i] + dLSE[i])
    // dS[i,j] = dT[i,j] * d score_mod / d score   all 0 at a masked pair, whatever the factors are
    Matrix p = Matrix::Zero(rows, sizes.skv), dt = p, ds = p, slope = p;
    mod.differentiate(at, s, t, slope);
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < sizes.skv; ++j)
        if (t(i, j) != masked) {
          p(i, j) = std::exp(t(i, j) - lse(first + i));
          dt(i, j) = p(i, j) * (dp(i, j) - delta(i) + d_lse(first + i));
          ds(i, j) = dt(i, j) * slope(i, j);
        }

    // dQ[i,:] = scale * sum_j dS[i,j] K[j,:]      dK[j,:] = scale * sum_i dS[i,j] Q[i,:]
    // dV[j,:] = sum_i P'[i,j] dO[i,:]             dC[a] = sum dT[i,j] * d score_mod / d C[a]
    dq.middleRows(first, rows) = batch.scale * key_rows.sum(ds, t);
    dk += batch.scale * PairFactor(q_rows).sum(ds.transpose(), t.transpose());
    batch.dropout.apply(at, p);  // P'
    dv += PairFactor(d_o_rows).sum(p.transpose(), t.transpose());
    mod.add_captured(at, s, t, dt, grad.captured);

    // dSink[h] = sum_i exp(sink[h] - LSE[i]) (dLSE[i] - delta[i])
    for (int i = 0; i < rows && sink.logit != masked; ++i)
      grad.out.d_sink[h] += sink.weight(lse(first + i)) * (d_lse(first + i) - delta(i));
  }
}

}  // namespace

BackwardResult backward(const Batch& batch, const Tensor4& d_o, const Tensor3& d_lse,
                        const DifferentiableMod& mod, const Mask& mask) {
  const Inputs& in = batch.in;
  const ForwardResult fwd = forward(batch, mod, mask);
  const int hq = static_cast<int>(batch.sink.size());
  BackwardResult out{Tensor4(in.q.extents()),
                     Tensor4(in.k.extents()),
                     Tensor4(in.v.extents()),
                     {},
                     std::vector<double>(hq)};
  CapturedSums captured(mod.captured(largest_sizes(batch.sequences)));
  Gradients grad{d_o, d_lse, out, captured};
  for (const Sequence& sequence : batch.sequences)
    for (int h = 0; h < hq; ++h) backward_head(batch, sequence, h, fwd, mod, mask, grad);
  out.d_captured = captured.gradients();
  return out;
}

}  // namespace attn::reference
