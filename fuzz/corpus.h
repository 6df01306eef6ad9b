#pragma once

#include <string>
#include <vector>

#include "fuzz/case.h"

namespace attn::fuzz {

/// A public bug report that became a case, or that waits for something the library has not yet.
struct CorpusEntry {
  std::string id;      ///< "B011"
  std::string source;  ///< where it was reported, and what it was
  std::string line;    ///< of the case; empty if it waits
  std::string waits;   ///< what it waits for, or why it cannot exist here
};

/// The corpus that ships (fuzz/corpus/bugs.txt), which is built into the library.
const std::vector<CorpusEntry>& corpus();

/// The format of the file: a line `# ID source: what`, then one or more case lines, or a line
/// `waits: reason`. Empty lines are left out.
/// @throws std::invalid_argument naming the line that cannot be read.
std::vector<CorpusEntry> parse_corpus(const std::string& text);

}  // namespace attn::fuzz
