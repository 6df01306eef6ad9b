#pragma once

#include <string>
#include <string_view>

namespace attn::detail {

/// A piece of the text of an expression.
struct Token {
  enum Kind { word, number, symbol, end } kind = end;  ///< `end` is no text
  std::string_view text;                               ///< the piece itself
  int column = 1;                                      ///< in bytes, counted from 1
};

/// Cuts a text into tokens. Any byte is in some token, NUL too; the parser says what is wrong.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}
  Token next();  ///< `Token::end` for ever behind the last one

 private:
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  std::size_t word_length() const;
  std::size_t number_length() const;
  std::size_t symbol_length() const;

  std::string_view text_;
  std::size_t at_ = 0;
};

/// The first characters between quotes, unprintable ones as `\x00`.
std::string quoted(std::string_view text);
/// Two lines for a message: the text around a column, and a caret below it.
std::string pointed(std::string_view text, int column);

}  // namespace attn::detail
