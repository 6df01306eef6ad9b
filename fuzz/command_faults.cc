#include <fmt/format.h>

#include "fuzz/commands.h"
#include "fuzz/fault_hunt.h"
#include "fuzz/row_limits.h"

namespace attn::fuzz {

/// Fuzzes the build that commits this fault until something is seen, and then asks whether the
/// shipped kernel shows it too.
static Hunt hunt(const PlantedFaultInfo& fault, const FaultsArguments& a) {
  CampaignOptions options;
  options.cases = a.cases;
  options.seed = a.seed;
  options.jobs = jobs_or_cores(a.jobs);
  options.run.planted = fault.fault;
  options.fixed.implementations = names_of(shipped_implementations());
  options.shrink_seconds = 1;
  const CampaignResult r = run_campaign(options);
  return hunt_of(fault, r, r.failure ? run_case(r.failure->shrunk) : Verdict{});
}

int faults_command(const FaultsArguments& a) {
  std::vector<Hunt> hunts;
  const auto record = [&] { return record_of(hunts); };
  return recorded({a.json, a.junit, {}}, record, [&] {
    for (const PlantedFaultInfo& fault : hunted_faults()) {
      hunts.push_back(hunt(fault, a));
      fmt::print("{}", to_text(hunts.back()));
    }
    const nlohmann::json all = record().details;
    fmt::print("{} planted, {} found, slowest needed {} cases, {:.1f} s\n",
               all["planted"].get<std::size_t>(), all["found"].get<std::size_t>(),
               all["slowest"].get<std::uint64_t>(), all["seconds"].get<double>());
  });
}

}  // namespace attn::fuzz
