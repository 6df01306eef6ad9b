#pragma once

#include "fuzz/case.h"
#include "fuzz/forward_bounds.h"
#include "mods/lang/tree_functor.h"

namespace attn::fuzz {

/// The inputs of a case: Q, K and V as the exact values of its storage type. Every element is a
/// pure function of the seed, the tensor and its position, except where a fill looks for a key that
/// the mask lets its row attend.
ForwardInputs make_inputs(const Case& c, const TreeMod& mod, const TreeMask& mask);

/// The nearest number of the storage type.
double rounded_to(DType t, double x);

}  // namespace attn::fuzz
