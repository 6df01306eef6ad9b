#include <fmt/format.h>

#include "fuzz/commands.h"
#include "fuzz/relations.h"
#include "fuzz/report_html.h"

namespace attn::fuzz {

static int replay_relation(const Relation& relation, const Case& c, const RunOptions& options) {
  const std::optional<Case> fitted = relation.fitted(c);
  if (!fitted)
    throw std::invalid_argument(
        fmt::format("relation {}: does not apply to this case: {}", relation.name, relation.says));
  const RelationVerdict v = run_relation(relation, *fitted, options);
  if (v.outcome == Outcome::refused) throw std::invalid_argument(v.reason);
  fmt::print("{}", v.outcome == Outcome::pass ? fmt::format("pass         {}\n", c.implementation)
                                              : report(relation, *fitted, v));
  return is_failure(v.outcome) ? 1 : 0;
}

int replay_command(const ReplayArguments& a) {
  RunOptions options;
  options.engine = parse_engine(a.engine);
  options.repeat = a.repeat;
  options.planted = parse_planted(a.planted);
  const Case c = parse_case(a.line);
  if (!a.relation.empty() && !a.html.empty())
    throw std::invalid_argument(
        fmt::format("--html: '{}', expected none beside --relation", a.html));
  if (!a.relation.empty()) return replay_relation(relation_named(a.relation), c, options);
  const Details run =
      a.html.empty() ? Details{run_case(c, options), {}, {}, {}} : run_details(c, options);
  const Verdict& v = run.verdict;
  if (v.outcome == Outcome::refused) throw std::invalid_argument(v.reason);
  if (!a.html.empty()) write_file(a.html, to_html(report_page(c, options, run)));
  if (v.outcome == Outcome::pass) {
    fmt::print("pass         {} ({})\n", c.implementation, v.target);
    return 0;
  }
  fmt::print("{}", report(c, v));
  return is_failure(v.outcome) ? 1 : 0;
}

}  // namespace attn::fuzz
