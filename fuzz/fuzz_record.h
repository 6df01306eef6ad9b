#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "fuzz/campaign.h"
#include "fuzz/junit.h"

/// What a run of `attnproof fuzz` came to, for other programs.
namespace attn::fuzz {

struct FuzzRecord {
  std::string engine;
  std::uint64_t seed = 1;
  Shard shard;
  std::vector<Checked> corpus;  ///< cases that were replayed first
  CampaignResult campaign;
  std::vector<Checked> whole;  ///< of the campaign as a whole: coverage, power, relations
  nlohmann::json examination;  ///< of the user's mod and mask; null: there is none

  bool is_clean() const;
};

nlohmann::json to_json(const FuzzRecord& record);

/// JUnit XML: a suite for the corpus, one for the campaign with a test case for each
/// implementation, one for what the campaign must be as a whole.
std::string to_junit(const FuzzRecord& record);

}  // namespace attn::fuzz
