// JUnit XML: what it counts, and texts that would end an element or are no characters of XML.
// fuzz/tool_test.sh gives what the commands write to a parser.
#include "fuzz/junit.h"

#include <gtest/gtest.h>

#include "fuzz/text.h"

namespace attn::fuzz {
namespace {

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++n;
  return n;
}

TEST(JUnit, HoldsASuiteEachWithItsTestCases) {
  EXPECT_EQ(junit_xml("all", {{"one",
                               {{"passes", ""}, {"fails", "first\nsecond"}, {"passes too", ""}},
                               {{"seed", "7"}, {"jobs", "2"}}},
                              {"two", {}}}),
            R"(<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="all">
  <testsuite name="one" tests="3" failures="1">
    <properties>
      <property name="seed" value="7"/>
      <property name="jobs" value="2"/>
    </properties>
    <testcase classname="attnproof.one" name="passes"/>
    <testcase classname="attnproof.one" name="fails">
      <failure message="first">first&#10;second</failure>
    </testcase>
    <testcase classname="attnproof.one" name="passes too"/>
  </testsuite>
  <testsuite name="two" tests="0" failures="0">
  </testsuite>
</testsuites>
)");
}

TEST(JUnit, NothingThatFailedIsAllRight) {
  EXPECT_TRUE(all_right({}));
  EXPECT_TRUE(all_right({{"a", ""}, {"b", ""}}));
  EXPECT_FALSE(all_right({{"a", ""}, {"b", "x"}, {"c", ""}}));
}

TEST(JUnit, EscapesEveryText) {
  const std::string bad = "a<b & \"c\"\n\x01", good = escaped_markup(bad);
  const std::string xml =
      junit_xml(bad, {{bad, {{bad, "first\n" + bad}, {bad, bad}}, {{bad, bad}}}});
  // the title, the suite, both of the property, of each case class and name and text
  EXPECT_EQ(occurrences(xml, good), 10u) << xml;
  EXPECT_EQ(occurrences(xml, R"(message="a&lt;b &amp; &quot;c&quot;")"), 1u) << xml;
  for (const char* part : {"a<b", "& ", "\x01"}) EXPECT_EQ(occurrences(xml, part), 0u);
}

}  // namespace
}  // namespace attn::fuzz
