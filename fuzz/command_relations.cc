#include <fmt/format.h>

#include <cstdio>

#include "fuzz/campaign.h"
#include "fuzz/case_sequences.h"
#include "fuzz/clock.h"
#include "fuzz/commands.h"
#include "fuzz/relations.h"

namespace attn::fuzz {
namespace {

/// A case of this row and shape; a step of decoding has few queries.
Case case_of(const Implementation& row, Fixed shape, std::uint64_t seed, std::uint64_t n) {
  shape.implementations = {std::string(row.name)};
  if (has_cache(row)) shape.sq = std::min(shape.sq.value_or(1), 4);
  Case c = drawn_case(shape, seed, n).value();
  if (c.fill > Fill::gaussian) c.fill = Fill::gaussian;  // others may look at every pair
  return c;
}

/// What was seen of one relation.
struct Tally {
  std::uint64_t held = 0, refused = 0;
  double seconds = 0;
};

std::vector<const Implementation*> rows_named(const std::string& name) {
  std::vector<const Implementation*> rows;
  if (!name.empty()) return {&implementation_named(name)};
  for (const Implementation& row : shipped_implementations()) rows.push_back(&row);
  return rows;
}

}  // namespace

int relations_command(const RelationsArguments& a) {
  const std::vector<const Implementation*> rows = rows_named(a.implementation);
  Fixed shape;
  shape.b = 1, shape.hq = 2, shape.hkv = 1, shape.sq = shape.skv = 1024, shape.d = shape.dv = 64;
  fix_shape(a.shape, shape);
  RunOptions options;
  options.engine = parse_engine(a.engine);
  options.planted = parse_planted(a.planted);
  const Clock::time_point start = Clock::now();
  std::vector<Tally> tallies(relations().size());
  // each relation once, on one row or another, before any comes again
  for (std::uint64_t n = 0; seconds_since(start) < a.seconds; ++n)
    for (std::size_t i = 0; i < relations().size(); ++i)
      for (std::size_t tried = 0; tried < rows.size() && seconds_since(start) < a.seconds;
           ++tried) {
        const Relation& relation = relations()[i];
        const Implementation* row = rows[(n + i + tried) % rows.size()];
        const std::optional<Case> c = relation.fitted(case_of(*row, shape, a.seed, n));
        if (!c) continue;
        const Clock::time_point before = Clock::now();
        const RelationVerdict v = run_relation(relation, *c, options);
        tallies[i].seconds += seconds_since(before);
        if (is_failure(v.outcome)) {
          fmt::print("{}", report(relation, *c, v));
          return 1;
        }
        ++(v.outcome == Outcome::refused ? tallies[i].refused : tallies[i].held);
        if (v.outcome == Outcome::pass) break;
      }
  for (std::size_t i = 0; i < relations().size(); ++i)
    fmt::print("{:<16} held in {:>5} cases, {:>6.1f} s, {} refused   {}\n", relations()[i].name,
               tallies[i].held, tallies[i].seconds, tallies[i].refused, relations()[i].says);
  return 0;
}

}  // namespace attn::fuzz
