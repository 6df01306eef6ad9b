#include "fuzz/junit.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "fuzz/text.h"

namespace attn::fuzz {
namespace {

/// In an attribute a line break or a tab that is not escaped would be read as a space.
std::string escaped(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\n':
      return "&#10;";
    case '\t':
      return "&#9;";
    default:
      return std::string(1, c);
  }
}

std::string escaped(std::string_view text) {
  constexpr const char* replacement = "\xEF\xBF\xBD";  // U+FFFD
  std::string out;
  while (!text.empty()) {
    const std::size_t good = std::min(first_not_text(text), text.size());
    for (const char c : text.substr(0, good)) out += escaped(c);
    text.remove_prefix(good);
    if (text.empty()) break;
    out += text[0] == '\n' ? escaped('\n') : replacement;
    text.remove_prefix(1);
  }
  return out;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string to_xml(const std::string& title, const Checked& c) {
  const std::string tag =
      fmt::format("    <testcase classname=\"{}\" name=\"{}\"", title, escaped(c.name));
  if (c.failure.empty()) return tag + "/>\n";
  return tag + fmt::format(">\n      <failure message=\"{}\">{}</failure>\n    </testcase>\n",
                           escaped(first_line(c.failure)), escaped(c.failure));
}

std::string to_xml(const Suite& suite) {
  const auto failures = std::count_if(suite.checked.begin(), suite.checked.end(),
                                      [](const Checked& c) { return !c.failure.empty(); });
  const std::string name = escaped(suite.name);
  std::string xml = fmt::format("  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\">\n", name,
                                suite.checked.size(), failures);
  if (!suite.properties.empty()) xml += "    <properties>\n";
  for (const auto& [key, value] : suite.properties)
    xml +=
        fmt::format("      <property name=\"{}\" value=\"{}\"/>\n", escaped(key), escaped(value));
  if (!suite.properties.empty()) xml += "    </properties>\n";
  for (const Checked& c : suite.checked) xml += to_xml("attnproof." + name, c);
  return xml + "  </testsuite>\n";
}

}  // namespace

std::string junit_xml(const std::string& title, const std::vector<Suite>& suites) {
  std::string xml = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"{}\">\n", escaped(title));
  for (const Suite& suite : suites) xml += to_xml(suite);
  return xml + "</testsuites>\n";
}

}  // namespace attn::fuzz
