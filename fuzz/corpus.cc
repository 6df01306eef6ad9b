#include "fuzz/corpus.h"

#include <fmt/format.h>

#include <sstream>
#include <stdexcept>

namespace attn::fuzz {

/// The text of fuzz/corpus/bugs.txt; CMake writes its definition.
extern const char* const corpus_text;

std::vector<CorpusEntry> parse_corpus(const std::string& text) {
  std::vector<CorpusEntry> entries;
  CorpusEntry heading;
  bool used = true;  // the heading has its case or its reason
  std::istringstream lines(text);
  int number = 0;
  const auto refuse = [&](const std::string& expected) {
    throw std::invalid_argument(fmt::format("corpus line {}: expected {}", number, expected));
  };
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.empty()) continue;
    if (line.starts_with("# ")) {
      if (!used) refuse("a case line or 'waits:' after the heading before it");
      const std::size_t space = line.find(' ', 2);
      if (space == std::string::npos) refuse("'# ID source: what'");
      heading = {line.substr(2, space - 2), line.substr(space + 1), {}, {}};
      used = false;
      continue;
    }
    if (heading.id.empty()) refuse("a heading '# ID source: what' first");
    CorpusEntry entry = heading;
    if (line.starts_with("waits: ")) {
      entry.waits = line.substr(7);
      if (entry.waits.empty()) refuse("a reason after 'waits: '");
    } else {
      try {
        entry.line = to_text(parse_case(line));
      } catch (const std::invalid_argument& error) {
        refuse(fmt::format("a case: {}", error.what()));
      }
    }
    entries.push_back(std::move(entry));
    used = true;
  }
  if (!used) refuse("a case line or 'waits:' after the last heading");
  return entries;
}

const std::vector<CorpusEntry>& corpus() {
  static const std::vector<CorpusEntry> entries = parse_corpus(corpus_text);
  return entries;
}

}  // namespace attn::fuzz
