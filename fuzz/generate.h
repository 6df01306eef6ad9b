#pragma once

#include <rapidcheck.h>

#include <optional>
#include <string>
#include <vector>

#include "fuzz/case.h"

namespace attn::fuzz {

/// What a user has fixed; everything else is drawn.
struct Fixed {
  std::optional<std::string> implementation;
  std::optional<DType> dtype;
  std::optional<Expression> mod, mask;
  std::vector<TableSpec> tables;  ///< of the fixed mod and mask
  std::optional<int> b, hq, hkv, sq, skv, d, dv;
};

/// Random cases: shapes with a liking for tile boundaries, mods and masks of the typed grammar
/// (fuzz/grammar.h), every fill, layout and storage type. Shrinks by `smaller_cases`.
rc::Gen<Case> cases(const Fixed& fixed = {});

/// Simpler neighbours of a case, simplest first: fewer batches and heads, lengths at tile
/// boundaries, small heads, smaller expressions, plainer fills and layouts. What is fixed stays.
std::vector<Case> smaller_cases(const Case& c, const Fixed& fixed = {});

}  // namespace attn::fuzz
