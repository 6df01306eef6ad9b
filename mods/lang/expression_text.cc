#include <charconv>
#include <cmath>

#include "mods/lang/expression.h"

namespace attn {
namespace {

constexpr int ternary = 1, unary = 8, primary = 9;

std::string real_text(double value) {
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char digits[40];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  std::string text(digits, end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";  // keeps it a real
  return text;
}

std::string constant_text(const Node& node) {
  if (node.type == ValueType::condition) return node.value != 0 ? "true" : "false";
  if (node.type == ValueType::real) return real_text(node.value);
  return std::to_string(static_cast<std::int32_t>(node.value));
}

int precedence_of(const Node& node) {
  if (node.op == Op::select) return ternary;
  if (node.op == Op::negate || node.op == Op::logical_not) return unary;
  const int infix = syntax_of(node.op).precedence;
  return infix ? infix : primary;
}

void write(const Node& node, int least, std::string& out);

void write_list(const std::vector<Expression>& args, const char* open, const char* close,
                std::string& out) {
  out += open;
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (i) out += ", ";
    write(*args[i], ternary, out);
  }
  out += close;
}

/// What follows a minus: never another one, and no bare literal (that would be its sign).
void write_negated(const Node& arg, std::string& out) {
  out += '-';
  const bool numeral = arg.op == Op::constant;
  write(arg, numeral || arg.op == Op::negate ? primary + 1 : unary, out);
}

void write_bare(const Node& node, std::string& out) {
  const OpSyntax& syntax = syntax_of(node.op);
  const auto arg = [&](int i) -> const Node& { return *node.args[static_cast<std::size_t>(i)]; };
  if (node.op == Op::constant) {
    out += constant_text(node);
  } else if (node.op == Op::read) {
    out += node.table;
    write_list(node.args, "[", "]", out);
  } else if (node.op == Op::select) {
    write(arg(0), ternary + 1, out);
    out += " ? ";
    write(arg(1), ternary, out);
    out += " : ";
    write(arg(2), ternary, out);
  } else if (node.op == Op::negate) {
    write_negated(arg(0), out);
  } else if (node.op == Op::logical_not) {
    out += '!';
    write(arg(0), unary, out);
  } else if (syntax.precedence) {
    write(arg(0), syntax.precedence, out);
    out += std::string(" ") + syntax.name + " ";
    write(arg(1), syntax.precedence + 1, out);  // a right operand of the same rank is grouped
  } else {
    out += syntax.name;
    if (syntax.is_function) write_list(node.args, "(", ")", out);
  }
}

/// In parentheses if the node binds less tightly than `least`.
void write(const Node& node, int least, std::string& out) {
  const bool grouped = precedence_of(node) < least;
  if (grouped) out += '(';
  write_bare(node, out);
  if (grouped) out += ')';
}

}  // namespace

std::string to_text(const Expression& root) {
  std::string out;
  write(*root, ternary, out);
  return out;
}

}  // namespace attn
