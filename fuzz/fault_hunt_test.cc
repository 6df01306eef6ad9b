// How a hunt for a planted fault ends, and what is told of it.
#include "fuzz/fault_hunt.h"

#include <gtest/gtest.h>

namespace attn::fuzz {
namespace {

const PlantedFaultInfo fault{PlantedFault::M21, "M21", "it is wrong"};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}
CampaignResult campaign(Outcome seen = Outcome::pass) {
  CampaignResult r;
  r.cases = 12, r.seconds = 0.5;
  if (seen == Outcome::pass) return r;
  r.failure.emplace();
  r.failure->shrunk.seed = 77;
  r.failure->verdict.outcome = seen;
  r.failure->verdict.discrepancy.tensor = "dK";
  return r;
}
Verdict verdict(Outcome outcome) {
  Verdict v;
  v.outcome = outcome;
  v.reason = "two runs differ";
  return v;
}
const std::string line = to_text(campaign(Outcome::discrepancy).failure->shrunk);

TEST(FaultHunt, IsFoundWhereOnlyTheFaultFails) {
  for (const Outcome shipped : {Outcome::pass, Outcome::mistrusted}) {
    const Hunt h = hunt_of(fault, campaign(Outcome::discrepancy), verdict(shipped));
    EXPECT_EQ(h.end, Hunt::End::found);
    EXPECT_EQ(h.replay, "attnproof replay --planted M21 '" + line + "'");
    EXPECT_EQ(to_text(h),
              "M21   found       12 cases   0.50 s  seen in dK            it is wrong\n      " +
                  h.replay + "\n");
  }
  EXPECT_EQ(hunt_of(fault, campaign(Outcome::checker_fault), {}).seen_in, "checker fault");
}

TEST(FaultHunt, SurvivesWhereNothingFails) {
  const Hunt h = hunt_of(fault, campaign(), {});
  EXPECT_EQ(h.end, Hunt::End::survived);
  EXPECT_EQ(to_text(h), "M21   SURVIVED    12 cases   0.50 s  no case failed        it is wrong\n");
}

/// A case on which the shipped kernel fails as well says nothing of the fault: the shipped kernel
/// is to be looked at.
TEST(FaultHunt, IsHiddenWhereTheShippedKernelFailsToo) {
  const Hunt h =
      hunt_of(fault, campaign(Outcome::discrepancy), verdict(Outcome::not_deterministic));
  EXPECT_EQ(h.end, Hunt::End::hidden);
  EXPECT_EQ(h.replay, "attnproof replay '" + line + "'");
  EXPECT_TRUE(has(to_text(h), "HIDDEN"));
  EXPECT_TRUE(has(to_text(h), "the shipped kernel fails too"));
  EXPECT_FALSE(has(to_text(h), "SURVIVED"));
}

TEST(FaultHunt, RecordFailsForEachThatIsNotFound) {
  const Hunt found = hunt_of(fault, campaign(Outcome::discrepancy), {}),
             survived = hunt_of(fault, campaign(), {}),
             hidden =
                 hunt_of(fault, campaign(Outcome::finding), verdict(Outcome::not_deterministic));
  EXPECT_TRUE(record_of({found, found}).is_clean());
  for (const Hunt& h : {survived, hidden}) EXPECT_FALSE(record_of({found, h}).is_clean());
  const RunRecord record = record_of({found, survived, hidden});
  EXPECT_EQ(record.details["planted"], 3);
  EXPECT_EQ(record.details["found"], 1);
  EXPECT_EQ(record.details["slowest"], 12);
  EXPECT_EQ(record.details["seconds"], 1.5);
  EXPECT_EQ(record.details["survivors"], nlohmann::json({"M21"}));
  for (const auto& [n, end] : {std::pair{0, "found"}, {1, "survived"}, {2, "hidden"}})
    EXPECT_EQ(record.details["faults"][n]["end"], end);
  const std::vector<Checked>& checked = record.suites.at(0).checked;
  ASSERT_EQ(checked.size(), 3u);
  EXPECT_EQ(checked[0].name, "M21: it is wrong");
  EXPECT_EQ(checked[0].failure, "");
  EXPECT_EQ(checked[1].failure, "survived 12 cases");
  EXPECT_TRUE(has(checked[2].failure, "the shipped kernel fails too")) << checked[2].failure;
  EXPECT_TRUE(has(checked[2].failure, "two runs differ")) << checked[2].failure;
}

}  // namespace
}  // namespace attn::fuzz
