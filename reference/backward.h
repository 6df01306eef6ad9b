#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "mods/lang/captured_tensors.h"
#include "reference/forward.h"

namespace attn::reference {

/// The gradient of one captured tensor, row-major over the captured extents.
struct CapturedGradient {
  CapturedTensor tensor;       ///< which one
  std::vector<double> values;  ///< d loss / d entry
};

/// What the backward pass gives.
struct BackwardResult {
  Tensor4 dq;                                ///< [B, Hq, Sq, D]
  Tensor4 dk;                                ///< [B, Hkv, Skv, D]
  Tensor4 dv;                                ///< [B, Hkv, Skv, Dv]
  std::vector<CapturedGradient> d_captured;  ///< floating tensors, in order of first read
  std::vector<double> d_sink;                ///< [Hq]; zeros where there is no sink
};

/// Sums for the gradients of captured tensors, one for each address that a tensor spans.
class CapturedSums {
 public:
  /// @throws std::invalid_argument if entries of one tensor share memory.
  explicit CapturedSums(std::vector<CapturedTensor> tensors);
  bool empty() const { return sums_.empty(); }  ///< no floating tensor is read
  /// Adds to the entry that the seeded read took.
  void add(const DualEnv& env, double x);
  std::vector<CapturedGradient> gradients() const;  ///< of all tensors, as they were given

 private:
  struct Sums {
    CapturedTensor tensor;
    std::int64_t lowest;  ///< the offset of values[0] in the tensor
    std::vector<double> values;
  };
  std::vector<Sums> sums_;
};

/// A score mod with derivatives, on a block of rows.
class DifferentiableMod : public ScoreMod {
 public:
  /// slope[i,j] = d score_mod / d score at s[i,j], where pair i, j is attended (t[i,j] != -inf).
  virtual void differentiate(RowBlock at, const Matrix& s, const Matrix& t,
                             Matrix& slope) const = 0;
  /// Adds dt[i,j] * d score_mod / d C[a] for every attended pair and every entry a that it reads.
  virtual void add_captured(RowBlock at, const Matrix& s, const Matrix& t, const Matrix& dt,
                            CapturedSums& sums) const = 0;
  /// The floating tensors that the mod reads, in order of first read. The sizes are at least 1, so
  /// that the mod may divide by them.
  virtual std::vector<CapturedTensor> captured(const Sizes& sizes) const = 0;
};

/// A functor's derivative is never written by hand: its own code runs on dual numbers, once seeded
/// on the score and once on each captured entry that it reads.
template <class F>
class DualMod final : public ExactMod<F, DifferentiableMod> {
 public:
  using ExactMod<F, DifferentiableMod>::ExactMod;

  void differentiate(RowBlock at, const Matrix& s, const Matrix& t, Matrix& slope) const override {
    DualEnv env{at.sizes};
    for_each_pair(at, s, env, [&](int i, int j, auto b, auto h, auto q, auto kv) {
      if (t(i, j) != masked)
        slope(i, j) = Score(call_mod(this->functor_, Score(s(i, j), 1.0), b, h, q, kv)).d;
    });
  }
  void add_captured(RowBlock at, const Matrix& s, const Matrix& t, const Matrix& dt,
                    CapturedSums& sums) const override {
    if (sums.empty()) return;
    DualEnv env{at.sizes};
    for_each_pair(at, s, env, [&](int i, int j, auto b, auto h, auto q, auto kv) {
      if (t(i, j) == masked) return;
      int reads = 1;
      for (env.seeded = 0; env.seeded < reads; ++env.seeded) {
        env.reads = 0;
        const Score y = call_mod(this->functor_, Score(s(i, j)), b, h, q, kv);
        reads = env.reads;
        if (reads > 0) sums.add(env, dt(i, j) * y.d);
      }
    });
  }
  std::vector<CapturedTensor> captured(const Sizes& sizes) const override {
    return captured_of_mod(this->functor_, sizes);
  }

 private:
  using Score = DualEnv::Score;
};

/// The backward pass on checked inputs; d_o [B, Hq, Sq, Dv], d_lse [B, Hq, Sq].
BackwardResult backward(const Batch& batch, const Tensor4& d_o, const Tensor3& d_lse,
                        const DifferentiableMod& mod, const Mask& mask);

/// The incoming gradients of a problem, checked and in fp64.
struct OutputGradients {
  template <class U, class W>
  OutputGradients(const Problem& problem, TensorView<U, 4> o, TensorView<W, 3> lse) {
    check_tensor(describe("d_o", o), problem.o_extents());
    const bool has_lse = lse.data != nullptr || lse.size() != 0;
    if (has_lse) check_tensor(describe("d_lse", lse), problem.lse_extents());
    d_o = to_fp64(o);
    d_lse = has_lse ? to_fp64(lse) : Tensor3(problem.lse_extents());
  }
  Tensor4 d_o;    ///< [B, Hq, Sq, Dv]
  Tensor3 d_lse;  ///< [B, Hq, Sq]; zeros where there is none
};

/// Gradients in fp64 of sum(dO * O) + sum(dLSE * LSE). With delta[i] = dot(dO[i,:], O[i,:]):
///
///     dP[i,j] = dot(dO[i,:], V[j,:]) (dropout)   dT[i,j] = P[i,j] (dP[i,j] - delta[i] + dLSE[i])
///     dS[i,j] = dT[i,j] * d score_mod / d score  dC[a]   = sum dT[i,j] * d score_mod / d C[a]
///     dQ[i,:] = scale * sum_j dS[i,j] K[j,:]     dK[j,:] = scale * sum_i,heads dS[i,j] Q[i,:]
///     dV[j,:] = sum_i,heads P'[i,j] dO[i,:]      dSink[h] = sum_i exp(sink[h] - LSE[i])
///                                                             * (dLSE[i] - delta[i])
///
/// (heads: the query heads that share the key/value head). A masked pair, one that the mod itself
/// sends to -inf included, contributes nothing, whatever Q, K, V and dO hold; so does a row with no
/// key, but to dSink. A sink of -inf has gradient 0. The mod must be a template on Score and Index.
///
/// @param d_o [B, Hq, Sq, Dv], double, float, half or bfloat16
/// @param d_lse [B, Hq, Sq], double or float; the empty view stands for zeros
/// @throws std::invalid_argument as forward does, for shapes of d_o and d_lse, and if entries of a
///         captured tensor share memory (an axis of extent 1 broadcasts; one of stride 0 does not)
template <class T, class U, class Mod, class MaskMod, class W = const double>
BackwardResult backward(TensorView<T, 4> q, std::type_identity_t<TensorView<const T, 4>> k,
                        std::type_identity_t<TensorView<const T, 4>> v, TensorView<U, 4> d_o,
                        const Mod& mod, const MaskMod& mask, const Options& options = {},
                        TensorView<W, 3> d_lse = {}) {
  const Problem problem =
      make_problem(describe("q", q), describe("k", k), describe("v", v), options);
  const OutputGradients grad(problem, d_o, d_lse);
  check_functors(mod, mask, problem);
  const Batch batch(problem, {to_fp64(q), to_fp64(k), to_fp64(v)}, dense_sequences(problem),
                    options);
  return backward(batch, grad.d_o, grad.d_lse, DualMod<Mod>(mod), ExactMask<MaskMod>(mask));
}

}  // namespace attn::reference
