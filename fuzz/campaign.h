#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fuzz/coverage.h"
#include "fuzz/generate.h"
#include "fuzz/run.h"

namespace attn::fuzz {

/// A part of a campaign that is split over several machines: its cases number `index`,
/// `index + count`, and so on. The parts together are the whole campaign.
struct Shard {
  std::uint64_t index = 0, count = 1;  ///< index < count
};

/// What a campaign draws, how its cases are run, and when it ends: at the first failure, after
/// `cases` or after `seconds`.
struct CampaignOptions {
  std::uint64_t cases = 0;     ///< of all shards together; 0: no limit
  double seconds = 0;          ///< 0: no limit
  std::uint64_t seed = 1;      ///< with the index of a case it decides the case
  Shard shard;                 ///< the part of the campaign that is run
  int jobs = 2;                ///< threads that run cases; the result does not depend on it
  double shrink_seconds = 60;  ///< at most, for the case that failed; see `shrink`
  Fixed fixed;                 ///< what is not drawn
  RunOptions run;              ///< how each case is run
};

/// A case that failed, and the simplest one found on the way down from it that still does.
struct Failure {
  std::uint64_t index = 0;  ///< of the case in the campaign
  Case original, shrunk;    ///< as drawn, and the simplest that still fails
  Verdict verdict;          ///< of the shrunk case
};

/// The report of its shrunk case, and what that was shrunk from.
std::string report(const Failure& failure);

/// What a campaign came to; `progress` is shown the same of a campaign that still runs.
struct CampaignResult {
  std::uint64_t cases = 0;                    ///< that were run, the refused ones too
  std::map<Outcome, std::uint64_t> outcomes;  ///< how many cases came to each
  double seconds = 0;                         ///< of real time, shrinking included
  Coverage coverage = empty_coverage();       ///< what was drawn
  std::optional<Failure> failure;             ///< the first one; the campaign ends there
  /// The first case that was refused, of plain tensors (not packed, no cache) if there is one:
  /// where the user fixed the mod or the tables, that is bad usage.
  std::string refused, refused_case;
  bool refused_is_plain = false;  ///< that case is of plain tensors

  /// Cases that came to `outcome`.
  std::uint64_t count_of(Outcome outcome) const {
    const auto found = outcomes.find(outcome);
    return found == outcomes.end() ? 0 : found->second;
  }
  /// 0 before any time has passed.
  double cases_per_second() const { return seconds > 0 ? static_cast<double>(cases) / seconds : 0; }
};

/// How many of a campaign's cases a shard has.
std::uint64_t cases_of(const Shard& shard, std::uint64_t cases);

/// Case number `index` of the campaign with this seed: the same whatever ran before it.
rc::Shrinkable<Case> drawn_case(const Fixed& fixed, std::uint64_t seed, std::uint64_t index);

/// Runs random cases until one fails or the limit is reached. `progress` is called from one thread
/// at a time, a few times a second at most.
CampaignResult run_campaign(const CampaignOptions& options,
                            const std::function<void(const CampaignResult&)>& progress = {});

/// The simplest case, among neighbours of neighbours, that still fails. The last one for
/// which `fails` said so is the result. Stops looking after `most_seconds`.
Case shrink(const rc::Shrinkable<Case>& failing, const std::function<bool(const Case&)>& fails,
            double most_seconds = 60);

/// The planted faults that a case can show: all but M32, an offset that overflows 32 bits, which
/// takes rows 2^31 elements apart; optimized/far_strides_test.cc finds that one.
std::vector<PlantedFaultInfo> hunted_faults();

}  // namespace attn::fuzz
