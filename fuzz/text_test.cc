// What a line of text may hold, byte by byte.
#include "fuzz/text.h"

#include <gtest/gtest.h>

#include <string>

namespace attn::fuzz {
namespace {

constexpr std::size_t none = std::string_view::npos;

TEST(Text, TrimTakesWhiteSpaceOffBothEnds) {
  EXPECT_EQ(trim(" \t a b\r\n"), "a b");
  EXPECT_EQ(trim(" \n"), "");
}

TEST(Text, IsShownShortAndPrintable) {
  EXPECT_EQ(shown("a b"), "'a b'");
  EXPECT_EQ(shown(std::string("a\0\x1b[1m\xff", 7)), "'a\\x00\\x1b[1m\\xff'");
  EXPECT_EQ(shown(std::string(1000, 'x')), "'" + std::string(40, 'x') + "...'");
}

TEST(Text, HoldsPrintableCharactersAndTabs) {
  EXPECT_EQ(first_not_text(""), none);
  EXPECT_EQ(first_not_text("a\tb ~"), none);
  EXPECT_EQ(first_not_text("\xc2\xa0 \xc3\xa4 \xe2\x82\xac \xf0\x9f\x99\x82 \xf4\x8f\xbf\xbf"),
            none);
}

TEST(Text, HoldsNoControlCharacters) {
  for (int c = 0; c < 0x20; ++c)
    EXPECT_EQ(first_not_text(std::string("ab") + static_cast<char>(c)), c == '\t' ? none : 2u) << c;
  EXPECT_EQ(first_not_text("\x7f"), 0u);
  EXPECT_EQ(first_not_text("a\xc2\x80"), 1u);  // U+0080
  EXPECT_EQ(first_not_text("a\xc2\x9f"), 1u);  // U+009F
}

TEST(Text, IsUtf8) {
  for (const char* bad : {"\x80", "\xbf", "\xc0\xaf", "\xc1\xbf", "\xc3", "\xc3(", "\xe2\x82",
                          "\xe0\x9f\xbf",      // an overlong form
                          "\xed\xa0\x80",      // a surrogate
                          "\xf0\x8f\xbf\xbf",  // an overlong form
                          "\xef\xbf\xbe",      // U+FFFE
                          "\xef\xbf\xbf",      // U+FFFF
                          "\xf4\x90\x80\x80",  // above U+10FFFF
                          "\xf8\x88\x80\x80\x80", "\xff"})
    EXPECT_EQ(first_not_text(std::string("ab") + bad), 2u) << bad;
}

TEST(Text, IsEscapedForMarkup) {
  EXPECT_EQ(escaped_markup(""), "");
  EXPECT_EQ(escaped_markup("a<b & \"c\">'d'"), "a&lt;b &amp; &quot;c&quot;&gt;&#39;d&#39;");
  EXPECT_EQ(escaped_markup("1\n\t2"), "1&#10;&#9;2");
  EXPECT_EQ(escaped_markup("\xc3\xa9 \xef\xbf\xbd"), "\xc3\xa9 \xef\xbf\xbd");
}

TEST(Text, HasNoMarkupForWhatIsNoCharacter) {
  const std::string mark = "\xef\xbf\xbd";  // U+FFFD
  for (int c = 0; c < 0x20; ++c)
    if (c != '\t' && c != '\n')
      EXPECT_EQ(escaped_markup(std::string("a") + static_cast<char>(c) + "<"), "a" + mark + "&lt;")
          << c;
  EXPECT_EQ(escaped_markup("\x7f"), mark);
  EXPECT_EQ(escaped_markup("a\xff"
                           "b"),
            "a" + mark + "b");
  EXPECT_EQ(escaped_markup("\xc3"), mark);  // cut short
  EXPECT_EQ(escaped_markup("\xef\xbf\xbf"), mark + mark + mark);
}

}  // namespace
}  // namespace attn::fuzz
