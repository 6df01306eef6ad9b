#pragma once

#include <cstdint>
#include <string>

#include "fuzz/score_bounds.h"
#include "mods/lang/tensor.h"

namespace attn::fuzz {

/// What exact arithmetic gives, and how far a correct kernel may be from it. Rows past the length
/// of a sequence are not judged: all their entries are 0.
struct ForwardBounds {
  Tensor<double, 4> o, o_bound;              ///< [B, Hq, Sq, Dv]
  Tensor<Term, 4> o_term;                    ///< the dominating term of o_bound
  Tensor<double, 3> lse, lse_bound;          ///< [B, Hq, Sq]
  Tensor<double, 3> row_max, row_max_bound;  ///< [B, Hq, Sq], the sink left out

  using Rows = RowCounts;     ///< how the rows of the case fell out
  Rows rows;                  ///< each query row is counted once
  double ambiguous_mass = 0;  ///< the largest share of a row's weight whose branch may flip
  /// The first attended pair whose modified score is NaN or +inf; empty if there is none.
  std::string finding;
  /// Median over elements of bound / (the same bound with an identity mod's score error).
  double amplification = 1;
  double zero_share = 0;       ///< of O in rows that attend a key
  double powerless_share = 0;  ///< of O elements whose bound reaches sum p|v|
};

/// Bounds O, LSE and the row maxima of a kernel that rounds no more than `may` says.
ForwardBounds bound_forward(const PassInputs& in, const RowScorer& scorer, const Numerics& may,
                            BoundKind kind = BoundKind::working);

/// The same for functors. The mod must be a template on Score and Index.
template <class Mod, class Mask>
ForwardBounds bound_forward(const PassInputs& in, const Mod& mod, const Mask& mask,
                            const Numerics& may, BoundKind kind = BoundKind::working) {
  return bound_forward(in, FunctorScorer<Mod, Mask>(mod, mask), may, kind);
}

}  // namespace attn::fuzz
