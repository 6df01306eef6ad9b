// JUnit XML: what it counts, and texts that would end an element or are no characters of XML.
// fuzz/tool_test.sh gives what the commands write to a parser.
#include "fuzz/junit.h"

#include <gtest/gtest.h>

namespace attn::fuzz {
namespace {

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++n;
  return n;
}

TEST(JUnit, HoldsASuiteEachWithItsTestCases) {
  const std::string xml = junit_xml(
      "all", {{"one", {{"passes", ""}, {"fails", "first\nsecond"}}, {{"seed", "7"}}}, {"two", {}}});
  for (const char* part :
       {R"(<testsuites name="all">)", R"(<testsuite name="one" tests="2" failures="1">)",
        R"(<property name="seed" value="7"/>)",
        R"(<testcase classname="attnproof.one" name="passes"/>)",
        R"(<testcase classname="attnproof.one" name="fails">)",
        R"(<failure message="first">first&#10;second</failure>)",
        R"(<testsuite name="two" tests="0" failures="0">)"})
    EXPECT_EQ(occurrences(xml, part), 1u) << part << "\n" << xml;
}

TEST(JUnit, EscapesEveryText) {
  const std::string bad = "a<b & \"c\">\t\x01\xff'\xC3\xA9";
  const std::string good = "a&lt;b &amp; &quot;c&quot;&gt;&#9;\xEF\xBF\xBD\xEF\xBF\xBD'\xC3\xA9";
  const std::string xml = junit_xml(bad, {{bad, {{bad, bad}}, {{bad, bad}}}});
  // the title, the suite, both of the property, class and name, message and text
  EXPECT_EQ(occurrences(xml, good), 8u) << xml;
  for (const char* part : {"a<b", "& ", "\x01", "\xff"}) EXPECT_EQ(occurrences(xml, part), 0u);
}

}  // namespace
}  // namespace attn::fuzz
