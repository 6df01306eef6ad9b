#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "fuzz/campaign.h"
#include "fuzz/junit.h"

/// What a run of `attnproof fuzz` came to, for other programs.
namespace attn::fuzz {

/// All that one run of the command did, and on what.
struct FuzzRecord {
  std::string engine;           ///< "warp" or "thread"
  std::uint64_t seed = 1;       ///< of the campaign
  Shard shard;                  ///< the part of it that was run
  std::vector<Checked> corpus;  ///< cases that were replayed first
  CampaignResult campaign;      ///< what its random cases came to
  std::vector<Checked> whole;   ///< of the campaign as a whole: coverage, power, relations
  nlohmann::json examination;   ///< of the user's mod and mask; null: there is none

  bool is_clean() const;  ///< nothing failed: the exit status is 0
};

/// What `--json` writes (docs/ci.md).
nlohmann::json to_json(const FuzzRecord& record);

/// JUnit XML: a suite for the corpus, one for the campaign with a test case for each
/// implementation, one for what the campaign must be as a whole.
std::string to_junit(const FuzzRecord& record);

}  // namespace attn::fuzz
