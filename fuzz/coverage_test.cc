// What is counted, and the quotas: what a campaign must have drawn.
#include "fuzz/coverage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "fuzz/campaign.h"
#include "fuzz/case_sequences.h"

namespace attn::fuzz {
namespace {

Coverage of_draws(int cases, const Fixed& fixed = {}) {
  Coverage coverage = empty_coverage();
  for (int i = 0; i < cases; ++i) {
    Verdict verdict;  // as if every row were of every kind: what runs is another test's matter
    verdict.rows = {1, 1, 1, 1, 1, 1, 1};
    count(coverage, drawn_case(fixed, 71, i).value(), verdict);
  }
  return coverage;
}
Coverage of(const std::string& line, const RowCounts& rows = {}) {
  Coverage coverage = empty_coverage();
  Verdict verdict;
  verdict.rows = rows;
  count(coverage, parse_case(line), verdict);
  return coverage;
}
std::uint64_t cases_of(const Coverage& coverage, const std::string& dimension,
                       const std::string& region) {
  return coverage.at(dimension).at(region);
}

TEST(Coverage, ListsEveryRegionThatIsDrawnBeforeItIs) {
  const Coverage none = empty_coverage();
  for (const auto& [dimension, regions] : of_draws(3000))
    for (const auto& [region, cases] : regions)
      EXPECT_TRUE(none.contains(dimension) && none.at(dimension).contains(region))
          << dimension << " " << region;
  EXPECT_EQ(cases_of(none, "fill", "denormal"), 0u);
}

TEST(Coverage, CountsWhatACaseIs) {
  const Coverage c =
      of("v1 B1 Hq6 Hkv2 Sq65 Skv33 D16 Dv8 fp16; mod: score > 1 ? -score : log(2.0) + score * "
         "m[b, h, "
         "q, kv];"
         " table: m[B,1,1,Skv]=uniform(1,2); mask: kv <= q; sink: on; fill: ties");
  for (const auto& [dimension, region] : {std::pair{"spans", "two query and two key tiles"},
                                          {"heads", "GQA"},
                                          {"group", "3"},
                                          {"queries", "65..128"},
                                          {"keys", "33..64"},
                                          {"lengths", "Sq > Skv"},
                                          {"sink", "given"},
                                          {"head size", "D != Dv"},
                                          {"operation", "negate"},
                                          {"operation", "log"},
                                          {"fill", "ties"},
                                          {"operation", "<="},
                                          {"table rank", "4"},
                                          {"table by", "b kv"},
                                          {"table type", "real"},
                                          {"jump of the mod", "branch on the score"},
                                          {"derivative", "changes sign"}})
    EXPECT_EQ(cases_of(c, dimension, region), 1u) << dimension << " " << region;
  EXPECT_EQ(cases_of(c, "operation", "-"), 0u) << "of one operand only";
}

TEST(Coverage, TellsHowTheDerivativeBehaves) {
  const std::string before = "v1 B1 Hq1 Hkv1 Sq4 Skv4 D8 Dv8 bf16; mod: ";
  EXPECT_EQ(cases_of(of(before + "2 * score"), "derivative", "has one sign"), 1u);
  EXPECT_EQ(cases_of(of(before + "abs(score - 1)"), "derivative", "changes sign"), 1u);
  EXPECT_EQ(cases_of(of(before + "max(score, 0)"), "derivative", "vanishes"), 1u);
  EXPECT_EQ(cases_of(of(before + "kv >= 0 ? score : abs(score)"), "derivative", "has one sign"),
            1u);
}

TEST(Coverage, CountsRowsByWhatTheyProvedToBe) {
  RowCounts rows;
  rows.empty = 3, rows.one_key = 1;
  const Coverage c = of("v1 B1 Hq1 Hkv1 Sq4 Skv4 D8 Dv8 bf16", rows);
  EXPECT_EQ(cases_of(c, "rows", "some empty"), 1u);
  EXPECT_EQ(cases_of(c, "rows", "some of one key"), 1u);
  EXPECT_EQ(cases_of(c, "rows", "some general"), 0u);
}

/// Rows of one key, of both passes, as the bounds tell them.
TEST(Coverage, RowsOfOneKeyAreCountedByBothPasses) {
  for (const char* implementation : {"flash_forward", "flash_backward"}) {
    const Case c = parse_case(
        std::string(
            "v1 B1 Hq1 Hkv1 Sq9 Skv5 D8 Dv8 bf16; mask: q < 3 ? kv == q : kv < q - 3; impl: ") +
        implementation);
    const Verdict v = run_case(c);  // rows 0..2: one key each; 3: none; 4: one; 5..8: two to five
    EXPECT_EQ(v.rows.one_key, 4) << implementation;
    EXPECT_EQ(v.rows.empty, 1) << implementation;
  }
}

/// Decode has the rows of all heads of a group in one tile, packed sequences are each their own.
TEST(Coverage, SpansTilesOfOneSequenceOnly) {
  const auto spans = [](const std::string& line) { return spans_tiles(parse_case(line)); };
  const std::string b2 = "v1 B2 Hq1 Hkv1 Sq65 Skv33 D8 Dv8 bf16; impl: packed_forward; qlens: ";
  EXPECT_TRUE(spans(b2 + "65,1; kvlens: 33,1"));
  EXPECT_FALSE(spans(b2 + "65,1; kvlens: 1,33"));
  EXPECT_FALSE(spans(b2 + "65,64; kvlens: 32,33"));
  const std::string decode = "v1 B1 Hq8 Hkv1 Sq9 Skv40 D8 Dv8 bf16; impl: decode; kvlens: ";
  EXPECT_TRUE(spans(decode + "33"));
  EXPECT_FALSE(spans(decode + "32"));
  EXPECT_FALSE(spans("v1 B1 Hq8 Hkv1 Sq8 Skv40 D8 Dv8 bf16; impl: decode"));
  EXPECT_FALSE(spans("v1 B1 Hq1 Hkv1 Sq65 Skv33 D8 Dv8 bf16; tile: production"));
}

/// The rates that the rule for long campaigns rests on are those of the generators, whatever kind
/// of implementation is asked for.
TEST(Quotas, AreMetByTheGenerators) {
  EXPECT_EQ(unmet(of_draws(20000), {}), std::vector<std::string>{});
  for (const char* name : {"flash_forward", "packed_backward", "decode_paged"}) {
    Fixed fixed;
    fixed.implementations = {name};
    EXPECT_EQ(unmet(of_draws(6000, fixed), fixed), std::vector<std::string>{}) << name;
  }
}

TEST(Quotas, NameWhatIsMissed) {
  Coverage coverage = of_draws(6000);
  coverage["fill"]["denormal"] = 0;
  coverage["spans"]["two query and two key tiles"] = 1799;
  const std::vector<std::string> missed = unmet(coverage, {});
  ASSERT_EQ(missed.size(), 2u);
  EXPECT_EQ(missed[0].substr(0, 30), "fill denormal: 0 of 6000 cases");
  EXPECT_EQ(missed[1], "spans two query and two key tiles: 1799 of 6000 cases, expected 1800");
}

TEST(Quotas, AreNotAskedOfShortCampaignsNorOfWhatIsFixed) {
  EXPECT_EQ(unmet(of_draws(10), {}), std::vector<std::string>{});
  Coverage coverage = of_draws(6000);
  for (auto& [region, cases] : coverage["spans"]) cases = 0;
  for (auto& [region, cases] : coverage["mask size"]) cases = 0;
  Fixed fixed;
  fixed.sq = 5;
  fixed.mask = Case().mask;
  EXPECT_EQ(unmet(coverage, fixed), std::vector<std::string>{});
  fixed.sq.reset();
  EXPECT_EQ(unmet(coverage, fixed).size(), 1u);
}

/// Every region has a quota, but for those that are a matter of course.
TEST(Quotas, AreOfEveryDimension) {
  for (const auto& [dimension, regions] : empty_coverage())
    EXPECT_TRUE(std::any_of(quotas().begin(), quotas().end(), [&d = dimension](const Quota& q) {
      return q.dimension == d;
    })) << dimension;
  for (const Quota& q : quotas()) {
    ASSERT_TRUE(empty_coverage().contains(q.dimension)) << q.dimension;
    EXPECT_TRUE(*q.region == '*' || empty_coverage().at(q.dimension).contains(q.region))
        << q.dimension << " " << q.region;
    EXPECT_LT(q.least, q.rate);
  }
}

}  // namespace
}  // namespace attn::fuzz
