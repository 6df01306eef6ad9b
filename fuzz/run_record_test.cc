// The record of a run: there from the start, and true at each time.
#include "fuzz/run_record.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace attn::fuzz {
namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}
std::string text_of(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class Recorded : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "run_record.XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder = name;
    files = {name + "/a.json", name + "/a.xml", name + "/a.html"};
    record.title = "attnproof test";
    record.suites = {{"one", {{"right", ""}}}, {"two", {}}};
    record.details["seed"] = 7;
    record.page = {"the page", {}, {}};
  }
  void TearDown() override { std::filesystem::remove_all(folder); }
  int run(const std::function<void()>& work) {
    return recorded(
        files, [&] { return record; }, work);
  }
  /// All three files say why the run is not clean.
  void expect_reason(const std::string& why) const {
    const nlohmann::json j = nlohmann::json::parse(text_of(files.json));
    EXPECT_EQ(j["clean"], false);
    ASSERT_EQ(j["reasons"].size(), 1u);
    EXPECT_EQ(j["reasons"][0], (nlohmann::json{{"name", "run"}, {"report", why}}));
    EXPECT_EQ(j["seed"], 7);
    EXPECT_TRUE(has(text_of(files.junit), "<failure message=\"" + why + "\">"));
    EXPECT_TRUE(has(text_of(files.html), "<h1>attnproof test: not finished</h1>"));
    EXPECT_TRUE(has(text_of(files.html), why));
  }

  std::filesystem::path folder;
  RecordFiles files;
  RunRecord record;
};

TEST_F(Recorded, SaysNotFinishedWhileItRuns) {
  for (const std::string& file : {files.json, files.junit, files.html})
    std::ofstream(file) << "old";
  EXPECT_EQ(run([&] { expect_reason("not finished"); }), 0);
}

TEST_F(Recorded, SaysInTheEndWhatItIsThen) {
  const auto work = [&] { record.details["seed"] = 8; };
  EXPECT_EQ(run(work), 0);
  nlohmann::json j = nlohmann::json::parse(text_of(files.json));
  EXPECT_EQ(j,
            (nlohmann::json{{"clean", true}, {"reasons", nlohmann::json::array()}, {"seed", 8}}));
  EXPECT_TRUE(has(text_of(files.junit), "name=\"right\"/>"));
  EXPECT_FALSE(has(text_of(files.junit), "<failure"));
  EXPECT_TRUE(has(text_of(files.html), "<h1>the page</h1>"));

  EXPECT_EQ(run([&] { record.suites[1].checked = {{"left", "it is wrong"}}; }), 1);
  j = nlohmann::json::parse(text_of(files.json));
  EXPECT_EQ(j["clean"], false);
  EXPECT_EQ(j["reasons"], nlohmann::json::array({{{"name", "left"}, {"report", "it is wrong"}}}));
  EXPECT_TRUE(has(text_of(files.junit), "it is wrong"));
}

TEST_F(Recorded, SaysByWhichErrorItEnded) {
  EXPECT_THROW(run([] { throw std::invalid_argument("no such mod"); }), std::invalid_argument);
  expect_reason("ended by an error: no such mod");
  EXPECT_THROW(run([] { throw std::runtime_error("broken"); }), std::runtime_error);
  expect_reason("ended by an error: broken");
}

TEST_F(Recorded, RefusesAPathBeforeTheWork) {
  for (std::string RecordFiles::*file :
       {&RecordFiles::json, &RecordFiles::junit, &RecordFiles::html}) {
    files = {};
    files.*file = (folder / "no" / "such").string();
    bool worked = false;
    EXPECT_THROW(run([&] { worked = true; }), std::invalid_argument);
    EXPECT_FALSE(worked);
  }
}

TEST_F(Recorded, WritesOnlyWhatWasAskedFor) {
  files = {};
  EXPECT_EQ(run([] {}), 0);
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

TEST_F(Recorded, IsJsonWhateverTheTextsHold) {
  EXPECT_EQ(run([&] { record.suites[1].checked = {{"left", "a\xff"}}; }), 1);
  EXPECT_TRUE(nlohmann::json::accept(text_of(files.json)));
}

TEST(RunRecord, GivesEveryReason) {
  const RunRecord record{"t", {{"one", {{"a", "x"}, {"b", ""}}}, {"two", {{"c", "y"}}}}};
  EXPECT_FALSE(record.is_clean());
  EXPECT_EQ(to_json(record)["reasons"], nlohmann::json::array({{{"name", "a"}, {"report", "x"}},
                                                               {{"name", "c"}, {"report", "y"}}}));
}

TEST(RunRecord, BoundsHaveNoPowerWhereOverAFifthIsMistrusted) {
  EXPECT_EQ(power_of_bounds(0, 0).failure, "");
  EXPECT_EQ(power_of_bounds(2, 10).failure, "");
  EXPECT_TRUE(has(power_of_bounds(3, 10).failure, "30 % mistrusted, at most 20 %"));
  EXPECT_TRUE(has(power_of_bounds(1, 1).failure, "100 % mistrusted"));
}

}  // namespace
}  // namespace attn::fuzz
