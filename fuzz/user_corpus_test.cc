// A folder of the user's own cases: what is read, what is refused, and what a failure adds.
#include "fuzz/user_corpus.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace attn::fuzz {
namespace {

const std::string line =
    "v1 B1 Hq1 Hkv1 Sq1 Skv33 D8 Dv8 bf16; mod: score; mask: true; fill: gaussian; seed: 7; "
    "impl: flash_forward";

class UserCorpus : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "user_corpus.XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder / name) << text;
  }
  std::vector<UserCase> read() const { return read_user_corpus(folder.string()); }
  /// What the message says; empty if the folder is read.
  std::string refusal() const {
    try {
      read();
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return {};
  }
  std::filesystem::path folder;
};

TEST_F(UserCorpus, IsReadInOrderOfNames) {
  EXPECT_TRUE(read().empty());
  write("b.case", "# why\n\n" + line + "\n");
  write("a.case", "  " + line + "; tile: production\r\n# after\n");
  write("notes.txt", "not a case");
  const std::vector<UserCase> cases = read();
  ASSERT_EQ(cases.size(), 2u);
  EXPECT_EQ(cases[0].file, (folder / "a.case").string());
  EXPECT_FALSE(cases[0].value.small_tile);
  EXPECT_EQ(cases[1].file, (folder / "b.case").string());
  EXPECT_EQ(to_text(cases[1].value), line);
}

TEST_F(UserCorpus, IsMadeWhereThereIsNone) {
  const std::filesystem::path made = folder / "a" / "b";
  EXPECT_TRUE(read_user_corpus(made.string()).empty());
  EXPECT_TRUE(std::filesystem::is_directory(made));
  write("file", "");
  folder /= "file";
  EXPECT_NE(refusal().find(folder.string()), std::string::npos) << refusal();
  folder = folder.parent_path();
}

TEST_F(UserCorpus, RefusalsNameFileAndLine) {
  struct Wrong {
    std::string text, expected;
  };
  const Wrong wrongs[] = {{"", ": holds no case"},
                          {"# nothing\n\n", ": holds no case"},
                          {"# one\nv2 B1\n", ":2: "},
                          {line + "\n\n" + line + "\n", ":3: a second case"},
                          {line + "; colour: red\n", ":1: "},
                          {line + " --relation sums\n", ":1: relation: 'sums'"}};
  for (const Wrong& wrong : wrongs) {
    write("wrong.case", wrong.text);
    const std::string expected = (folder / "wrong.case").string() + wrong.expected;
    EXPECT_NE(refusal().find(expected), std::string::npos) << refusal();
  }
}

TEST_F(UserCorpus, AFailureIsAddedOnce) {
  Failure failure;
  failure.shrunk = parse_case(line);
  failure.verdict.outcome = Outcome::not_deterministic;
  failure.verdict.reason = "one\nv1 two";
  const std::filesystem::path path = add_to_user_corpus(folder.string(), failure);
  EXPECT_EQ(path.parent_path(), folder);
  EXPECT_TRUE(path.filename().string().starts_with("not_deterministic_")) << path;
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_EQ(text.str(), "# not deterministic: one v1 two\n" + line + "\n");
  EXPECT_EQ(add_to_user_corpus(folder.string(), failure), path);
  ASSERT_EQ(read().size(), 1u);
  EXPECT_EQ(to_text(read()[0].value), line);
  failure.shrunk.seed = 8;
  EXPECT_NE(add_to_user_corpus(folder.string(), failure), path);
  EXPECT_EQ(read().size(), 2u);
}

TEST_F(UserCorpus, ABrokenRelationIsAddedWithItsName) {
  const Relation& relation = relation_named("ones");
  const Case c = parse_case(line);
  add_to_user_corpus(folder.string(), {&relation, c, c, {Outcome::discrepancy, "O is 2"}});
  ASSERT_EQ(read().size(), 1u);
  EXPECT_EQ(to_text(read()[0].value), line);
  EXPECT_EQ(read()[0].relation, &relation);
  std::stringstream text;
  text << std::ifstream(read()[0].file).rdbuf();
  EXPECT_EQ(text.str(), "# discrepancy: O is 2\n" + line + " --relation ones\n");
  write("plain.case", line);
  EXPECT_EQ(read()[1].relation, nullptr);
}

TEST_F(UserCorpus, ADiscrepancySaysWhatWasWrong) {
  Failure failure;
  failure.shrunk = parse_case(line);
  failure.original = parse_case(line + "; tile: production");
  failure.verdict.outcome = Outcome::discrepancy;
  failure.verdict.reason = "none";
  failure.verdict.discrepancy.element = "O[b0 h0 q0 d1]";
  failure.verdict.discrepancy.got = 0.25, failure.verdict.discrepancy.reference = -0.5;
  failure.verdict.discrepancy.bound = 0.001;
  std::stringstream text;
  text << std::ifstream(add_to_user_corpus(folder.string(), failure)).rdbuf();
  EXPECT_EQ(text.str(),
            "# discrepancy: O[b0 h0 q0 d1] got 0.25, reference -0.5, bound 0.001\n" + line + "\n");
}

TEST_F(UserCorpus, CannotBeAddedToWhereThereIsNoFolder) {
  Failure failure;
  failure.shrunk = parse_case(line);
  failure.verdict.outcome = Outcome::finding;
  EXPECT_THROW(add_to_user_corpus((folder / "none").string(), failure), std::invalid_argument);
}

}  // namespace
}  // namespace attn::fuzz
