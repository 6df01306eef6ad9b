#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace attn::fuzz {

/// Without white space at either end.
constexpr std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

/// Where the first byte stands that no line of text has: part of a control character other than
/// the tab, a noncharacter that XML has no place for, or not UTF-8. `npos` where there is none, so
/// that a terminal may be shown the text.
std::size_t first_not_text(std::string_view text);

/// As text of HTML or XML 1.0, attributes too; line breaks and tabs are kept as references. What is
/// no character of theirs, byte by byte, becomes U+FFFD.
std::string escaped_markup(std::string_view text);

/// What a message shows of a text that may be anything: its first 40 bytes between quotes, those
/// that are not printable ASCII as `\x00`.
std::string shown(std::string_view text);

}  // namespace attn::fuzz
