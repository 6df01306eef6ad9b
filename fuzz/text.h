#pragma once

#include <string_view>

namespace attn::fuzz {

/// Without white space at either end.
constexpr std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

}  // namespace attn::fuzz
