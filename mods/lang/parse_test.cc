#include "mods/lang/parse.h"

#include <gtest/gtest.h>

#include "mods/lang/environments.h"
#include "mods/lang/tree_functor.h"

namespace attn {
namespace {

const std::vector<TableDeclaration> tables{{"slope", 1, ValueType::real},
                                           {"bias", 2, ValueType::real},
                                           {"doc", 1, ValueType::index}};

/// A text and where it is wrong: the caret stands in the second line, below the first.
struct Wrong {
  const char* text;
  const char* caret;
  const char* told;  ///< part of the message
};
std::ostream& operator<<(std::ostream& out, const Wrong& w) { return out << w.text; }

void expect_refused(const Wrong& w, bool mask) {
  try {
    const Expression e = mask ? parse_mask(w.text, tables) : parse_mod(w.text, tables);
    ADD_FAILURE() << "accepted as " << to_text(e);
  } catch (const ExpressionError& error) {
    const int column = static_cast<int>(std::string(w.caret).find('^')) + 1;
    const std::string message = error.what();
    EXPECT_EQ(error.column, column) << message;
    EXPECT_EQ(message.find("column " + std::to_string(column) + ": "), 0u) << message;
    EXPECT_NE(message.find(w.told), std::string::npos) << message;
    EXPECT_NE(message.find(std::string("\n  ") + w.text + "\n  " + w.caret), std::string::npos)
        << message;
  }
}

class WrongMod : public testing::TestWithParam<Wrong> {};
TEST_P(WrongMod, IsRefusedWhereItIsWrong) { expect_refused(GetParam(), false); }

INSTANTIATE_TEST_SUITE_P(All, WrongMod, testing::Values(
    Wrong{"", "^", "the text is empty"},
    Wrong{"score +", "       ^", "the text ends, expected a value"},
    Wrong{"score + * 2", "        ^", "unexpected '*', expected a value"},
    Wrong{"score 2", "      ^", "unexpected '2', expected an operator or the end"},
    Wrong{"score)", "     ^", "unexpected ')'"},
    Wrong{"(score + 1", "          ^", "expected ')' to close the '(' in column 1"},
    Wrong{"score + slop", "        ^", "unknown name 'slop', expected one of score, b, h, q, kv"},
    Wrong{"score + slop", "        ^", "slope[...]"},
    Wrong{"score + pos[q]", "        ^",
          "unknown table 'pos', expected one of slope, bias, doc, or declare it: "
          "--table 'pos[...]=uniform(lo,hi)'"},
    Wrong{"score + slope", "        ^", "has rank 1, but is read with 0 subscripts"},
    Wrong{"score + slope[h, q]", "        ^", "has rank 1, but is read with 2 subscripts"},
    Wrong{"score + bias[h][q][kv]", "        ^", "has rank 2, but is read with 3 subscripts"},
    Wrong{"score + bias[h]", "        ^", "has rank 2, but is read with 1 subscript"},
    Wrong{"bias[q, score]", "        ^", "subscript of 'bias' is a real, expected an index"},
    Wrong{"slope[score > 0 ? 1 : 2]", "      ^", "is a real"},
    Wrong{"slope[h", "       ^", "expected ']'"},
    Wrong{"q[h]", "^", "'q' is no table name"},
    Wrong{"q(h)", "^", "'q' is not a function, expected one of select, min"},
    Wrong{"1 + tanh", "        ^", "expected '(' after the function 'tanh'"},
    Wrong{"tanh()", "^", "'tanh' got 0 arguments, expected 1"},
    Wrong{"1 + min(score)", "    ^", "'min' got 1 argument, expected 2"},
    Wrong{"clamp(score, 1, 2, 3)", "^", "'clamp' got 4 arguments, expected 3"},
    Wrong{"min(score, 2", "            ^", "expected ')' or ','"},
    Wrong{"score % 2", "^", "'%' got a value of type real, expected an index"},
    Wrong{"q % 2.0", "    ^", "'%' got a value of type real, expected an index"},
    Wrong{"floor_mod(q, score)", "             ^", "'floor_mod' got a value of type real"},
    Wrong{"score + (q / 0)", "             ^", "'/' divides by zero"},
    Wrong{"score / 0.0", "        ^", "'/' divides by zero"},
    Wrong{"floor_div(q, -0)", "             ^", "'floor_div' divides by zero"},
    Wrong{"q < kv < h ? 1 : 2", "^", "a < b < c is written a < b && b < c"},
    Wrong{"score + (q < kv)", "        ^", "got a value of type condition"},
    Wrong{"q ? 1 : 2", "^", "'select' got a value of type index, expected a condition"},
    Wrong{"q < kv ? 1 : true", "             ^", "expected a number, as in the other branch"},
    Wrong{"q < kv ? 1", "          ^", "expected ':'"},
    Wrong{"q < kv", "^", "a mod gives a real number, but this is a condition"},
    Wrong{"!q ? 1 : 2", " ^", "'!' got a value of type index"},
    Wrong{"true && q ? 1 : 2", "        ^", "'&&' got a value of type index"},
    Wrong{"q & 1", "  ^", "did you mean '&&'?"},
    Wrong{"q = 1", "  ^", "did you mean '=='?"},
    Wrong{"score + 2147483648", "        ^", "integer '2147483648', expected -2147483648 to"},
    Wrong{"score - -2147483649", "         ^", "integer '-2147483649'"},
    Wrong{"score + 1.2.3", "        ^", "'1.2.3' is not a number"},
    Wrong{"0x10", "^", "'0x10' is not a number"},
    Wrong{"0.5f", "^", "'0.5f' is not a number"},
    Wrong{"1e", "^", "'1e' is not a number"},
    Wrong{"1e999", "^", "does not fit a double"},
    Wrong{"score @ 2", "      ^", "unexpected '@'"}));

class WrongMask : public testing::TestWithParam<Wrong> {};
TEST_P(WrongMask, IsRefusedWhereItIsWrong) { expect_refused(GetParam(), true); }

INSTANTIATE_TEST_SUITE_P(All, WrongMask, testing::Values(
    Wrong{"q + kv", "^", "a mask gives a condition, but this has type index"},
    Wrong{"q >= kv && score > 0", "           ^", "a mask does not see 'score'"},
    Wrong{"true == q", "        ^", "expected a condition, as on the left"}));

int column_of(const std::string& text) {
  try {
    parse_mod(text);
  } catch (const ExpressionError& error) {
    return error.column;
  }
  return 0;
}

TEST(Parse, HostileTextsAreRefused) {
  const auto times = [](int n, const std::string& part) {
    std::string text;
    for (int i = 0; i < n; ++i) text += part;
    return text;
  };
  EXPECT_EQ(column_of(times(60000, "(")), 401);
  EXPECT_EQ(column_of(times(60000, "-")), 401);
  EXPECT_EQ(column_of(times(20000, "!")), 401);
  EXPECT_EQ(column_of(times(9000, "tanh(")), 5 * 400 + 1);
  EXPECT_EQ(column_of(times(9000, "true?1:")), 7 * 399 + 6);  // the 400th '1'
  EXPECT_EQ(column_of("1" + times(300, "+1")), 2 * 200);      // the sum of 201 is too deep
  EXPECT_EQ(column_of(std::string(70000, ' ')), 1);           // too long
  EXPECT_EQ(column_of(std::string("score\0+ 1", 9)), 6);      // NUL does not end it
  EXPECT_EQ(column_of("score \xc3\xa9"), 7);
  for (int c = 0; c < 256; ++c)  // any byte is refused or read, never more
    for (const char* around : {"", "score", "1", "slope[", "-"})
      column_of(around + std::string(1, static_cast<char>(c)) + around);
}

TEST(Parse, RandomBytesAndCutTextsAreRefusedOrRead) {
  const std::string text = "q >= kv && doc[q] == 3 ? min(score, 1e-3) * bias[h][-kv] : -inf";
  for (std::size_t n = 0; n <= text.size(); ++n)
    for (char c : std::string(" (]1.e?:-")) {
      try {
        parse_mod(text.substr(0, n) + c + text.substr(n), tables);
      } catch (const ExpressionError& error) {
        EXPECT_GE(error.column, 1);
        EXPECT_LE(error.column, static_cast<int>(text.size()) + 2);
      }
    }
}

TEST(Parse, LongTextsShowTheNeighbourhood) {
  const std::string before(5000, ' ');
  try {
    parse_mod(before + "wrong" + before);
    FAIL();
  } catch (const ExpressionError& error) {
    EXPECT_EQ(error.column, 5001);
    EXPECT_LT(std::string(error.what()).size(), 600u);
    EXPECT_NE(std::string(error.what()).find("wrong"), std::string::npos);
  }
}

TEST(Parse, DeclarationsAreChecked) {
  EXPECT_THROW(parse_mod("score", {{"q", 1, ValueType::real}}), std::invalid_argument);
  EXPECT_THROW(parse_mod("score", {{"t", 0, ValueType::real}}), std::invalid_argument);
  EXPECT_THROW(parse_mod("score", {{"t", 5, ValueType::real}}), std::invalid_argument);
}

double value_of(const std::string& text) {
  ExactEnv env{{2, 4, 2, 24, 40}};
  const auto at = [&](int i) { return Index<ExactEnv>{i, &env}; };
  return TreeMod(parse_mod(text), {})(0.5, at(1), at(2), at(7), at(11));
}

TEST(Parse, BindsAsC) {
  EXPECT_EQ(value_of("2 + 3 * 4 - 5 % 3"), 2 + 3 * 4 - 5 % 3);
  EXPECT_EQ(value_of("100 / 7 / 2 * 3"), 100 / 7 / 2 * 3);
  EXPECT_EQ(value_of("-7 / 2 + -7 % 2"), -7 / 2 + -7 % 2);
  EXPECT_EQ(value_of("1 - 2 - 3"), 1 - 2 - 3);
  EXPECT_EQ(value_of("true || false && false ? 1 : 2"), 1);
  EXPECT_EQ(value_of("!false && false ? 1 : 2"), 2);
  EXPECT_EQ(value_of("1 < 2 == 4 > 3 ? 1 : 2"), 1);
  EXPECT_EQ(value_of("false ? 1 : true ? 2 : 3"), 2);
  EXPECT_EQ(value_of("false ? 1 : 2 + 10"), 12);
  EXPECT_EQ(value_of("7 / 2 + 7 / 2.0"), 6.5);
  EXPECT_EQ(value_of("Skv - Sq + H * Hkv + B"), 40 - 24 + 4 * 2 + 2);
  EXPECT_EQ(value_of("q - kv"), -4);
  EXPECT_EQ(value_of("select(q < kv, score, 2)"), 0.5);
}

}  // namespace
}  // namespace attn
