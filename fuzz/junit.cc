#include "fuzz/junit.h"

#include <fmt/format.h>

#include <algorithm>

#include "fuzz/text.h"

namespace attn::fuzz {
namespace {

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string to_xml(const std::string& title, const Checked& c) {
  const std::string tag =
      fmt::format("    <testcase classname=\"{}\" name=\"{}\"", title, escaped_markup(c.name));
  if (c.failure.empty()) return tag + "/>\n";
  return tag + fmt::format(">\n      <failure message=\"{}\">{}</failure>\n    </testcase>\n",
                           escaped_markup(first_line(c.failure)), escaped_markup(c.failure));
}

std::string to_xml(const Suite& suite) {
  const auto failures = std::count_if(suite.checked.begin(), suite.checked.end(),
                                      [](const Checked& c) { return !c.failure.empty(); });
  const std::string name = escaped_markup(suite.name);
  std::string xml = fmt::format("  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\">\n", name,
                                suite.checked.size(), failures);
  if (!suite.properties.empty()) xml += "    <properties>\n";
  for (const auto& [key, value] : suite.properties)
    xml += fmt::format("      <property name=\"{}\" value=\"{}\"/>\n", escaped_markup(key),
                       escaped_markup(value));
  if (!suite.properties.empty()) xml += "    </properties>\n";
  for (const Checked& c : suite.checked) xml += to_xml("attnproof." + name, c);
  return xml + "  </testsuite>\n";
}

}  // namespace

bool all_right(const std::vector<Checked>& checked) {
  return std::all_of(checked.begin(), checked.end(),
                     [](const Checked& c) { return c.failure.empty(); });
}

std::string junit_xml(const std::string& title, const std::vector<Suite>& suites) {
  std::string xml =
      fmt::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"{}\">\n",
                  escaped_markup(title));
  for (const Suite& suite : suites) xml += to_xml(suite);
  return xml + "</testsuites>\n";
}

}  // namespace attn::fuzz
