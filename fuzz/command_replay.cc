#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "fuzz/commands.h"
#include "fuzz/relations.h"
#include "fuzz/report_html.h"

namespace attn::fuzz {

Engine parse_engine(const std::string& name) {
  for (const Engine e : {Engine::warp, Engine::thread})
    if (name == name_of(e)) return e;
  throw std::invalid_argument(fmt::format("--engine: '{}', expected warp or thread", name));
}

int jobs_or_cores(int jobs) {
  return jobs > 0 ? jobs : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

static void write_file(const std::string& path, const std::string& text, std::ios::openmode mode) {
  std::ofstream file(path, mode);
  file << text << std::flush;
  if (!file) throw std::invalid_argument(fmt::format("'{}': cannot be written", path));
}
void write_file(const std::string& path, const std::string& text) {
  write_file(path, text, std::ios::trunc);
}
void append_to_file(const std::string& path, const std::string& text) {
  write_file(path, text, std::ios::app);
}

PlantedFault parse_planted(const std::string& name) {
  if (name.empty()) return PlantedFault::none;
  for (const PlantedFaultInfo& fault : planted_faults)
    if (fault.name == name) return fault.fault;
  throw std::invalid_argument(
      fmt::format("--planted: '{}', expected a fault that 'attnproof faults' lists", name));
}

void write_failure_page(const std::string& path, const Case& c, const RunOptions& options,
                        const std::string& original) {
  write_file(path, to_html(report_page(c, options, run_details(c, options), original)));
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
