#pragma once

#include "mods/lang/expression.h"
#include "mods/lang/program.h"
#include "mods/lang/tables.h"

namespace attn {

/// Compiles a mod for the kernels. The program reads the tables' memory where it is; its table `i`
/// is the `i`-th of `tables_read(mod)`.
/// @throws std::invalid_argument if the root is a condition; a table is missing or of another rank
///   or type; or the program would need more than `Program` holds.
ProgramMod compile_mod(const Expression& mod, const Tables& tables);

/// Compiles a mask; see `compile_mod`. @throws std::invalid_argument also if it reads `score`.
ProgramMask compile_mask(const Expression& mask, const Tables& tables);

}  // namespace attn
