#pragma once

#include <cmath>
#include <string>

#include "fuzz/forward_bounds.h"
#include "fuzz/inputs.h"
#include "fuzz/table_spec.h"
#include "mods/lang/tree_functor.h"
#include "optimized/implementations.h"

/// What the tests of the inputs of cases share.
namespace attn::fuzz {

/// A case with its inputs.
struct Made {
  TableStore tables;  ///< of the case
  TreeMod mod;        ///< on these tables
  TreeMask mask;      ///< on these tables
  PassInputs in;      ///< what the case's fill made

  /// @throws std::invalid_argument as make_inputs
  explicit Made(const Case& c)
      : tables(c.tables, c.sizes(), c.seed),
        mod(c.mod, tables.tables()),
        mask(c.mask, tables.tables()),
        in(make_inputs(c, mod, mask)) {}
  /// By the numerics of the case's own row.
  ForwardBounds bounds(const Case& c) const {
    return bound_forward(in, mod, mask, implementation_named(c.implementation).numerics(c.dtype));
  }
};

/// A little case with groups of two heads, and a tail in every length.
inline Case small_case(Fill fill, std::uint64_t seed = 1) {
  Case c = parse_case("v1 B2 Hq4 Hkv2 Sq9 Skv21 D24 Dv10 bf16; scale: 0.125");
  c.fill = fill;
  c.seed = seed;
  if (fill == Fill::exact_powers) c.scale = std::log(2.0);
  return c;
}

/// q k^T of one pair.
inline double raw_product(const PassInputs& in, int b, int h, int i, int j) {
  double sum = 0;
  for (int d = 0; d < in.q.extents()[3]; ++d)
    sum += in.q(b, h, i, d) * in.k(b, h / (in.sizes.hq / in.sizes.hkv), j, d);
  return sum;
}
/// The first implementation of that kind; empty if there is none.
inline std::string name_of_row(Pass pass, Sequences how) {
  for (const Implementation& row : implementations())
    if (row.pass == pass && row.sequences == how) return std::string(row.name);
  return {};
}

}  // namespace attn::fuzz
