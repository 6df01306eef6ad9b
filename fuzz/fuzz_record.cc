#include "fuzz/fuzz_record.h"

#include <fmt/format.h>

namespace attn::fuzz {
namespace {

/// The rows that were drawn, each with what failed in it.
std::vector<Checked> rows_of(const CampaignResult& r) {
  std::vector<Checked> rows;
  for (const auto& [name, cases] : r.coverage.at("implementation")) {
    const bool failed = r.failure && r.failure->original.implementation == name;
    if (cases > 0 || failed) rows.push_back({name, failed ? report(*r.failure) : ""});
  }
  return rows;
}

nlohmann::json details_of(const FuzzRecord& record) {
  const CampaignResult& r = record.campaign;
  nlohmann::json j;
  if (!record.examination.is_null()) j["examination"] = record.examination;
  std::uint64_t failed = 0;
  for (const auto& [outcome, n] : r.outcomes) failed += is_failure(outcome) ? n : 0;
  j["cases"] = r.cases;
  j["failed"] = failed;
  j["mistrusted"] = r.count_of(Outcome::mistrusted);
  j["refused"] = r.count_of(Outcome::refused);
  j["cases_per_second"] = r.cases_per_second();
  j["seconds"] = r.seconds;
  j["seed"] = record.seed;
  j["shard"] = {{"index", record.shard.index + 1}, {"count", record.shard.count}};
  j["implementations"] = nlohmann::json::array();
  for (const auto& [name, cases] : r.coverage.at("implementation"))
    if (cases > 0)
      j["implementations"].push_back(
          {{"name", name}, {"engine", record.engine}, {"device", "cpu"}, {"cases", cases}});
  j["coverage"] = r.coverage;
  if (r.failure)
    j["failure"] = {{"outcome", name_of(r.failure->verdict.outcome)},
                    {"index", r.failure->index},
                    {"replay", to_text(r.failure->shrunk)},
                    {"original", to_text(r.failure->original)},
                    {"report", report(r.failure->shrunk, r.failure->verdict)}};
  return j;
}

Suite campaign_suite(const FuzzRecord& record) {
  const CampaignResult& r = record.campaign;
  return {"campaign",
          rows_of(r),
          {{"seed", fmt::to_string(record.seed)},
           {"shard", fmt::format("{}/{}", record.shard.index + 1, record.shard.count)},
           {"engine", record.engine},
           {"cases", fmt::to_string(r.cases)},
           {"seconds", fmt::to_string(r.seconds)},
           {"mistrusted", fmt::to_string(r.count_of(Outcome::mistrusted))},
           {"refused", fmt::to_string(r.count_of(Outcome::refused))}}};
}

}  // namespace

bool FuzzRecord::is_clean() const {
  return all_right(corpus) && all_right(whole) && all_right(examined) && !campaign.failure;
}

RunRecord FuzzRecord::run_record() const {
  RunRecord record{"attnproof fuzz",
                   {{"corpus", corpus}, campaign_suite(*this), {"whole", whole}},
                   details_of(*this),
                   page};
  if (!examined.empty()) record.suites.push_back({"examination", examined});
  return record;
}

}  // namespace attn::fuzz
