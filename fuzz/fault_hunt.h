#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fuzz/campaign.h"
#include "fuzz/run_record.h"
#include "optimized/planted_faults.h"

/// How the hunts for planted faults ended: `attnproof faults`.
namespace attn::fuzz {

/// A campaign against the build that commits one fault, and what came of it.
struct Hunt {
  /// How a hunt ends.
  enum class End {
    found,     ///< a case fails with the fault and not without it
    survived,  ///< no case failed
    hidden,  ///< the shipped kernel fails on the case as well, so that it says nothing of the fault
  };
  PlantedFaultInfo fault;   ///< which was committed
  End end = End::survived;  ///< how it ended
  std::uint64_t cases = 0;  ///< that ran
  double seconds = 0;       ///< that they took
  std::string seen_in;      ///< the tensor that is wrong, or what else was seen
  std::string replay;   ///< runs the case again: with the fault where it was found, else without
  std::string shipped;  ///< of a hidden fault: the report of the shipped kernel
};

/// `shipped`: the verdict on the same case without the fault; of no meaning where none failed.
Hunt hunt_of(const PlantedFaultInfo& fault, const CampaignResult& campaign, const Verdict& shipped);

/// What is printed of it, one line or two.
std::string to_text(const Hunt& hunt);

/// A test case for each fault, which fails where the fault was not found.
RunRecord record_of(const std::vector<Hunt>& hunts);

}  // namespace attn::fuzz
