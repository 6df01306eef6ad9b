#include "fuzz/text.h"

#include <cstdint>

#include "mods/lang/tokens.h"

namespace attn::fuzz {
namespace {

/// How many bytes the character at the front takes; 0 if it is none or a control character.
std::size_t character_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return lead == '\t' || (lead >= 0x20 && lead != 0x7f) ? 1 : 0;
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc0 || lead > 0xf4 || length > text.size()) return 0;
  std::uint32_t code = lead & (0x7fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3f);
  }
  constexpr std::uint32_t least[] = {0, 0, 0xa0, 0x800, 0x10000};  // U+0080 to U+009F: controls
  const bool surrogate = code >= 0xd800 && code < 0xe000,
             noncharacter = code == 0xfffe || code == 0xffff;  // which XML has no place for
  return code < least[length] || code > 0x10ffff || surrogate || noncharacter ? 0 : length;
}

}  // namespace

std::size_t first_not_text(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = character_length(text.substr(at));
    if (length == 0) return at;
    at += length;
  }
  return std::string_view::npos;
}

std::string escaped_markup(std::string_view text) {
  constexpr std::string_view replacement = "\xEF\xBF\xBD";  // U+FFFD
  std::string safe;
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    switch (text[0]) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      case '\'':
        safe += "&#39;";
        break;
      case '\n':  // as they are, an attribute of XML would have a space for these two
        safe += "&#10;";
        break;
      case '\t':
        safe += "&#9;";
        break;
      default:
        safe += length > 0 ? text.substr(0, length) : replacement;
    }
    text.remove_prefix(length > 0 ? length : 1);
  }
  return safe;
}

std::string shown(std::string_view text) { return detail::quoted(text); }

}  // namespace attn::fuzz
