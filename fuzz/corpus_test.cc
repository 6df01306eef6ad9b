#include "fuzz/corpus.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iostream>
#include <sstream>
#include <stdexcept>

#include "fuzz/run.h"

namespace attn::fuzz {
namespace {

constexpr const char* case_line =
    "v1 B1 Hq1 Hkv1 Sq4 Skv4 D8 Dv8 bf16; mod: score; mask: true; fill: gaussian; seed: 1; "
    "impl: flash_forward";

/// The lines of the file that ships; tests run in the root of the repository.
std::vector<std::string> shipped_lines() {
  std::ifstream file("fuzz/corpus/bugs.txt");
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

/// The message of parse_corpus; empty if it accepts the text.
std::string refusal(const std::string& text) {
  try {
    parse_corpus(text);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return {};
}

TEST(CorpusFormat, HeadingsCasesAndReasons) {
  const std::string line(case_line);
  const auto entries = parse_corpus("# B001 some/where #1: two\n" + line + "\n\n" + line +
                                    "\n# B002 else/where #2: one\nwaits: paper\n");
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[0].id, "B001");
  EXPECT_EQ(entries[0].source, "some/where #1: two");
  EXPECT_EQ(entries[0].line, line);
  EXPECT_EQ(entries[0].waits, "");
  EXPECT_EQ(entries[1].id, "B001");
  EXPECT_EQ(entries[1].source, "some/where #1: two");
  EXPECT_EQ(entries[1].line, line);
  EXPECT_EQ(entries[2].id, "B002");
  EXPECT_EQ(entries[2].source, "else/where #2: one");
  EXPECT_EQ(entries[2].line, "");
  EXPECT_EQ(entries[2].waits, "paper");
  EXPECT_TRUE(parse_corpus("").empty());
}

TEST(CorpusFormat, ErrorsNameTheLine) {
  struct Wrong {
    std::string text;
    std::string line;
    std::string expected;
  };
  const std::string heading = "# B001 some/where #1: what\n", good(case_line);
  const Wrong wrongs[] = {
      {good, "corpus line 1:", "a heading"},
      {"\nwaits: paper", "corpus line 2:", "a heading"},
      {"# B001", "corpus line 1:", "'# ID source: what'"},
      {heading + "# B002 some/where #2: what\n" + good, "corpus line 2:", "heading before it"},
      {heading + good + "\n\n" + heading, "corpus line 4:", "last heading"},
      {heading + "\nv2" + good.substr(2), "corpus line 3:", "'v1'"},
      {heading + good + "\n" + good + "; colour: red", "corpus line 3:", "colour"},
      {heading + "waiting for paper", "corpus line 2:", "a case"},
  };
  for (const Wrong& wrong : wrongs) {
    const std::string message = refusal(wrong.text);
    EXPECT_NE(message.find(wrong.line), std::string::npos) << wrong.text << "\n-> " << message;
    EXPECT_NE(message.find(wrong.expected), std::string::npos) << wrong.text << "\n-> " << message;
  }
}

TEST(Corpus, IsTheFileThatShips) {
  const std::vector<std::string> lines = shipped_lines();
  ASSERT_FALSE(lines.empty()) << "fuzz/corpus/bugs.txt cannot be read from here";
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  const std::vector<CorpusEntry> entries = parse_corpus(text);
  ASSERT_EQ(corpus().size(), entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    EXPECT_EQ(corpus()[i].id, entries[i].id);
    EXPECT_EQ(corpus()[i].source, entries[i].source);
    EXPECT_EQ(corpus()[i].line, entries[i].line);
    EXPECT_EQ(corpus()[i].waits, entries[i].waits);
  }
}

TEST(Corpus, IdsAscend) {
  std::string before;
  for (const std::string& line : shipped_lines()) {
    if (!line.starts_with("# ")) continue;
    const std::string id = line.substr(2, line.find(' ', 2) - 2);
    EXPECT_EQ(id.size(), 4u) << line;
    EXPECT_EQ(id.find_first_not_of("0123456789", 1), std::string::npos) << line;
    EXPECT_LT(before, id);
    EXPECT_NE(line.find(" #"), std::string::npos) << "no number of the report: " << line;
    EXPECT_NE(line.find(": "), std::string::npos) << "does not say what it was: " << line;
    before = id;
  }
}

TEST(Corpus, CasesAreInCanonicalText) {
  for (const std::string& line : shipped_lines()) {
    if (!line.starts_with("v1")) continue;
    EXPECT_EQ(to_text(parse_case(line)), line);
  }
}

TEST(Corpus, IsEitherACaseOrWaitsForAReason) {
  int cases = 0, waiting = 0, reports = 0;
  const CorpusEntry* before = nullptr;
  for (const CorpusEntry& entry : corpus()) {
    EXPECT_NE(entry.line.empty(), entry.waits.empty()) << entry.id;
    const bool same = before && before->id == entry.id;
    if (same) {
      EXPECT_EQ(before->source, entry.source) << entry.id;
      EXPECT_TRUE(before->waits.empty() && entry.waits.empty())
          << entry.id << " waits, and has another line too";
    }
    reports += !same;
    ++(entry.waits.empty() ? cases : waiting);
    before = &entry;
  }
  std::cout << reports << " reports: " << cases << " cases of " << reports - waiting << " of them, "
            << waiting << " wait\n";
  EXPECT_GT(cases, 0);
}

/// Every case passes on emulated warps, in the order of the file, and then on emulated threads in
/// the opposite order, with the same bits: nothing of one call may reach the next.
TEST(Corpus, CasesPassOnBothEnginesWithTheSameBits) {
  const std::vector<CorpusEntry>& entries = corpus();
  std::vector<RawOutputs> outputs(entries.size());
  const auto expect_pass = [&](const CorpusEntry& entry, Engine engine) {
    const Case c = parse_case(entry.line);
    RunOptions options;
    options.engine = engine;
    const Verdict verdict = run_case(c, options);
    EXPECT_EQ(verdict.outcome, Outcome::pass) << entry.id << "\n" << report(c, verdict);
    EXPECT_EQ(verdict.target, name_of(engine)) << entry.id;
    return verdict.outcome == Outcome::pass ? run_raw(c, options) : RawOutputs{};
  };
  for (std::size_t i = 0; i < entries.size(); ++i)
    if (!entries[i].line.empty()) outputs[i] = expect_pass(entries[i], Engine::warp);
  for (std::size_t i = entries.size(); i-- > 0;) {
    if (entries[i].line.empty()) continue;
    EXPECT_TRUE(expect_pass(entries[i], Engine::thread) == outputs[i])
        << entries[i].id << ": the engines differ\nattnproof replay '" << entries[i].line << "'";
  }
}

}  // namespace
}  // namespace attn::fuzz
