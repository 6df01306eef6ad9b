#pragma once

#include <string>
#include <utility>
#include <vector>

namespace attn::fuzz {

/// One thing that was checked; `failure`: the report, empty where it is right.
struct Checked {
  std::string name, failure;  ///< one line; many
};

/// True if none of them failed.
bool all_right(const std::vector<Checked>& checked);

/// What was checked together, with what there is to say about it: names and values.
struct Suite {
  std::string name;                                                  ///< of the suite, one line
  std::vector<Checked> checked;                                      ///< a test case each
  std::vector<std::pair<std::string, std::string>> properties = {};  ///< shown beside the suite
};

/// JUnit XML, which CI servers show: a suite each, with a test case for each thing that was
/// checked. Well-formed XML 1.0 whatever the texts hold (`escaped_markup`).
std::string junit_xml(const std::string& title, const std::vector<Suite>& suites);

}  // namespace attn::fuzz
