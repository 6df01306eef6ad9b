#pragma once

#include "reference/batch.h"

namespace attn::reference {

/// What the forward pass gives.
struct ForwardResult {
  Tensor4 o;        ///< O [B, Hq, Sq, Dv]
  Tensor3 lse;      ///< LSE [B, Hq, Sq], natural logarithm
  Tensor3 row_max;  ///< max_j t[i,j] [B, Hq, Sq], the sink left out
};

/// The forward pass on checked inputs.
ForwardResult forward(const Batch& batch, const ScoreMod& mod, const Mask& mask);

/// Attention in fp64, from the exact values of the storage type:
///
///     s[i,j]  = scale * dot(Q[i,:], K[j,:])      t[i,j] = mask ? score_mod(s[i,j]) : -inf
///     LSE[i]  = log( sum_j exp(t[i,j]) [+ exp(sink[h])] )
///     P[i,j]  = exp(t[i,j] - LSE[i])             O[i,:] = sum_j P'[i,j] V[j,:]
///
/// for every query head h and its key/value head h / G; P' is P after dropout. A row with no key
/// has O = 0, row_max = -inf and LSE = -inf, or sink[h] where a sink is given. A masked pair has no
/// effect, whatever K and V hold. A NaN in an attended pair, or a modified score of +inf, makes its
/// row NaN in O and LSE; so does a sink that is NaN or +inf, which leaves O = 0 where a row has no
/// key.
///
/// @param q [B, Hq, Sq, D]; k [B, Hkv, Skv, D]; v [B, Hkv, Skv, Dv], any strides
/// @throws std::invalid_argument as make_problem and check_functors do, and if a captured
///         tensor is read out of range
template <class T, class Mod, class MaskMod>
ForwardResult forward(TensorView<T, 4> q, std::type_identity_t<TensorView<const T, 4>> k,
                      std::type_identity_t<TensorView<const T, 4>> v, const Mod& mod,
                      const MaskMod& mask, const Options& options = {}) {
  const Problem problem =
      make_problem(describe("q", q), describe("k", k), describe("v", v), options);
  check_functors(mod, mask, problem);
  const Batch batch(problem, {to_fp64(q), to_fp64(k), to_fp64(v)}, dense_sequences(problem),
                    options);
  return forward(batch, ExactMod<Mod>(mod), ExactMask<MaskMod>(mask));
}

}  // namespace attn::reference
