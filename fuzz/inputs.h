#pragma once

#include "fuzz/case.h"
#include "fuzz/pass_inputs.h"
#include "fuzz/rounded_to.h"
#include "mods/lang/tree_functor.h"

namespace attn::fuzz {

/// The inputs of a case: Q, K and V as the exact values of its storage type, dO too and dLSE where
/// its implementation is a backward pass. Every element is a pure function of the seed, the tensor
/// and its position, except where a fill looks for a key that the mask lets its row attend.
/// @throws std::invalid_argument if there is no such implementation or the lengths do not fit.
PassInputs make_inputs(const Case& c, const TreeMod& mod, const TreeMask& mask);

}  // namespace attn::fuzz
