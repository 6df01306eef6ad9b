#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "fuzz/commands.h"

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

int replay_command(const ReplayArguments& a) {
  RunOptions options;
  options.engine = parse_engine(a.engine);
  options.repeat = a.repeat;
  if (!a.planted.empty()) {
    const auto known = std::find_if(planted_faults.begin(), planted_faults.end(),
                                    [&](const auto& f) { return f.name == a.planted; });
    if (known == planted_faults.end())
      throw std::invalid_argument(fmt::format(
          "--planted: '{}', expected a fault that 'attnproof faults' lists", a.planted));
    options.planted = known->fault;
  }
  const Case c = parse_case(a.line);
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
