#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "fuzz/campaign.h"
#include "fuzz/run_record.h"

/// What a run of `attnproof fuzz` came to, for other programs.
namespace attn::fuzz {

struct FuzzRecord {
  std::string engine;
  std::uint64_t seed = 1;
  Shard shard;
  std::vector<Checked> corpus;  ///< cases that were replayed first
  CampaignResult campaign;
  std::vector<Checked> whole;     ///< of the campaign as a whole: coverage, power, relations
  std::vector<Checked> examined;  ///< the user's mod and mask
  nlohmann::json examination;     ///< of these; null: there is none
  ReportPage page{"No failure", {{"Note", "A case that fails has its page here."}}, {}};

  bool is_clean() const;

  /// A suite for the corpus, one for the campaign with a test case for each implementation, one for
  /// what the campaign must be as a whole, and one for the examination where there is one.
  RunRecord run_record() const;
};

}  // namespace attn::fuzz
