// Campaigns: what they find does not depend on the threads that search, known faults are found and
// shrink to the smallest case that shows them.
#include "fuzz/campaign.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "fuzz/run.h"

namespace attn::fuzz {
namespace {

CampaignOptions of(std::uint64_t cases, int jobs = 2) {
  CampaignOptions o;
  o.cases = cases;
  o.jobs = jobs;
  o.seed = 61;
  return o;
}

TEST(Campaign, DoesNotDependOnTheThreads) {
  const CampaignResult one = run_campaign(of(64, 1)), two = run_campaign(of(64, 2)),
                       five = run_campaign(of(64, 5));
  EXPECT_EQ(one.cases, 64u);
  for (const CampaignResult* other : {&two, &five}) {
    EXPECT_EQ(other->cases, one.cases);
    EXPECT_EQ(other->outcomes, one.outcomes);
    EXPECT_EQ(other->coverage, one.coverage);
  }
  EXPECT_FALSE(one.failure);
  EXPECT_TRUE(one.refused.empty()) << one.refused;
  EXPECT_GT(one.cases_per_second(), 0);
}

/// Threads that are ahead may have failed already: the first failure counts, and nothing after it.
TEST(Campaign, FindsTheSameFirstFailureOnEveryThread) {
  CampaignOptions one = of(2000, 1);
  one.run.planted = PlantedFault::M21;
  one.shrink_seconds = 0.1;
  CampaignOptions five = one;
  five.jobs = 5;
  const CampaignResult a = run_campaign(one), b = run_campaign(five);
  ASSERT_TRUE(a.failure && b.failure);
  EXPECT_EQ(b.failure->index, a.failure->index);
  EXPECT_EQ(to_text(b.failure->original), to_text(a.failure->original));
  EXPECT_EQ(b.cases, a.cases);
  EXPECT_EQ(b.outcomes, a.outcomes);
  EXPECT_EQ(b.coverage, a.coverage);
}

/// Problems so small that the threads draw most of the time, all at once.
TEST(Campaign, DrawsTheSameCasesOnEveryThread) {
  CampaignOptions one = of(1500, 1);
  one.fixed.b = one.fixed.sq = one.fixed.skv = one.fixed.d = one.fixed.dv = 1;
  CampaignOptions four = one;
  four.jobs = 4;
  EXPECT_EQ(run_campaign(four).coverage, run_campaign(one).coverage);
}

TEST(Campaign, StopsAtItsLimits) {
  EXPECT_EQ(run_campaign(of(33)).cases, 33u);
  CampaignOptions timed = of(0);
  timed.seconds = 1e-3;
  int reports = 0;
  const CampaignResult r = run_campaign(timed, [&](const CampaignResult&) { ++reports; });
  EXPECT_GT(r.cases, 0u);
  EXPECT_GE(r.seconds, 1e-3);
  EXPECT_LE(reports, 1);
}

/// 64 cases take some tenths of a second.
TEST(Campaign, TheTimeIsLookedAtBeforeEachCase) {
  CampaignOptions o = of(0, 1);
  o.seconds = 1e-3;
  EXPECT_LT(run_campaign(o).cases, 64u);
}

TEST(Campaign, ShardsTogetherCountWhatTheWholeDoes) {
  const CampaignResult whole = run_campaign(of(70));
  CampaignResult sum;
  for (std::uint64_t index = 0; index < 3; ++index) {
    CampaignOptions o = of(70);
    o.shard = {index, 3};
    const CampaignResult part = run_campaign(o);
    EXPECT_EQ(part.cases, index == 0 ? 24u : 23u);
    EXPECT_EQ(part.cases, cases_of(o.shard, o.cases));
    sum.cases += part.cases;
    for (const auto& [outcome, n] : part.outcomes) sum.outcomes[outcome] += n;
    for (const auto& [dimension, regions] : part.coverage)
      for (const auto& [region, n] : regions) sum.coverage[dimension][region] += n;
  }
  EXPECT_EQ(sum.cases, whole.cases);
  EXPECT_EQ(sum.outcomes, whole.outcomes);
  EXPECT_EQ(sum.coverage, whole.coverage);
}

TEST(Campaign, AShardMayHaveNoCase) {
  CampaignOptions o = of(3);
  o.shard = {3, 5};
  EXPECT_EQ(run_campaign(o).cases, 0u);
}

/// The shard that holds the first failure finds the same one, under the same number.
TEST(Campaign, FailuresOfAShardKeepTheirNumber) {
  CampaignOptions o = of(2000);
  o.run.planted = PlantedFault::M21;
  o.shrink_seconds = 0.1;
  const CampaignResult whole = run_campaign(o);
  ASSERT_TRUE(whole.failure);
  const std::uint64_t number = whole.failure->index;
  EXPECT_EQ(number + 1, whole.cases);
  o.shard = {number % 3, 3};
  const CampaignResult part = run_campaign(o);
  ASSERT_TRUE(part.failure);
  EXPECT_EQ(part.failure->index, number);
  EXPECT_EQ(part.cases, number / 3 + 1);
  EXPECT_EQ(to_text(part.failure->original), to_text(whole.failure->original));
  EXPECT_EQ(to_text(drawn_case({}, o.seed, number).value()), to_text(part.failure->original));
}

TEST(Campaign, CaseNumberNIsTheSameWhateverRanBefore) {
  const std::string seventh = to_text(drawn_case({}, 1, 7).value());
  drawn_case({}, 1, 3);
  EXPECT_EQ(to_text(drawn_case({}, 1, 7).value()), seventh);
  EXPECT_NE(to_text(drawn_case({}, 2, 7).value()), seventh);
}

TEST(Campaign, CountsWhatTheUserMayNotAsk) {
  CampaignOptions o = of(32);
  o.fixed.d = 1000;
  const CampaignResult r = run_campaign(o);
  EXPECT_EQ(r.outcomes.at(Outcome::refused), 32u);
  EXPECT_NE(r.refused.find("1000"), std::string::npos) << r.refused;
  EXPECT_FALSE(r.failure);
}

TEST(Campaign, AModThatYieldsNanIsFoundAndShrunk) {
  CampaignOptions o = of(500);
  o.fixed.mod = parse_case("v1 B1 Hq1 Hkv1 Sq1 Skv1 D1 Dv1 bf16; mod: log(score)").mod;
  o.shrink_seconds = 20;
  const CampaignResult r = run_campaign(o);
  ASSERT_TRUE(r.failure);
  EXPECT_EQ(r.failure->verdict.outcome, Outcome::finding);
  EXPECT_EQ(run_case(r.failure->shrunk).outcome, Outcome::finding);
  EXPECT_LE(r.failure->shrunk.sq * r.failure->shrunk.skv, 2);
}

// ---- planted faults: all of them are hunted by the test fuzz/faults -----------------------------

TEST(PlantedFaults, AreFoundWhereTheShippedKernelIsClean) {
  for (const PlantedFault fault : {PlantedFault::M06, PlantedFault::M21, PlantedFault::M35}) {
    CampaignOptions o = of(2000);
    o.run.planted = fault;
    o.shrink_seconds = 0.3;
    const CampaignResult r = run_campaign(o);
    ASSERT_TRUE(r.failure);
    EXPECT_FALSE(is_failure(run_case(r.failure->original).outcome)) << to_text(r.failure->original);
    EXPECT_FALSE(is_failure(run_case(r.failure->shrunk).outcome)) << to_text(r.failure->shrunk);
    EXPECT_TRUE(is_failure(r.failure->verdict.outcome));
    EXPECT_EQ(r.failure->verdict.target, "warp_planted");
  }
}

/// The build that can commit faults is the shipped kernel while it commits none: here it is asked
/// for one of the other pass.
TEST(PlantedBuild, WithNoFaultGivesTheShippedBits) {
  for (int i = 0; i < 80; ++i) {
    const Case c = drawn_case({}, 62, i).value();
    RunOptions options;
    options.random_schedule = false;
    const RawOutputs shipped = run_raw(c, options);
    const bool forward = implementation_named(c.implementation).pass == Pass::forward;
    options.planted = forward ? PlantedFault::M35 : PlantedFault::M06;
    const RawOutputs other = run_raw(c, options);
    ASSERT_EQ(shipped.target, "warp");
    ASSERT_EQ(other.target, "warp_planted");
    ASSERT_TRUE(shipped == other) << to_text(c);
  }
}

TEST(PlantedBuild, CommitsOnlyWhatIsAskedFor) {
  const Case c = parse_case("v1 B1 Hq1 Hkv1 Sq1 Skv33 D8 Dv8 bf16");
  RunOptions planted;
  planted.planted = PlantedFault::M21;
  EXPECT_TRUE(is_failure(run_case(c, planted).outcome));
  EXPECT_EQ(active_fault(), PlantedFault::none);
  planted.planted = PlantedFault::M26;
  EXPECT_EQ(run_case(c, planted).outcome, Outcome::pass);
}

}  // namespace
}  // namespace attn::fuzz
