#pragma once

#include "mods/lang/index.h"

namespace attn {

/// Asks a score mod whether it fits a problem, before any work: whether its tables have the shape
/// it reads and its parameters make sense. A mod takes part by having `void check(const Sizes&)
/// const`; one without it fits every problem. Mods made of mods ask each part.
///
/// @throws std::invalid_argument naming the argument, its value and what was expected.
template <class Mod>
void check_mod(const Mod& mod, const Sizes& sizes) {
  if constexpr (requires { mod.check(sizes); }) mod.check(sizes);
}

}  // namespace attn
