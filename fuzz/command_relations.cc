#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "fuzz/campaign.h"
#include "fuzz/case_sequences.h"
#include "fuzz/clock.h"
#include "fuzz/commands.h"
#include "fuzz/relations.h"
#include "fuzz/run_record.h"

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
struct RelationsRun {
  std::vector<Tally> tallies = std::vector<Tally>(relations().size());
  std::optional<RelationFailure> failure;
};

/// A test case for each relation.
RunRecord record_of(const RelationsRun& run, const RelationsArguments& a) {
  Suite suite{"relations", {}};
  nlohmann::json details = {{"engine", a.engine}, {"seed", a.seed}};
  for (std::size_t i = 0; i < relations().size(); ++i) {
    const Relation& relation = relations()[i];
    const Tally& tally = run.tallies[i];
    const bool broken = run.failure && run.failure->relation == &relation;
    suite.checked.push_back({std::string(relation.name), broken ? report(*run.failure) : ""});
    details["relations"].push_back({{"name", relation.name},
                                    {"says", relation.says},
                                    {"held", tally.held},
                                    {"refused", tally.refused},
                                    {"seconds", tally.seconds}});
  }
  if (const std::optional<RelationFailure>& f = run.failure)
    details["failure"] = {{"relation", f->relation->name},
                          {"outcome", name_of(f->verdict.outcome)},
                          {"replay", to_text(f->shrunk)},
                          {"original", to_text(f->original)},
                          {"report", report(*f)}};
  return {"attnproof relations", {suite}, details};
}

std::vector<const Implementation*> rows_named(const std::string& name) {
  std::vector<const Implementation*> rows;
  if (!name.empty()) return {&implementation_named(name)};
  for (const Implementation& row : shipped_implementations()) rows.push_back(&row);
  return rows;
}

/// Each relation once, on one row or another, before any comes again; until one is broken or the
/// time is up.
void hold(const RelationsArguments& a, const Fixed& shape, RelationsRun& run) {
  const std::vector<const Implementation*> rows = rows_named(a.implementation);
  RunOptions options;
  options.engine = parse_engine(a.engine);
  options.planted = parse_planted(a.planted);
  const Clock::time_point start = Clock::now();
  const auto time_is_up = [&] { return seconds_since(start) > a.seconds; };
  for (std::uint64_t n = 0; !time_is_up(); ++n)
    for (std::size_t i = 0; i < relations().size(); ++i)
      for (std::size_t tried = 0; tried < rows.size() && !time_is_up(); ++tried) {
        const Relation& relation = relations()[i];
        const Case drawn = case_of(*rows[(n + i + tried) % rows.size()], shape, a.seed, n);
        const std::optional<Case> c = relation.fitted(drawn);
        if (!c) continue;
        Tally& tally = run.tallies[i];
        const Clock::time_point before = Clock::now();
        const RelationVerdict v = run_relation(relation, *c, options);
        tally.seconds += seconds_since(before);
        if (is_failure(v.outcome)) {
          run.failure = shrunk_failure(relation, shrinkable(drawn), v, options);
          return;
        }
        ++(v.outcome == Outcome::refused ? tally.refused : tally.held);
        if (v.outcome == Outcome::pass) break;
      }
}

}  // namespace

int relations_command(const RelationsArguments& a) {
  RelationsRun run;
  return recorded(
      {a.json, a.junit, {}}, [&] { return record_of(run, a); },
      [&] {
        Fixed shape;
        shape.b = 1, shape.hq = 2, shape.hkv = 1, shape.sq = shape.skv = 1024,
        shape.d = shape.dv = 64;
        fix_shape(a.shape, shape);
        hold(a, shape, run);
        if (run.failure) return fmt::print("{}", report(*run.failure));
        for (std::size_t i = 0; i < relations().size(); ++i)
          fmt::print("{:<16} held in {:>5} cases, {:>6.1f} s, {} refused   {}\n",
                     relations()[i].name, run.tallies[i].held, run.tallies[i].seconds,
                     run.tallies[i].refused, relations()[i].says);
      });
}

}  // namespace attn::fuzz
