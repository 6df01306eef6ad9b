#pragma once

#include <string>
#include <vector>

#include "fuzz/captured_bounds.h"
#include "fuzz/score_bounds.h"
#include "mods/lang/tensor.h"
#include "reference/batch.h"

namespace attn::fuzz {

/// What the fuzzer gives to a backward kernel as the result of the forward pass: O and LSE of the
/// reference, rounded to their types. Rows past the length of a sequence are 0.
struct StoredForwardResult {
  Tensor<double, 4> o;    ///< [B, Hq, Sq, Dv], numbers of the storage type
  Tensor<double, 3> lse;  ///< [B, Hq, Sq], numbers of fp32
};

namespace detail {
StoredForwardResult stored_forward_result(const PassInputs& in, const reference::ScoreMod& mod,
                                          const reference::Mask& mask, DType storage);
}  // namespace detail

/// Runs the fp64 reference forward and rounds: O to `storage`, LSE to fp32.
template <class Mod, class Mask>
StoredForwardResult stored_forward_result(const PassInputs& in, const Mod& mod, const Mask& mask,
                                          DType storage) {
  return detail::stored_forward_result(in, reference::ExactMod<Mod>(mod),
                                       reference::ExactMask<Mask>(mask), storage);
}

/// The problem that the inputs pose, for the reference.
reference::Batch reference_batch(const PassInputs& in);

/// What exact arithmetic gives for the gradients, and how far a correct kernel may be from it.
struct BackwardBounds {
  /// One gradient: what exact arithmetic gives, and how far a correct kernel may be from it.
  struct Bounded {
    Tensor<double, 4> value, bound;  ///< [B, H, S, X] of the gradient
    Tensor<Term, 4> term;            ///< the dominating term of the bound
  };
  using BoundedVector = fuzz::BoundedVector;  ///< the gradient of one captured tensor
  Bounded dq, dk, dv;  ///< [B, Hq, Sq, D], [B, Hkv, Skv, D], [B, Hkv, Skv, Dv]
  /// The floating tensors that the mod reads, in order of first read; row-major over their extents.
  std::vector<BoundedVector> captured;
  BoundedVector d_sink;  ///< [Hq]; exact zeros where there is no sink

  using Rows = RowCounts;     ///< how the rows of the case fell out
  Rows rows;                  ///< each query row is counted once
  double ambiguous_mass = 0;  ///< the largest share of a row's weight whose branch may flip
  /// The first attended pair whose modified score is NaN or +inf, or its derivative not finite;
  /// empty if there is none.
  std::string finding;
  /// Median over rows of the error of dS / (the same with an identity mod's score error).
  double amplification = 1;
  double zero_share = 0;       ///< of dQ in rows that attend a key, and of dK, dV of attended keys
  double powerless_share = 0;  ///< of elements whose bound reaches the sizes of all that makes them
};

namespace detail {
BackwardBounds bound_backward(const PassInputs& in, const DifferentiableScorer& scorer,
                              const StoredForwardResult& given, const Numerics& may,
                              BoundKind kind);
}  // namespace detail

/// Bounds the gradients of a kernel that reads `given` as O and LSE. That is their premise: what
/// these two lost by being stored is known to the last bit, and not bounded but counted.
/// The mod must be a template on Score and Index.
template <class Mod, class Mask>
BackwardBounds bound_backward(const PassInputs& in, const Mod& mod, const Mask& mask,
                              const StoredForwardResult& given, const Numerics& may,
                              BoundKind kind = BoundKind::working) {
  return detail::bound_backward(in, DualScorer<Mod, Mask>(mod, mask), given, may, kind);
}
/// The same for what `stored_forward_result` gives.
template <class Mod, class Mask>
BackwardBounds bound_backward(const PassInputs& in, const Mod& mod, const Mask& mask,
                              const Numerics& may, BoundKind kind = BoundKind::working) {
  return bound_backward(in, mod, mask, stored_forward_result(in, mod, mask, may.storage), may,
                        kind);
}

}  // namespace attn::fuzz
