#include "fuzz/relations.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "fuzz/campaign.h"
#include "fuzz/case_sequences.h"
#include "fuzz/random.h"
#include "fuzz/tool.h"
#include "optimized/simt/fault.h"

namespace attn::fuzz {

std::span<const Relation> relations() {
  static const std::vector<Relation> all = [] {
    std::vector<Relation> list;
    for (const auto part : {bitwise_relations(), bounded_relations(), gradient_relations()})
      list.insert(list.end(), part.begin(), part.end());
    return list;
  }();
  return all;
}

const Relation& relation_named(std::string_view name) {
  std::string known;
  for (const Relation& relation : relations()) {
    if (relation.name == name) return relation;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", relation.name);
  }
  throw std::invalid_argument(fmt::format("relation: '{}', expected one of {}", name, known));
}

RelationVerdict run_relation(const Relation& relation, const Case& fitted,
                             const RunOptions& options) {
  try {
    const PassInputs in = inputs_of(fitted);
    const std::string broken = relation.broken({fitted, in, options});
    if (broken.empty()) return {};
    return {Outcome::discrepancy, broken};
  } catch (const simt::CheckerFault& fault) {
    return {Outcome::checker_fault, fault.what()};
  } catch (const std::invalid_argument& refusal) {
    return {Outcome::refused, refusal.what()};
  }
}

RelationFailure shrunk_failure(const Relation& relation, const rc::Shrinkable<Case>& drawn,
                               const RelationVerdict& verdict, const RunOptions& options,
                               double most_seconds) {
  const Case original = relation.fitted(drawn.value()).value();
  RelationFailure failure{&relation, original, original, verdict};
  const auto fails = [&](const Case& smaller) {
    const std::optional<Case> fitted = relation.fitted(smaller);
    if (!fitted) return false;
    const RelationVerdict v = run_relation(relation, *fitted, options);
    if (!is_failure(v.outcome)) return false;
    failure.shrunk = *fitted, failure.verdict = v;
    return true;
  };
  shrink(drawn, fails, most_seconds);
  return failure;
}

RelationsResult run_relations(const Fixed& fixed, std::uint64_t seed, std::uint64_t cases,
                              const RunOptions& options) {
  RelationsResult result;
  for (std::uint64_t n = 0; n < cases; ++n) {
    const Relation& relation = relations()[n % relations().size()];
    const rc::Shrinkable<Case> drawn = drawn_case(fixed, hash_of(seed, 0x2e1), n);
    const std::optional<Case> c = relation.fitted(drawn.value());
    if (!c) continue;
    const RelationVerdict v = run_relation(relation, *c, options);
    if (is_failure(v.outcome)) {
      result.failure = shrunk_failure(relation, drawn, v, options);
      break;
    }
    result.held += v.outcome == Outcome::pass;
  }
  return result;
}

std::string report(const Relation& relation, const Case& fitted, const RelationVerdict& verdict) {
  return fmt::format(
      "{:<12} {}   {}\nrelation     {}: {}; may differ: {}\nreplay       {} replay '{}' "
      "--relation {}\n",
      name_of(verdict.outcome), fitted.implementation, verdict.reason, relation.name, relation.says,
      relation.may_differ, tool_name(), to_text(fitted), relation.name);
}

std::string report(const RelationFailure& f) {
  return report(*f.relation, f.shrunk, f.verdict) + "shrunk from  '" + to_text(f.original) + "'\n";
}

const Implementation& row_of(const Case& c) { return implementation_named(c.implementation); }
bool has_rows(const Case& c) { return c.b > 0 && c.hkv > 0 && c.sq > 0; }

void forbid(Case& c, std::initializer_list<Op> ops) {
  for (const Op op : ops) {
    if (uses(c.mod, op)) c.mod = variable(Op::score);
    if (uses(c.mask, op)) c.mask = condition_constant(true);
  }
  drop_unread_tables(c);
}

std::optional<Case> plain(Case c) {
  if (!has_rows(c)) return {};
  c.mod = variable(Op::score);
  c.sink = false, c.dropout = 0, c.d_lse = false, c.row_max = false;
  if (c.fill == Fill::nan_keys) c.fill = Fill::gaussian;
  drop_unread_tables(c);
  return c;
}

}  // namespace attn::fuzz
