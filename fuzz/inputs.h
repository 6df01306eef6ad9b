#pragma once

#include "fuzz/case.h"
#include "fuzz/fill_context.h"
#include "fuzz/pass_inputs.h"
#include "fuzz/rounded_to.h"

namespace attn::fuzz {

/// The inputs of a case: Q, K and V as the exact values of its storage type, dO too and dLSE where
/// its implementation is a backward pass. Every element is a pure function of the seed, the tensor
/// and its position, except where a fill looks for a key that the mask lets its row attend.
/// @throws std::invalid_argument if there is no such implementation or the lengths do not fit.
PassInputs make_inputs(const Case& c, const PairQuestions& ask);

/// The same for functors.
template <class Mod, class Mask>
PassInputs make_inputs(const Case& c, const Mod& mod, const Mask& mask) {
  return make_inputs(c, QuestionsAbout<Mod, Mask>(mod, mask));
}

}  // namespace attn::fuzz
