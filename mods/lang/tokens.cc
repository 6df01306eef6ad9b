#include "mods/lang/tokens.h"

#include <cstdio>

namespace attn::detail {
namespace {

// Not the functions of <cctype>: those follow the locale.
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) {
  return is_digit(c) || c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_printable(char c) { return c >= ' ' && c <= '~'; }

}  // namespace

Token Lexer::next() {
  while (is_space(peek())) ++at_;
  Token token{Token::end, {}, static_cast<int>(at_) + 1};
  if (at_ == text_.size()) return token;
  std::size_t length = 0;
  if (is_digit(peek()) || (peek() == '.' && is_digit(peek(1)))) {
    token.kind = Token::number;
    length = number_length();
  } else if (is_word(peek())) {
    token.kind = Token::word;
    length = word_length();
  } else {
    token.kind = Token::symbol;
    length = symbol_length();
  }
  token.text = text_.substr(at_, length);
  at_ += length;
  return token;
}

std::size_t Lexer::word_length() const {
  std::size_t n = 1;
  while (is_word(peek(n))) ++n;
  return n;
}
/// Digits, dots, letters and the sign of an exponent: whether they make a number is asked later.
std::size_t Lexer::number_length() const {
  std::size_t n = 1;
  const auto is_exponent = [](char c) { return c == 'e' || c == 'E'; };
  while (is_word(peek(n)) || peek(n) == '.' ||
         ((peek(n) == '+' || peek(n) == '-') && is_exponent(peek(n - 1))))
    ++n;
  return n;
}
std::size_t Lexer::symbol_length() const {
  const std::string_view two = text_.substr(at_, 2);
  for (const char* known : {"<=", ">=", "==", "!=", "&&", "||"})
    if (two == known) return 2;
  return 1;
}

std::string quoted(std::string_view text) {
  std::string shown;
  for (char c : text.substr(0, 40)) {
    char code[8];
    std::snprintf(code, sizeof code, "\\x%02x", static_cast<unsigned>(c) & 0xffu);
    shown += is_printable(c) ? std::string(1, c) : code;
  }
  return "'" + shown + (text.size() > 40 ? "..." : "") + "'";
}

std::string pointed(std::string_view text, int column) {
  const std::size_t at = static_cast<std::size_t>(column - 1), reach = 36;
  const std::size_t from = at > reach ? at - reach : 0;
  std::string line(text.substr(from, 2 * reach));
  for (char& c : line)
    if (!is_printable(c)) c = is_space(c) ? ' ' : '?';
  return "\n  " + line + "\n  " + std::string(at - from, ' ') + "^";
}

}  // namespace attn::detail
