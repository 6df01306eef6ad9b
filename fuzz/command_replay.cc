#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
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
  file << text;
  file.flush();
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

int implementations_command(const std::string& json) {
  nlohmann::json rows = nlohmann::json::array();
  for (const Implementation& i : implementations()) {
    const std::string tiles =
        fmt::format("{}x{}, small {}x{}", i.production.q, i.production.kv, i.small.q, i.small.kv);
    fmt::print("{:<21} {}\n", i.name, i.what);
    fmt::print("{:<21} tiles {}; {}; engines warp, thread\n", "", tiles,
               i.deterministic ? "deterministic" : "not deterministic");
    nlohmann::json dtypes = nlohmann::json::array();
    for (const DType t : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
      Problem p;
      p.d = p.dv = 1;
      p.dtype = t;
      if (!i.refusal(p)) dtypes.push_back(name_of(t));
    }
    fmt::print("{:<21} storage {}\n", "", dtypes.dump());
    rows.push_back({{"name", i.name},
                    {"what", i.what},
                    {"tiles", tiles},
                    {"pass", i.pass == Pass::forward ? "forward" : "backward"},
                    {"dtypes", dtypes},
                    {"deterministic", i.deterministic},
                    {"engines", {"warp", "thread"}},
                    {"devices", {"cpu"}}});
  }
  if (!json.empty()) write_file(json, nlohmann::json{{"implementations", rows}}.dump(2) + "\n");
  return 0;
}

}  // namespace attn::fuzz
