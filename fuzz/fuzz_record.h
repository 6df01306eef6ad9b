#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "fuzz/campaign.h"
#include "fuzz/run_record.h"

/// What a run of `attnproof fuzz` came to, for other programs.
namespace attn::fuzz {

/// One run of it.
struct FuzzRecord {
  std::string engine;             ///< where the kernels ran: "warp" or "thread"
  std::uint64_t seed = 1;         ///< of the campaign
  Shard shard;                    ///< the part of the campaign that ran
  std::vector<Checked> corpus;    ///< cases that were replayed first
  CampaignResult campaign;        ///< what ran after these
  std::vector<Checked> whole;     ///< of the campaign as a whole: coverage, power, relations
  std::vector<Checked> examined;  ///< the user's mod and mask
  nlohmann::json examination;     ///< of these; null: there is none
  /// Of the case that failed, or of the campaign that failed as a whole.
  ReportPage page{"No failure", {{"Note", "A case that fails has its page here."}}, {}};

  bool is_clean() const;  ///< nothing failed

  /// A suite for the corpus, one for the campaign with a test case for each implementation, one for
  /// what the campaign must be as a whole, and one for the examination where there is one.
  RunRecord run_record() const;
};

}  // namespace attn::fuzz
