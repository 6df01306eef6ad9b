#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "mods/lang/expression.h"
#include "mods/lang/tables.h"

namespace attn {

/// A text that is no expression. The message ends with the text and a caret under the column.
class ExpressionError : public std::invalid_argument {
 public:
  ExpressionError(int at, const std::string& message)
      : std::invalid_argument(message), column(at) {}
  int column;  ///< in bytes, counted from 1
};

/// The longest text that is read, in bytes.
inline constexpr int max_expression_text = 65536;

/// Reads a mod: `score + slope[h] * (kv - q)`.
///
///     values      score  b h q kv  B Hq (or H) Hkv Sq Skv  7  0.5  1e-3  inf  true  false
///     tables      name[i], name[i, j] or name[i][j]; rank 1 to 4
///     operators   - !   * / %   + -   < <= > >=   == !=   &&   ||   c ? a : b     (as in C)
///     functions   select(c, a, b) min max abs clamp(x, low, high) tanh sigmoid exp log sin cos
///                 floor floor_div floor_mod
///
/// A whole number is a 32-bit index and becomes a real beside one; `/` and `%` of indices truncate
/// as in C. Both branches of a choice and both sides of `&&` and `||` are always evaluated.
/// @throws ExpressionError
Expression parse_mod(std::string_view text, const std::vector<TableDeclaration>& tables = {});

/// Reads a mask: `q >= kv && doc[q] == doc[kv]`. `score` is not known to it.
/// @throws ExpressionError
Expression parse_mask(std::string_view text, const std::vector<TableDeclaration>& tables = {});

}  // namespace attn
