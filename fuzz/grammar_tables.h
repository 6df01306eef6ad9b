#pragma once

#include <fmt/format.h>

#include <string>

#include "fuzz/case.h"
#include "fuzz/draw.h"
#include "optimized/implementations.h"

/// The tables of drawn mods and masks.
namespace attn::fuzz {

/// Declares a table under a name of its own, and returns the name.
inline std::string table(Case& c, const std::string& prefix, const std::string& dims,
                         const std::string& source) {
  const std::string name = fmt::format("{}{}", prefix, c.tables.size());
  c.tables.push_back(parse_table_spec(fmt::format("{}[{}]={}", name, dims, source)));
  return name;
}

/// Rows of a cache count from the first key, so that q lies between -Sq and Skv.
inline bool counts_from_keys(const Case& c) {
  return has_cache(implementation_named(c.implementation));
}
/// An index for q, and the extent of the axis that it indexes.
inline const char* q_index(const Case& c) { return counts_from_keys(c) ? "q + Sq" : "q"; }
/// The extent of that axis, as a DIM of a table.
inline const char* q_extent(const Case& c) { return counts_from_keys(c) ? "Sq+Skv" : "Sq"; }
/// Dims in which Q stands for that extent.
inline std::string dims_of(const Case& c, std::string dims) {
  const std::size_t at = dims.find('Q');
  return at == std::string::npos ? dims : dims.replace(at, 1, q_extent(c));
}

/// Nodes of an expression that is put together: what a compiled program surely has room for.
inline constexpr int largest_combination = 90;

/// A condition on a pair of positions, and the tables that it reads: an atom of drawn masks.
std::string pair_condition(Case& c);

/// An entry of the registry of mods, or of masks, that fits the case, with parameters of its own,
/// as an expression. Its tables are declared.
std::string draw_named_mod(Case& c);
/// The same of masks.
std::string draw_named_mask(Case& c);

/// A table of reals; multiples of 1/4 keep what is exact exact.
inline std::string reals(Case& c, const std::string& dims) {
  return table(c, "t", dims, chance(50) ? "dyadic(-2,2)" : "uniform(-2,2)");
}

}  // namespace attn::fuzz
