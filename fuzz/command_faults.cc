#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "fuzz/commands.h"
#include "fuzz/junit.h"
#include "fuzz/row_limits.h"
#include "optimized/planted_faults.h"

namespace attn::fuzz {
namespace {

struct Hunt {
  PlantedFaultInfo fault;
  bool found = false;
  std::uint64_t cases = 0;
  double seconds = 0;
  std::string replay, how;
};

/// Fuzzes the build that commits this fault until something is seen that the shipped kernel does
/// not show.
Hunt hunt(const PlantedFaultInfo& fault, const FaultsArguments& a) {
  CampaignOptions options;
  options.cases = a.cases;
  options.seed = a.seed;
  options.jobs = jobs_or_cores(a.jobs);
  options.run.planted = fault.fault;
  options.fixed.implementations = names_of(shipped_implementations());
  options.shrink_seconds = 1;
  const CampaignResult r = run_campaign(options);
  Hunt h{fault, false, r.cases, r.seconds, {}, {}};
  if (!r.failure) return h;
  h.found = !is_failure(run_case(r.failure->shrunk).outcome);
  h.replay =
      fmt::format("attnproof replay --planted {} '{}'", fault.name, to_text(r.failure->shrunk));
  const Verdict& v = r.failure->verdict;
  h.how = v.outcome == Outcome::discrepancy ? v.discrepancy.tensor : name_of(v.outcome);
  return h;
}

struct Faults {
  std::vector<Hunt> hunts;
  double seconds = 0;
  std::uint64_t slowest = 0;
  std::size_t found = 0;
  bool finished = false;
};

nlohmann::json to_json(const Faults& all) {
  nlohmann::json j;
  j["finished"] = all.finished;
  j["planted"] = all.hunts.size();
  j["found"] = all.found;
  j["seconds"] = all.seconds;
  j["survivors"] = j["faults"] = nlohmann::json::array();
  for (const Hunt& h : all.hunts) {
    if (!h.found) j["survivors"].push_back(h.fault.name);
    j["faults"].push_back({{"fault", h.fault.name},
                           {"what", h.fault.what},
                           {"found", h.found},
                           {"cases", h.cases},
                           {"seconds", h.seconds},
                           {"seen_in", h.how},
                           {"replay", h.replay}});
  }
  return j;
}

/// A test case for each fault, which fails where the fault survives.
std::string to_junit(const Faults& all) {
  Suite suite{"faults", {}};
  for (const Hunt& h : all.hunts)
    suite.checked.push_back({fmt::format("{}: {}", h.fault.name, h.fault.what),
                             h.found ? "" : fmt::format("survived {} cases", h.cases)});
  if (!all.finished) suite.checked.push_back({"run", "not finished"});
  suite.properties = {{"slowest", fmt::to_string(all.slowest)},
                      {"seconds", fmt::to_string(all.seconds)}};
  return junit_xml("attnproof faults", {suite});
}

void write_files(const Faults& all, const FaultsArguments& a) {
  if (!a.json.empty()) write_file(a.json, to_json(all).dump(2) + "\n");
  if (!a.junit.empty()) write_file(a.junit, to_junit(all));
}

}  // namespace

int faults_command(const FaultsArguments& a) {
  Faults all;
  write_files(all, a);  // a bad path is bad usage, before any work
  for (const PlantedFaultInfo& fault : hunted_faults()) {
    const Hunt h = hunt(fault, a);
    fmt::print("{:<5} {:<8} {:>5} cases {:>6.2f} s  seen in {:<13} {}\n", h.fault.name,
               h.found ? "found" : "SURVIVED", h.cases, h.seconds, h.found ? h.how : "-",
               h.fault.what);
    if (h.found) fmt::print("      {}\n", h.replay);
    all.seconds += h.seconds;
    all.found += h.found;
    all.slowest = std::max(all.slowest, h.cases);
    all.hunts.push_back(h);
  }
  all.finished = true;
  fmt::print("{} planted, {} found, slowest needed {} cases, {:.1f} s\n", all.hunts.size(),
             all.found, all.slowest, all.seconds);
  write_files(all, a);
  return all.found == all.hunts.size() ? 0 : 1;
}

}  // namespace attn::fuzz
