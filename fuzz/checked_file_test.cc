// What `attnproof check` says of a file: what is wrong, the planes of its errors, how to check it
// again.
#include "fuzz/checked_file.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "fuzz/file_fixtures.h"

namespace attn::fuzz {
namespace {

using Arrays = std::vector<NewArray>;

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class CheckedFiles : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "checked file.XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder = name;
    arguments.path = (folder / "run.safetensors").string();
    arguments.description.mask = "kv <= q + 30";
    arguments.html = "wanted";
    dumped = small_inputs();
    outputs = solved(read_problem(file_of(dumped), arguments.description));
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  /// The file of these outputs, with the inputs.
  CheckedFile check() {
    Arrays all = dumped;
    all.insert(all.end(), outputs.begin(), outputs.end());
    write_safetensors(arguments.path, all, {});
    return check_file(arguments.path, arguments);
  }
  NewArray& output(const std::string& name) {
    for (NewArray& array : outputs)
      if (array.name == name) return array;
    throw std::out_of_range(name);
  }
  void spoil(const std::string& name, std::size_t n, double x) {
    const std::vector<std::byte> bytes = bytes_as(output(name).dtype, {x});
    std::copy(bytes.begin(), bytes.end(), output(name).bytes.begin() + n * bytes.size());
  }

  std::filesystem::path folder;
  CheckArguments arguments;
  Arrays dumped, outputs;
};

TEST_F(CheckedFiles, ThatAreRightHavePlanesWithinTheBounds) {
  const CheckedFile x = check();
  EXPECT_EQ(x.outcome, "pass");
  EXPECT_FALSE(x.is_failure);
  EXPECT_EQ(report(x, false), "pass         run.safetensors\n");
  ASSERT_EQ(x.planes.size(), 2u * 4u * 4u);  // O, pairs, LSE and row max of four heads, two entries
  for (const HeatMap& map : x.planes) {
    EXPECT_LE(worst_of(map), 1) << map.title;
    EXPECT_EQ(map.tile_rows, 0) << "nobody knows the tiles of that program";
    EXPECT_EQ(map.tile_columns, 0);
  }
}

TEST_F(CheckedFiles, ThatAreWrongBeginWithTheWorstPlane) {
  spoil("o", 3 * 40 * 12 + 5 * 12 + 7, 100);  // [b0 h3 q5 d7]
  const CheckedFile x = check();
  EXPECT_EQ(x.outcome, "discrepancy");
  EXPECT_TRUE(x.is_failure);
  EXPECT_EQ(x.planes[0].title, "O[b0 h3]");
  EXPECT_GT(x.planes[0].at(5, 7), 1);
  EXPECT_EQ(x.planes[1].title, "pairs[b0 h3]");
  for (int kv = 0; kv < 70; ++kv)
    EXPECT_EQ(x.planes[1].at(5, kv), kv <= 35 ? worst_of(x.planes[0]) : nothing_here) << kv;
  EXPECT_LE(worst_of(x.planes[2]), 1);
  for (const char* part : {"discrepancy  run.safetensors   O[b0 h3 q5 d7] got 100", "\nproved  ",
                           "\nwhere  ", "\nlooks like  ", "\nagain  "})
    EXPECT_TRUE(has(report(x), part)) << part;
  EXPECT_FALSE(has(report(x, false), "where"));
  const nlohmann::json j = to_json(x);
  EXPECT_EQ(j["element"], "O[b0 h3 q5 d7]");
  EXPECT_EQ(j["got"], "100");
  EXPECT_EQ(j["outcome"], "discrepancy");
}

TEST_F(CheckedFiles, HavePairsBesideAnOutputOfQueriesOnly) {
  arguments.description.mask = "true";
  dumped.push_back(random_array("d_o", "BF16", {2, 4, 40, 12}));
  outputs = solved(read_problem(file_of(dumped), arguments.description));
  outputs = {output("dk")};
  for (const HeatMap& map : check().planes) EXPECT_TRUE(map.title.starts_with("dK")) << map.title;
}

TEST_F(CheckedFiles, HaveNoPlanesUnlessAPageIsWanted) {
  arguments.html.clear();
  EXPECT_TRUE(check().planes.empty());
}

TEST_F(CheckedFiles, AreCheckedAgainWithTheSameOptions) {
  CheckedFile x = check();
  EXPECT_EQ(x.again, "attnproof check '" + arguments.path + "' --mask 'kv <= q + 30'");
  arguments.rounds = "fp32", arguments.no_lse = true, arguments.description.mask = "true";
  arguments.description.mod = "score + slope[h]", arguments.description.scale = 0.25;
  arguments.description.tables = {"slope[Hq]=alibi"};
  x = check();
  EXPECT_EQ(x.again, "attnproof check '" + arguments.path +
                         "' --rounds fp32 --no-lse --mod 'score + slope[h]' --table "
                         "'slope[Hq]=alibi' --scale 0.25");
  arguments.description = {};
  arguments.description.mask = "sliding_window", arguments.description.parameters = {"width=9"};
  EXPECT_TRUE(has(check().again, " --mask sliding_window --param width=9"));
}

/// An emitted case says of itself what it is.
class EmittedFiles : public CheckedFiles {
 protected:
  void SetUp() override {
    CheckedFiles::SetUp();
    write_safetensors(arguments.path, dumped,
                      {{file_version_key, file_version},
                       {"case", "v1 the case"},
                       {"mod", "score"},
                       {"mask", "kv <= q + 30"},
                       {"scale", "0.25"}});
    arguments.description = {};
  }
  CheckedFile check_written() {
    if (!outputs.empty()) write_safetensors((folder / "run.out.safetensors").string(), outputs, {});
    return check_file(arguments.path, arguments);
  }
};

TEST_F(EmittedFiles, AreJudgedByTheOutputsBesideThem) {
  const CheckedFile x = check_written();
  EXPECT_EQ(x.name, "run");
  EXPECT_EQ(x.outcome, "pass") << x.reason;
  EXPECT_EQ(x.case_line, "v1 the case");
  EXPECT_TRUE(has(report(x), "case         v1 the case\n"));
  EXPECT_FALSE(has(report(x, false), "case"));
  EXPECT_EQ(to_json(x)["case"], "v1 the case");
}

TEST_F(EmittedFiles, FailWhereOutputsAreMissing) {
  std::erase_if(outputs, [](const NewArray& a) { return a.name == "lse"; });
  CheckedFile x = check_written();
  EXPECT_EQ(x.outcome, "missing");
  EXPECT_TRUE(x.is_failure);
  EXPECT_EQ(x.reason, "no lse was written");
  EXPECT_EQ(to_json(x)["reason"], "no lse was written");
  arguments.no_lse = true;
  EXPECT_EQ(check_written().outcome, "pass");
  arguments.no_lse = false;
  spoil("o", 0, 100);
  x = check_written();
  EXPECT_EQ(x.outcome, "discrepancy");
  EXPECT_TRUE(has(report(x), "; no lse was written"));
  std::filesystem::remove(folder / "run.out.safetensors");
  outputs.clear();
  x = check_written();
  EXPECT_EQ(x.outcome, "missing");
  EXPECT_TRUE(x.is_failure);
  EXPECT_TRUE(has(x.reason, "no file ")) << x.reason;
}

TEST_F(EmittedFiles, FailWhereOutputsCannotBeRead) {
  outputs = {random_array("o", "F32", {1, 1, 1, 1})};
  const CheckedFile x = check_written();
  EXPECT_EQ(x.outcome, "unreadable");
  EXPECT_TRUE(x.is_failure);
  EXPECT_TRUE(has(x.reason, "expected BF16 [2, 4, 40, 12]")) << x.reason;
}

TEST_F(EmittedFiles, TakeNoDescription) {
  arguments.description.mask = "causal";
  EXPECT_THROW(check_written(), std::invalid_argument);
}

}  // namespace
}  // namespace attn::fuzz
