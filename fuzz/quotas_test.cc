// The quotas: what a campaign must have drawn.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "fuzz/campaign.h"
#include "fuzz/coverage.h"

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

TEST(Quotas, KnowEveryRegionThatIsDrawnBeforeItIs) {
  const Coverage none = empty_coverage();
  for (const auto& [dimension, regions] : of_draws(3000))
    for (const auto& [region, cases] : regions)
      EXPECT_TRUE(none.contains(dimension) && none.at(dimension).contains(region))
          << dimension << " " << region;
  EXPECT_EQ(none.at("fill").at("denormal"), 0u);
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

TEST(Quotas, AreMetByTheLeastThatTheyAsk) {
  Coverage coverage = of_draws(6000);
  coverage["spans"]["two query and two key tiles"] = 1800;
  EXPECT_EQ(unmet(coverage, {}), std::vector<std::string>{});
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

/// So many cases of one implementation, each counted in every region but those of `empty`.
Coverage but_for(const std::string& implementation, std::uint64_t cases, const std::string& empty) {
  Coverage coverage = empty_coverage();
  for (auto& [dimension, regions] : coverage)
    for (auto& [region, n] : regions) n = dimension == empty ? 0 : cases;
  for (auto& [name, n] : coverage["implementation"]) n = name == implementation ? cases : 0;
  return coverage;
}

TEST(Quotas, AreAskedOfTheRowsThatCanFillThem) {
  const std::map<std::string, std::vector<std::string>> with{
      {"sequences", {"packed_forward", "packed_backward"}},
      {"splits", {"decode", "decode_paged"}},
      {"page", {"decode_paged"}},
      {"blocks", {"block_sparse_forward", "block_sparse_backward"}},
      {"dLSE", {"flash_backward", "packed_backward", "block_sparse_backward"}}};
  for (const auto& [dimension, able] : with)
    for (const Implementation& row : shipped_implementations()) {
      const std::string name(row.name);
      Fixed fixed;
      fixed.implementations = {name};
      const bool asked = std::find(able.begin(), able.end(), name) != able.end();
      EXPECT_EQ(!unmet(but_for(name, 10000, dimension), fixed).empty(), asked)
          << dimension << " " << name;
    }
  for (const Implementation& row : shipped_implementations()) {
    Fixed fixed;
    fixed.implementations = {std::string(row.name)};
    const std::vector<std::string> missed =
        unmet(but_for(fixed.implementations[0], 10000, "dtype"), fixed);
    std::string types;
    for (const std::string& line : missed) types += line.substr(0, line.find(':')) + ", ";
    EXPECT_EQ(types, row.name == "flash_forward_fp32" || row.name == "flash_forward_tf32"
                         ? "dtype fp32, "
                         : "dtype bf16, dtype fp16, ")
        << row.name;
    EXPECT_EQ(!unmet(but_for(fixed.implementations[0], 10000, "row max"), fixed).empty(),
              row.pass == Pass::forward)
        << row.name;
    Coverage coverage = but_for(fixed.implementations[0], 10000, "");
    coverage["layout"]["shared_kv"] = 0;
    EXPECT_EQ(!unmet(coverage, fixed).empty(), row.sequences == Sequences::dense) << row.name;
  }
}

TEST(Quotas, AreNotAskedOfWhatTheUserFixed) {
  struct Given {
    const char* dimension;
    void (*fix)(Fixed&);
  };
  const Given all[] = {{"heads", [](Fixed& f) { f.b = 1; }},
                       {"heads", [](Fixed& f) { f.hq = 1; }},
                       {"heads", [](Fixed& f) { f.hkv = 1; }},
                       {"heads", [](Fixed& f) { f.sq = 1; }},
                       {"heads", [](Fixed& f) { f.skv = 1; }},
                       {"heads", [](Fixed& f) { f.d = 8; }},
                       {"heads", [](Fixed& f) { f.dv = 8; }},
                       {"heads", [](Fixed& f) { f.mod_type = "my::Mod"; }},
                       {"heads", [](Fixed& f) { f.mask_type = "my::Mask"; }},
                       {"dtype", [](Fixed& f) { f.dtype = DType::bf16; }},
                       {"mod size", [](Fixed& f) { f.mod = Case().mod; }},
                       {"mod size", [](Fixed& f) { f.mod_type = "my::Mod"; }},
                       {"mask size", [](Fixed& f) { f.mask = Case().mask; }},
                       {"mask size", [](Fixed& f) { f.mask_type = "my::Mask"; }}};
  for (const Given& given : all) {
    const Coverage coverage = but_for("flash_forward", 10000, given.dimension);
    Fixed fixed;
    fixed.implementations = {"flash_forward"};
    EXPECT_FALSE(unmet(coverage, fixed).empty()) << given.dimension;
    given.fix(fixed);
    EXPECT_EQ(unmet(coverage, fixed), std::vector<std::string>{}) << given.dimension;
  }
  EXPECT_EQ(unmet(but_for("flash_forward", 10000, ""), {}).size(),
            shipped_implementations().size() - 1)
      << "the other implementations";
}

/// n KL(0.003 || 0.012) reaches log 10^9 = 20.7 between n = 4240 and 4250.
TEST(Quotas, AreAskedOfCampaignsThatAreLongEnough) {
  Fixed fixed;
  fixed.implementations = {"flash_forward"};
  const auto asked = [&](std::uint64_t n) {
    Coverage coverage = but_for("flash_forward", n, "");
    coverage["fill"]["ties"] = 0;
    return !unmet(coverage, fixed).empty();
  };
  EXPECT_FALSE(asked(4240));
  EXPECT_TRUE(asked(4250));
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
