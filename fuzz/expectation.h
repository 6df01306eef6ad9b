#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "fuzz/backward_bounds.h"
#include "fuzz/forward_bounds.h"
#include "mods/lang/tensor.h"

namespace attn::fuzz {

/// What one output of a pass should hold, and how far it may be off.
struct ExpectedOutput {
  std::string name;                    ///< "O", "dK", "d slope"
  std::array<const char*, 4> axes{};   ///< "b", "h", "q", "d": how reports name an index; null: not
                                       ///< at all; "": by its number alone
  DType dtype = DType::f32;            ///< in which the output is stored
  Tensor<double, 4> reference, bound;  ///< [B, H, S, X], extent 1 along an axis that is not there
  Tensor<Term, 4> term;  ///< the dominating term of the bound; empty where it is not told
};

/// What a case proves, whatever the kernel gives.
struct Health {
  double ambiguous_mass = 0;   ///< the largest share of a row's weight whose branch may flip
  std::string finding;         ///< the first attended pair whose modified score is NaN or +inf
  double amplification = 1;    ///< of rounding, by the mod
  double zero_share = 0;       ///< of the outputs
  double powerless_share = 0;  ///< of the elements whose bound allows any value
  RowCounts rows;              ///< how they fell out
};

/// What the outputs of a pass should hold, in the order of `StoredPass::outputs`.
struct Expectation {
  std::vector<ExpectedOutput> outputs;  ///< what each should hold
  Health health;                        ///< what the case proves of itself
};

/// `row_max`: it is wanted too.
Expectation expect(ForwardBounds bounds, DType storage, bool row_max);
/// `captured`: the tensors whose gradients `bounds.captured` holds; `sink`: its gradient is wanted.
Expectation expect(BackwardBounds bounds, DType storage,
                   const std::vector<CapturedTensor>& captured, bool sink);

}  // namespace attn::fuzz
