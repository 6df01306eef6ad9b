#pragma once

#include "mods/lang/index.h"

namespace attn {

/// Asks a mask whether it fits a problem, before any work: whether its tables cover the sequences
/// and its parameters make sense. A mask takes part by having `void check(const Sizes&) const`; one
/// without it fits every problem. Masks made of masks ask each part.
///
/// @throws std::invalid_argument naming the argument, its value and what was expected.
template <class Mask>
void check_mask(const Mask& mask, const Sizes& sizes) {
  if constexpr (requires { mask.check(sizes); }) mask.check(sizes);
}

}  // namespace attn
