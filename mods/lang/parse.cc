#include "mods/lang/parse.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <system_error>
#include <utility>

#include "mods/lang/tokens.h"

namespace attn {
namespace {

using detail::Lexer;
using detail::pointed;
using detail::quoted;
using detail::Token;

enum class Root { mod, mask };

/// A tree, and where its text begins.
struct Operand {
  Expression tree;
  int column;
};

std::optional<Op> infix_named(std::string_view name) {
  for (int i = 0; i < op_count; ++i) {
    const Op op = static_cast<Op>(i);
    if (syntax_of(op).precedence && name == syntax_of(op).name) return op;
  }
  return std::nullopt;
}
std::optional<Op> function_named(std::string_view name) {
  for (int i = 0; i < op_count; ++i) {
    const Op op = static_cast<Op>(i);
    if (syntax_of(op).is_function && name == syntax_of(op).name) return op;
  }
  return std::nullopt;
}
std::optional<Op> variable_named(std::string_view name) {
  if (name == "H") return Op::length_hq;
  for (int i = 0; i < static_cast<int>(Op::constant); ++i)
    if (name == syntax_of(static_cast<Op>(i)).name) return static_cast<Op>(i);
  return std::nullopt;
}

/// Recursive descent; infix operators by precedence climbing. `next_` is the token not yet taken.
class Parser {
 public:
  Parser(std::string_view text, const std::vector<TableDeclaration>& tables, Root root)
      : text_(text), lexer_(text), tables_(tables), root_(root) {
    if (text.size() > static_cast<std::size_t>(max_expression_text))
      fail(1, "text of " + std::to_string(text.size()) + " characters, expected at most " +
                  std::to_string(max_expression_text));
    advance();
  }

  Expression parse() {
    if (next_.kind == Token::end) fail(next_.column, "no expression: the text is empty");
    const Operand all = expression();
    if (next_.kind != Token::end)
      fail(next_.column, "unexpected " + quoted(next_.text) + ", expected an operator or the end");
    if (root_ == Root::mod && all.tree->type == ValueType::condition)
      fail(all.column, "a mod gives a real number, but this is a condition");
    if (root_ == Root::mask && all.tree->type != ValueType::condition)
      fail(all.column, std::string("a mask gives a condition, but this has type ") +
                           name_of(all.tree->type));
    return all.tree;
  }

 private:
  /// Keeps hostile texts off the stack. The deepest tree prints within it: a level of the tree
  /// takes at most an operand and its parentheses.
  class Nesting {
   public:
    explicit Nesting(Parser& p) : parser_(p) {
      if (++parser_.nesting_ > 2 * max_expression_depth)
        parser_.fail(parser_.next_.column,
                     "nested too deeply, expected at most " +
                         std::to_string(2 * max_expression_depth) + " levels");
    }
    ~Nesting() { --parser_.nesting_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    Parser& parser_;
  };

  [[noreturn]] void fail(int column, const std::string& message) const {
    throw ExpressionError(column, "column " + std::to_string(column) + ": " + message +
                                      pointed(text_, column));
  }

  void advance() { next_ = lexer_.next(); }
  bool is(std::string_view symbol) const {
    return next_.kind == Token::symbol && next_.text == symbol;
  }
  bool accept(std::string_view symbol) {
    if (!is(symbol)) return false;
    advance();
    return true;
  }
  void expect(std::string_view symbol, const std::string& where) {
    if (!accept(symbol)) fail(next_.column, "expected '" + std::string(symbol) + "' " + where);
  }

  // ---- trees -----------------------------------------------------------------------------------
  /// Builds a node; what is wrong with an operand is reported where that operand stands.
  template <class Make>
  Operand build(int column, int operator_column, const std::vector<Operand>& operands, Make make) {
    std::vector<Expression> args;
    for (const Operand& o : operands) args.push_back(o.tree);
    try {
      return {make(std::move(args)), column};
    } catch (const OperandError& error) {
      fail(error.operand < 0 ? operator_column
                             : operands[static_cast<std::size_t>(error.operand)].column,
           error.what());
    }
  }
  Operand build(Op op, int column, int operator_column, const std::vector<Operand>& operands) {
    return build(column, operator_column, operands, [op](std::vector<Expression> args) {
      return apply_op(op, std::move(args));
    });
  }

  Operand expression() {  // c ? a : b, grouping to the right
    const Nesting guard(*this);
    const Operand condition = infix(1);
    const int mark = next_.column;
    if (!accept("?")) return condition;
    const Operand yes = expression();
    expect(":", "between the two branches of '?'");
    const Operand no = expression();
    return build(Op::select, condition.column, mark, {condition, yes, no});
  }

  Operand infix(int least) {
    Operand left = prefix();
    while (next_.kind == Token::symbol) {
      const std::optional<Op> op = infix_named(next_.text);
      if (!op || syntax_of(*op).precedence < least) break;
      const int mark = next_.column;
      advance();
      const Nesting guard(*this);
      const Operand right = infix(syntax_of(*op).precedence + 1);
      left = build(*op, left.column, mark, {left, right});
    }
    for (const char* single : {"&", "|", "="})
      if (is(single))
        fail(next_.column, "unknown operator '" + std::string(single) + "', did you mean '" +
                               single + single + "'?");
    return left;
  }

  Operand prefix() {
    const int mark = next_.column;
    if (accept("-")) {
      if (next_.kind == Token::number || (next_.kind == Token::word && next_.text == "inf"))
        return literal(mark, true);  // the sign belongs to the number
      const Nesting guard(*this);
      return build(Op::negate, mark, mark, {prefix()});
    }
    if (accept("!")) {
      const Nesting guard(*this);
      return build(Op::logical_not, mark, mark, {prefix()});
    }
    return primary();
  }

  Operand primary() {
    const Token start = next_;
    if (start.kind == Token::number) return literal(start.column, false);
    if (start.kind == Token::word) return named();
    if (accept("(")) {
      const Operand inner = expression();
      expect(")", "to close the '(' in column " + std::to_string(start.column));
      return {inner.tree, start.column};
    }
    if (start.kind == Token::end) fail(start.column, "the text ends, expected a value");
    fail(start.column, "unexpected " + quoted(start.text) + ", expected a value");
  }

  Operand literal(int column, bool negative) {
    const Token token = next_;
    advance();
    const std::string digits = (negative ? "-" : "") + std::string(token.text);
    const char *first = digits.data(), *last = first + digits.size();
    if (token.text == "inf")
      return {real_constant(negative ? -std::numeric_limits<double>::infinity()
                                     : std::numeric_limits<double>::infinity()),
              column};
    if (token.text.find_first_not_of("0123456789") == std::string_view::npos) {
      std::int32_t value = 0;
      if (std::from_chars(first, last, value).ec != std::errc())
        fail(token.column, "integer " + quoted(digits) +
                               ", expected -2147483648 to 2147483647 (a real ends in .0)");
      return {index_constant(value), column};
    }
    double value = 0;
    const auto [stop, error] = std::from_chars(first, last, value);
    if (error == std::errc::result_out_of_range)
      fail(token.column, "number " + quoted(digits) + " does not fit a double");
    if (error != std::errc() || stop != last)
      fail(token.column, quoted(token.text) + " is not a number");
    return {real_constant(value), column};
  }

  Operand named() {
    const Token name = next_;
    advance();
    if (const auto table = std::find_if(tables_.begin(), tables_.end(),
                                        [&](const auto& t) { return t.name == name.text; });
        table != tables_.end())
      return read(name, *table);
    if (const std::optional<Op> op = function_named(name.text)) return call(name, *op);
    if (is("[")) refuse_table(name);
    if (is("(")) fail(name.column, quoted(name.text) + " is not a function, expected one of " +
                                       functions());
    if (name.text == "true" || name.text == "false")
      return {condition_constant(name.text == "true"), name.column};
    if (name.text == "inf")
      return {real_constant(std::numeric_limits<double>::infinity()), name.column};
    const std::optional<Op> op = variable_named(name.text);
    if (!op)
      fail(name.column, "unknown name " + quoted(name.text) + ", expected one of " + known());
    if (op == Op::score && root_ == Root::mask)
      fail(name.column, "a mask does not see 'score'");
    return {variable(*op), name.column};
  }

  std::vector<Operand> list() {
    std::vector<Operand> items;
    do {
      items.push_back(expression());
    } while (accept(","));
    return items;
  }

  Operand call(const Token& name, Op op) {
    const int wanted = syntax_of(op).args;
    expect("(", "after the function " + quoted(name.text));
    std::vector<Operand> operands;
    if (!is(")")) operands = list();
    expect(")", "or ',' in the arguments of " + quoted(name.text));
    if (operands.size() != static_cast<std::size_t>(wanted))
      fail(name.column, quoted(name.text) + " got " + std::to_string(operands.size()) +
                            (operands.size() == 1 ? " argument" : " arguments") + ", expected " +
                            std::to_string(wanted));
    return build(op, name.column, name.column, operands);
  }

  Operand read(const Token& name, const TableDeclaration& table) {
    const auto rank = static_cast<std::size_t>(table.rank);
    std::vector<Operand> subscripts;
    while (accept("[")) {
      for (Operand& more : list()) subscripts.push_back(std::move(more));
      expect("]", "or ',' in the subscripts of " + quoted(name.text));
    }
    if (subscripts.size() != rank)
      fail(name.column, "table " + quoted(name.text) + " has rank " + std::to_string(rank) +
                            ", but is read with " + std::to_string(subscripts.size()) +
                            (subscripts.size() == 1 ? " subscript" : " subscripts"));
    return build(name.column, name.column, subscripts, [&](std::vector<Expression> args) {
      return read_table(table.name, table.type, std::move(args));
    });
  }

  [[noreturn]] void refuse_table(const Token& name) const {
    if (!is_table_name(name.text))
      fail(name.column, quoted(name.text) + " is no table name, so it has no subscripts");
    std::string declared;
    for (const TableDeclaration& t : tables_) declared += (declared.empty() ? "" : ", ") + t.name;
    fail(name.column, "unknown table " + quoted(name.text) + ", " +
                          (declared.empty() ? "" : "expected one of " + declared + ", or ") +
                          "declare it: --table '" + std::string(name.text) +
                          "[...]=uniform(lo,hi)' with one length an axis");
  }

  static std::string functions() {
    std::string names;
    for (int i = 0; i < op_count; ++i)
      if (const OpSyntax& s = syntax_of(static_cast<Op>(i)); s.is_function)
        names += (names.empty() ? "" : ", ") + std::string(s.name);
    return names;
  }
  std::string known() const {
    std::string names = root_ == Root::mod ? "score, " : "";
    for (int i = 1; i < static_cast<int>(Op::constant); ++i)
      names += std::string(syntax_of(static_cast<Op>(i)).name) + ", ";
    names += "inf, true, false";
    for (const TableDeclaration& t : tables_) names += ", " + t.name + "[...]";
    return names + ", or a function: " + functions();
  }

  std::string_view text_;
  Lexer lexer_;
  const std::vector<TableDeclaration>& tables_;
  Root root_;
  int nesting_ = 0;
  Token next_;
};

void require_declarations(const std::vector<TableDeclaration>& tables) {
  for (const TableDeclaration& t : tables) {
    if (!is_table_name(t.name))
      throw std::invalid_argument("table name " + quoted(t.name) + ": expected a word of at most " +
                                  std::to_string(max_table_name) +
                                  " letters, digits and '_' that the language does not use");
    if (t.rank < 1 || t.rank > max_table_rank)
      throw std::invalid_argument("table " + quoted(t.name) + ": rank " + std::to_string(t.rank) +
                                  ", expected 1 to 4");
  }
}

Expression parse(std::string_view text, const std::vector<TableDeclaration>& tables, Root root) {
  require_declarations(tables);
  return Parser(text, tables, root).parse();
}

}  // namespace

Expression parse_mod(std::string_view text, const std::vector<TableDeclaration>& tables) {
  return parse(text, tables, Root::mod);
}
Expression parse_mask(std::string_view text, const std::vector<TableDeclaration>& tables) {
  return parse(text, tables, Root::mask);
}

}  // namespace attn
