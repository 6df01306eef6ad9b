#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "reference/backward.h"
#include "reference/forward.h"

namespace attn::reference {

/// Attention of sequences that stand one after another in one axis (varlen): forward.h for each
/// sequence alone. Sequence b has the queries cu_q[b] to cu_q[b + 1] - 1 and the keys cu_kv[b] to
/// cu_kv[b + 1] - 1; either may be none. Mods, masks and dropout see b for the batch, positions
/// that begin at 0 in each sequence and its own lengths; `q_start` and `kv_start` of the sizes say
/// where it begins.
///
/// @param q [1, Hq, total_q, D]; k [1, Hkv, total_kv, D]; v [1, Hkv, total_kv, Dv], any strides
/// @param cu_q, cu_kv [N + 1], from 0 to total_q and total_kv, never decreasing
/// @return O [1, Hq, total_q, Dv], LSE and row_max [1, Hq, total_q]
/// @throws std::invalid_argument as forward does, and for cumulative lengths that do not fit
template <class T, class Mod, class MaskMod>
ForwardResult forward_packed(TensorView<T, 4> q, std::type_identity_t<TensorView<const T, 4>> k,
                             std::type_identity_t<TensorView<const T, 4>> v,
                             std::span<const std::int32_t> cu_q,
                             std::span<const std::int32_t> cu_kv, const Mod& mod,
                             const MaskMod& mask, const Options& options = {}) {
  const Problem problem =
      make_problem(describe("q", q), describe("k", k), describe("v", v), options);
  auto sequences = packed_sequences(problem, cu_q, cu_kv);
  check_functors(mod, mask, sequences);
  const Batch batch(problem, {to_fp64(q), to_fp64(k), to_fp64(v)}, std::move(sequences), options);
  return forward(batch, ExactMod<Mod>(mod), ExactMask<MaskMod>(mask));
}

/// backward.h for each of the packed sequences of forward_packed. The gradients of captured tensors
/// and of the sink are sums over the sequences.
///
/// @param d_o [1, Hq, total_q, Dv], double, float, half or bfloat16
/// @param d_lse [1, Hq, total_q], double or float; the empty view stands for zeros
/// @throws std::invalid_argument as backward and forward_packed do
template <class T, class U, class Mod, class MaskMod, class W = const double>
BackwardResult backward_packed(TensorView<T, 4> q, std::type_identity_t<TensorView<const T, 4>> k,
                               std::type_identity_t<TensorView<const T, 4>> v,
                               std::span<const std::int32_t> cu_q,
                               std::span<const std::int32_t> cu_kv, TensorView<U, 4> d_o,
                               const Mod& mod, const MaskMod& mask, const Options& options = {},
                               TensorView<W, 3> d_lse = {}) {
  const Problem problem =
      make_problem(describe("q", q), describe("k", k), describe("v", v), options);
  const OutputGradients grad(problem, d_o, d_lse);
  auto sequences = packed_sequences(problem, cu_q, cu_kv);
  check_functors(mod, mask, sequences);
  const Batch batch(problem, {to_fp64(q), to_fp64(k), to_fp64(v)}, std::move(sequences), options);
  return backward(batch, grad.d_o, grad.d_lse, DualMod<Mod>(mod), ExactMask<MaskMod>(mask));
}

}  // namespace attn::reference
