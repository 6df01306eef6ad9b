// What a fuzz run writes for other programs: whatever failed, both files say so.
#include "fuzz/fuzz_record.h"

#include <gtest/gtest.h>

namespace attn::fuzz {
namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

FuzzRecord clean() {
  FuzzRecord record{"warp", 7, {1, 4}, {{"own.case", ""}}, {}, {{"power", ""}}, {}};
  record.campaign.cases = 5;
  record.campaign.outcomes = {{Outcome::pass, 4}, {Outcome::mistrusted, 1}};
  record.campaign.coverage["implementation"]["decode"] = 5;
  return record;
}

TEST(FuzzRecord, OfACleanRun) {
  ASSERT_TRUE(clean().is_clean());
  const nlohmann::json j = to_json(clean());
  EXPECT_EQ(j["clean"], true);
  EXPECT_EQ(j["cases"], 5);
  EXPECT_EQ(j["failed"], 0);
  EXPECT_EQ(j["mistrusted"], 1);
  EXPECT_EQ(j["shard"]["index"], 2);
  EXPECT_EQ(j["shard"]["count"], 4);
  EXPECT_TRUE(j["reasons"].empty());
  EXPECT_FALSE(j.contains("failure"));
  const std::string xml = to_junit(clean());
  for (const char* part :
       {R"(name="shard" value="2/4")", R"(name="seed" value="7")", R"(name="mistrusted" value="1")",
        R"(name="decode"/>)", R"(name="own.case"/>)", R"(name="power"/>)"})
    EXPECT_TRUE(has(xml, part)) << part << "\n" << xml;
  EXPECT_FALSE(has(xml, "<failure"));
}

TEST(FuzzRecord, SaysWhatFailedBesideTheCampaign) {
  for (std::vector<Checked> FuzzRecord::*part : {&FuzzRecord::corpus, &FuzzRecord::whole}) {
    FuzzRecord record = clean();
    (record.*part)[0].failure = "a <bad> thing\nmore";
    EXPECT_FALSE(record.is_clean());
    const nlohmann::json j = to_json(record);
    EXPECT_EQ(j["clean"], false);
    ASSERT_EQ(j["reasons"].size(), 1u);
    EXPECT_EQ(j["reasons"][0]["name"], (record.*part)[0].name);
    EXPECT_EQ(j["reasons"][0]["report"], "a <bad> thing\nmore");
    EXPECT_TRUE(has(to_junit(record), R"(<failure message="a &lt;bad&gt; thing">)"));
  }
}

TEST(FuzzRecord, SaysWhatTheCampaignFound) {
  FuzzRecord record = clean();
  Failure failure;
  failure.index = 41;
  failure.original.implementation = failure.shrunk.implementation = "decode";
  failure.shrunk.seed = 9;
  failure.verdict.outcome = Outcome::not_deterministic;
  failure.verdict.reason = "two runs differ";
  record.campaign.failure = failure;
  record.campaign.outcomes[Outcome::not_deterministic] = 1;
  EXPECT_FALSE(record.is_clean());
  const nlohmann::json j = to_json(record);
  EXPECT_EQ(j["clean"], false);
  EXPECT_EQ(j["failed"], 1);
  EXPECT_EQ(j["failure"]["index"], 41);
  EXPECT_EQ(j["failure"]["outcome"], "not deterministic");
  EXPECT_EQ(j["failure"]["replay"], to_text(failure.shrunk));
  EXPECT_EQ(j["failure"]["original"], to_text(failure.original));
  const std::string xml = to_junit(record);
  EXPECT_TRUE(has(xml, R"(<testsuite name="campaign" tests="1" failures="1">)")) << xml;
  EXPECT_TRUE(has(xml, "two runs differ")) << xml;
}

}  // namespace
}  // namespace attn::fuzz
