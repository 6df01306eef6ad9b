#pragma once

#include <rapidcheck.h>

#include <optional>
#include <string>
#include <vector>

#include "fuzz/case.h"

namespace attn::fuzz {

/// What a user has fixed; everything else is drawn.
struct Fixed {
  std::vector<std::string> implementations;       ///< one of these; empty: any
  std::optional<DType> dtype;                     ///< the storage type
  std::optional<Expression> mod, mask;            ///< which read `tables`
  std::string mod_type, mask_type;                ///< C++ types in their place (fuzz/functors.h)
  int largest_head = 256;                         ///< of what is drawn
  std::vector<TableSpec> tables;                  ///< of the fixed mod and mask
  std::optional<int> b, hq, hkv, sq, skv, d, dv;  ///< the shape, each length by itself
};

/// Random cases of every row of the table of implementations: shapes with a liking for the
/// boundaries of its tiles, mods and masks of the typed grammar (fuzz/grammar.h), every fill,
/// layout and storage type, and whatever else the row takes: sequences, pages, splits, blocks, a
/// sink, dropout. Shrinks by `smaller_cases`.
rc::Gen<Case> cases(const Fixed& fixed = {});

/// Simpler neighbours of a case, the largest steps first: fewer outputs, batches and heads, lengths
/// at tile boundaries, small heads, shorter sequences, fewer options, smaller expressions, then
/// plainer data: the storage type, the fill (gaussian, small whole numbers, Q = 0), the layout, the
/// seed. The implementation, and what is fixed, stay.
std::vector<Case> smaller_cases(const Case& c, const Fixed& fixed = {});

/// A case with these neighbours, and theirs: what a case of `cases` shrinks by.
rc::Shrinkable<Case> shrinkable(const Case& c, const Fixed& fixed = {});

/// Tables that the expressions no longer read go.
void drop_unread_tables(Case& c);

}  // namespace attn::fuzz
