#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "fuzz/commands.h"
#include "fuzz/relations.h"

namespace attn::fuzz {

Engine parse_engine(const std::string& name) {
  for (const Engine e : {Engine::warp, Engine::thread})
    if (name == name_of(e)) return e;
  throw std::invalid_argument(fmt::format("--engine: '{}', expected warp or thread", name));
}

int jobs_or_cores(int jobs) {
  return jobs > 0 ? jobs : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text << std::flush;
  if (!file) throw std::invalid_argument(fmt::format("'{}': cannot be written", path));
}

PlantedFault parse_planted(const std::string& name) {
  if (name.empty()) return PlantedFault::none;
  for (const PlantedFaultInfo& fault : planted_faults)
    if (fault.name == name) return fault.fault;
  throw std::invalid_argument(
      fmt::format("--planted: '{}', expected a fault that 'attnproof faults' lists", name));
}

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
  if (!a.relation.empty()) return replay_relation(relation_named(a.relation), c, options);
  const Verdict v = run_case(c, options);
  if (v.outcome == Outcome::refused) throw std::invalid_argument(v.reason);
  if (v.outcome == Outcome::pass) {
    fmt::print("pass         {} ({})\n", c.implementation, v.target);
    return 0;
  }
  fmt::print("{}", report(c, v));
  return is_failure(v.outcome) ? 1 : 0;
}

}  // namespace attn::fuzz
