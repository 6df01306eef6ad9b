// What a fuzz run writes for other programs: whatever failed, both files say so.
#include "fuzz/fuzz_record.h"

#include <gtest/gtest.h>

namespace attn::fuzz {
namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

FuzzRecord clean() {
  FuzzRecord record;
  record.engine = "thread", record.seed = 7, record.shard = {1, 4};
  record.corpus = {{"own.case", ""}}, record.whole = {{"power", ""}};
  record.campaign.cases = 5, record.campaign.seconds = 0.5;
  record.campaign.outcomes = {{Outcome::pass, 2}, {Outcome::mistrusted, 1}, {Outcome::refused, 2}};
  record.campaign.coverage["implementation"]["decode"] = 5;
  return record;
}
nlohmann::json json_of(const FuzzRecord& record) { return to_json(record.run_record()); }
std::string junit_of(const FuzzRecord& record) { return to_junit(record.run_record()); }

TEST(FuzzRecord, OfACleanRun) {
  ASSERT_TRUE(clean().is_clean());
  const nlohmann::json j = json_of(clean());
  for (const auto& [key, value] : {std::pair<const char*, nlohmann::json>{"clean", true},
                                   {"cases", 5},
                                   {"failed", 0},
                                   {"mistrusted", 1},
                                   {"refused", 2},
                                   {"seconds", 0.5},
                                   {"cases_per_second", 10},
                                   {"seed", 7},
                                   {"shard", {{"index", 2}, {"count", 4}}},
                                   {"reasons", nlohmann::json::array()}})
    EXPECT_EQ(j[key], value) << key;
  ASSERT_EQ(j["implementations"].size(), 1u) << "only those that ran";
  EXPECT_EQ(
      j["implementations"][0],
      (nlohmann::json{{"name", "decode"}, {"engine", "thread"}, {"device", "cpu"}, {"cases", 5}}));
  EXPECT_EQ(j["coverage"]["implementation"]["decode"], 5);
  EXPECT_FALSE(j.contains("failure"));
  EXPECT_FALSE(j.contains("examination"));
  const std::string xml = junit_of(clean());
  for (const char* part :
       {R"(<testsuites name="attnproof fuzz">)", R"(<testsuite name="corpus" tests="1")",
        R"(<testsuite name="campaign" tests="1")", R"(<testsuite name="whole" tests="1")",
        R"(name="shard" value="2/4")", R"(name="seed" value="7")",
        R"(name="engine" value="thread")", R"(name="cases" value="5")",
        R"(name="seconds" value="0.5")", R"(name="mistrusted" value="1")",
        R"(name="refused" value="2")", R"(name="decode"/>)", R"(name="own.case"/>)",
        R"(name="power"/>)"})
    EXPECT_TRUE(has(xml, part)) << part << "\n" << xml;
  EXPECT_FALSE(has(xml, "<failure"));
  EXPECT_FALSE(has(xml, "flash_forward")) << "it did not run";
  EXPECT_EQ(clean().run_record().page.title, "No failure");
}

TEST(FuzzRecord, SaysWhatFailedBesideTheCampaign) {
  for (std::vector<Checked> FuzzRecord::*part :
       {&FuzzRecord::corpus, &FuzzRecord::whole, &FuzzRecord::examined}) {
    FuzzRecord record = clean();
    record.examined = {{"mod", ""}};
    (record.*part)[0].failure = "a <bad> thing\nmore";
    EXPECT_FALSE(record.is_clean());
    const nlohmann::json j = json_of(record);
    EXPECT_EQ(j["clean"], false);
    ASSERT_EQ(j["reasons"].size(), 1u);
    EXPECT_EQ(j["reasons"][0]["name"], (record.*part)[0].name);
    EXPECT_EQ(j["reasons"][0]["report"], "a <bad> thing\nmore");
    EXPECT_TRUE(has(junit_of(record), R"(<failure message="a &lt;bad&gt; thing">)"));
  }
}

TEST(FuzzRecord, HoldsTheExamination) {
  FuzzRecord record = clean();
  record.examined = {{"mod", ""}}, record.examination = {{"mod", {{"pairs", 3}}}};
  EXPECT_TRUE(record.is_clean());
  EXPECT_EQ(json_of(record)["examination"]["mod"]["pairs"], 3);
  EXPECT_TRUE(has(junit_of(record), R"(<testsuite name="examination" tests="1" failures="0">)"));
  EXPECT_FALSE(has(junit_of(clean()), "examination"));
}

TEST(FuzzRecord, SaysWhatTheCampaignFound) {
  FuzzRecord record = clean();
  record.campaign.coverage["implementation"]["flash_forward"] = 2;  // which is right
  Failure failure;
  failure.index = 41;
  failure.original.implementation = failure.shrunk.implementation = "decode";
  failure.shrunk.seed = 9;
  failure.verdict.outcome = Outcome::not_deterministic;
  failure.verdict.reason = "two runs differ";
  record.campaign.failure = failure;
  record.campaign.outcomes[Outcome::not_deterministic] = 1;
  record.page = {"the page", {}, {}};
  EXPECT_FALSE(record.is_clean());
  const nlohmann::json j = json_of(record);
  EXPECT_EQ(j["clean"], false);
  EXPECT_EQ(j["failed"], 1);
  EXPECT_EQ(j["failure"]["index"], 41);
  EXPECT_EQ(j["failure"]["outcome"], "not deterministic");
  EXPECT_EQ(j["failure"]["replay"], to_text(failure.shrunk));
  EXPECT_EQ(j["failure"]["original"], to_text(failure.original));
  EXPECT_EQ(j["failure"]["report"], report(failure.shrunk, failure.verdict));
  ASSERT_EQ(j["reasons"].size(), 1u);
  EXPECT_EQ(j["reasons"][0], (nlohmann::json{{"name", "decode"}, {"report", report(failure)}}));
  const std::string xml = junit_of(record);
  EXPECT_TRUE(has(xml, R"(<testsuite name="campaign" tests="2" failures="1">)")) << xml;
  EXPECT_TRUE(has(xml, R"(name="flash_forward"/>)")) << xml;
  EXPECT_TRUE(has(xml, "two runs differ")) << xml;
  EXPECT_EQ(record.run_record().page.title, "the page");
}

/// A case may fail whose row was not counted, as it was the first.
TEST(FuzzRecord, HasTheRowThatFailedWhateverWasCounted) {
  FuzzRecord record = clean();
  record.campaign.failure.emplace();
  record.campaign.failure->original.implementation = "flash_backward";
  record.campaign.failure->verdict.outcome = Outcome::checker_fault;
  EXPECT_EQ(json_of(record)["reasons"][0]["name"], "flash_backward");
}

}  // namespace
}  // namespace attn::fuzz
