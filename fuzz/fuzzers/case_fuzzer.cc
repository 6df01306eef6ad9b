// The line of a case, run: so that whatever drives libFuzzer targets can run campaigns. A failure
// ends the process with the report, whose last line runs the case again. ATTNPROOF_PLANTED=M21 in
// the environment commits a planted fault, to see that it does.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "fuzz/campaign.h"
#include "fuzz/fuzzers/fuzzer.h"
#include "fuzz/random.h"
#include "fuzz/run.h"

namespace attn::fuzz {
namespace {

RunOptions options_of_environment() {
  RunOptions options;
  const char* name = std::getenv("ATTNPROOF_PLANTED");
  if (!name) return options;
  for (const PlantedFaultInfo& fault : planted_faults)
    if (fault.name == name) options.planted = fault.fault;
  require(options.planted != PlantedFault::none, std::string("ATTNPROOF_PLANTED: ") + name);
  return options;
}

/// Multiply-adds of the two products of a forward pass, all heads.
double work_of(const Case& c) {
  return 1.0 * c.b * c.hq * std::max(1, c.sq) * std::max(1, c.skv) * (c.d + c.dv);
}

bool is_implemented(const Case& c) {
  const auto rows = implementations();
  return std::any_of(rows.begin(), rows.end(),
                     [&](const Implementation& row) { return row.name == c.implementation; });
}

std::optional<Case> case_in(std::string_view bytes) {
  std::optional<Case> c;
  accepts([&] { c = parse_case(bytes); });
  return c;
}

void run(std::string_view bytes) {
  constexpr double most_work = 1 << 26;
  static const RunOptions options = options_of_environment();
  const std::optional<Case> c = case_in(bytes);
  if (!c || work_of(*c) > most_work) return;
  const Verdict verdict = run_case(*c, options);
  if (verdict.outcome == Outcome::refused)
    return require_clear(std::invalid_argument(verdict.reason));
  // a finding is a fault of the case's own mod
  require(verdict.outcome == Outcome::finding || !is_failure(verdict.outcome),
          "\n" + report(*c, verdict));
}

/// Another case: one that shares the expressions, the lengths or everything but the data with `c`.
Case neighbour(const Case& c, std::uint64_t seed) {
  Fixed fixed;
  fixed.implementations = {c.implementation};
  switch (seed % 3) {
    case 0:
      fixed.mod = c.mod, fixed.mask = c.mask, fixed.tables = c.tables;
      return drawn_case(fixed, seed, 0).value();
    case 1:
      fixed.b = c.b, fixed.hq = c.hq, fixed.hkv = c.hkv;
      fixed.sq = c.sq, fixed.skv = c.skv, fixed.d = c.d, fixed.dv = c.dv;
      return drawn_case(fixed, seed, 0).value();
    default: {
      Case other = c;
      other.seed = seed;
      return other;
    }
  }
}

}  // namespace
}  // namespace attn::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  attn::fuzz::run(attn::fuzz::text_of(data, size));
  return 0;
}

/// Lines changed at random are hardly ever cases: a new case is drawn, or one beside this.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  using namespace attn::fuzz;
  const std::uint64_t drawn = hash_of(seed);
  const std::optional<Case> c = drawn % 8 ? case_in(text_of(data, size)) : std::nullopt;
  const std::string line = to_text(c && is_implemented(*c) ? neighbour(*c, drawn >> 3)
                                                           : drawn_case({}, drawn, 0).value());
  if (line.size() > most) return size;
  std::memcpy(data, line.data(), line.size());
  return line.size();
}
