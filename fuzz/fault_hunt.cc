#include "fuzz/fault_hunt.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fuzz/tool.h"

namespace attn::fuzz {
namespace {

const char* name_of(Hunt::End end) {
  switch (end) {
    case Hunt::End::found:
      return "found";
    case Hunt::End::survived:
      return "survived";
    case Hunt::End::hidden:
      return "hidden";
  }
  return "?";
}

/// Empty where the fault was found.
std::string failure_of(const Hunt& h) {
  if (h.end == Hunt::End::found) return "";
  if (h.end == Hunt::End::survived) return fmt::format("survived {} cases", h.cases);
  return "hidden: the shipped kernel fails too\n" + h.shipped;
}

std::size_t count_of(const std::vector<Hunt>& hunts, Hunt::End end) {
  return static_cast<std::size_t>(
      std::count_if(hunts.begin(), hunts.end(), [&](const Hunt& h) { return h.end == end; }));
}

}  // namespace

Hunt hunt_of(const PlantedFaultInfo& fault, const CampaignResult& campaign,
             const Verdict& shipped) {
  Hunt h{fault, Hunt::End::survived, campaign.cases, campaign.seconds, {}, {}, {}};
  if (!campaign.failure) return h;
  const auto& [index, original, shrunk, seen] = *campaign.failure;
  h.end = is_failure(shipped.outcome) ? Hunt::End::hidden : Hunt::End::found;
  h.seen_in =
      seen.outcome == Outcome::discrepancy ? seen.discrepancy.tensor : name_of(seen.outcome);
  const bool found = h.end == Hunt::End::found;
  h.replay = fmt::format("{} replay {}'{}'", tool_name(),
                         found ? fmt::format("--planted {} ", fault.name) : "", to_text(shrunk));
  if (!found) h.shipped = report(shrunk, shipped);
  return h;
}

std::string to_text(const Hunt& h) {
  const auto [end, told] = h.end == Hunt::End::found ? std::pair{"found", "seen in " + h.seen_in}
                           : h.end == Hunt::End::survived
                               ? std::pair{"SURVIVED", std::string("no case failed")}
                               : std::pair{"HIDDEN", std::string("the shipped kernel fails too")};
  const std::string line = fmt::format("{:<5} {:<8} {:>5} cases {:>6.2f} s  {:<21} {}\n",
                                       h.fault.name, end, h.cases, h.seconds, told, h.fault.what);
  return h.replay.empty() ? line : line + fmt::format("      {}\n", h.replay);
}

RunRecord record_of(const std::vector<Hunt>& hunts) {
  RunRecord record;
  record.title = "attnproof faults";
  double seconds = 0;
  std::uint64_t slowest = 0;
  Suite suite{"faults", {}};
  nlohmann::json faults = nlohmann::json::array(), survivors = nlohmann::json::array();
  for (const Hunt& h : hunts) {
    seconds += h.seconds;
    slowest = std::max(slowest, h.cases);
    suite.checked.push_back({fmt::format("{}: {}", h.fault.name, h.fault.what), failure_of(h)});
    if (h.end == Hunt::End::survived) survivors.push_back(h.fault.name);
    faults.push_back({{"fault", h.fault.name},
                      {"what", h.fault.what},
                      {"end", name_of(h.end)},
                      {"cases", h.cases},
                      {"seconds", h.seconds},
                      {"seen_in", h.seen_in},
                      {"replay", h.replay}});
  }
  const std::size_t found = count_of(hunts, Hunt::End::found);
  suite.properties = {{"planted", fmt::to_string(hunts.size())},
                      {"found", fmt::to_string(found)},
                      {"slowest", fmt::to_string(slowest)},
                      {"seconds", fmt::to_string(seconds)}};
  record.suites = {suite};
  record.details = {{"planted", hunts.size()}, {"found", found},         {"slowest", slowest},
                    {"seconds", seconds},      {"survivors", survivors}, {"faults", faults}};
  return record;
}

}  // namespace attn::fuzz
