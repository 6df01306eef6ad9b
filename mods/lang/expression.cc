#include "mods/lang/expression.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

namespace attn {
namespace {

constexpr OpSyntax syntax[op_count] = {
    {"score", 0, 0, false},   {"b", 0, 0, false},        {"h", 0, 0, false},
    {"q", 0, 0, false},       {"kv", 0, 0, false},       {"B", 0, 0, false},
    {"Hq", 0, 0, false},      {"Hkv", 0, 0, false},      {"Sq", 0, 0, false},
    {"Skv", 0, 0, false},     {"constant", 0, 0, false}, {"read", 0, 0, false},
    {"-", 1, 0, false},       {"!", 1, 0, false},        {"+", 2, 6, false},
    {"-", 2, 6, false},       {"*", 2, 7, false},        {"/", 2, 7, false},
    {"%", 2, 7, false},       {"<", 2, 5, false},        {"<=", 2, 5, false},
    {">", 2, 5, false},       {">=", 2, 5, false},       {"==", 2, 4, false},
    {"!=", 2, 4, false},      {"&&", 2, 3, false},       {"||", 2, 2, false},
    {"select", 3, 0, true},   {"min", 2, 0, true},       {"max", 2, 0, true},
    {"abs", 1, 0, true},      {"clamp", 3, 0, true},     {"tanh", 1, 0, true},
    {"sigmoid", 1, 0, true},  {"exp", 1, 0, true},       {"log", 1, 0, true},
    {"sin", 1, 0, true},      {"cos", 1, 0, true},       {"floor", 1, 0, true},
    {"floor_div", 2, 0, true}, {"floor_mod", 2, 0, true},
};

bool is_type(const Expression& e, ValueType t) { return e->type == t; }
bool is_zero(const Expression& e) { return e->op == Op::constant && e->value == 0; }

Expression finish(Node node) {
  for (const Expression& arg : node.args) {
    node.depth = std::max(node.depth, arg->depth + 1);
    node.size += arg->size;
  }
  if (node.depth > max_expression_depth)
    throw OperandError(-1, "nested " + std::to_string(node.depth) + " deep, expected at most " +
                               std::to_string(max_expression_depth));
  if (node.size > max_expression_size)
    throw OperandError(-1, "more than " + std::to_string(max_expression_size) +
                               " operations and operands, expected fewer");
  return std::make_shared<const Node>(std::move(node));
}

/// Checks operands of one node and says what is wrong in the node's own words.
struct Operands {
  Op op;
  const std::vector<Expression>& args;

  std::string name() const { return std::string("'") + syntax_of(op).name + "'"; }
  [[noreturn]] void refuse(std::size_t i, const std::string& expected) const {
    throw OperandError(static_cast<int>(i), name() + " got a value of type " +
                                                name_of(args[i]->type) + ", expected " + expected);
  }
  void all(ValueType type, const std::string& expected) const {
    for (std::size_t i = 0; i < args.size(); ++i)
      if (!is_type(args[i], type)) refuse(i, expected);
  }
  /// Numbers from `first` on: an index where all are, else a real.
  ValueType numbers(std::size_t first = 0) const {
    bool indices = true;
    for (std::size_t i = first; i < args.size(); ++i) {
      if (is_type(args[i], ValueType::condition)) refuse(i, "an index or a real number");
      indices &= is_type(args[i], ValueType::index);
    }
    return indices ? ValueType::index : ValueType::real;
  }
  void nonzero_divisor() const {
    if (is_zero(args[1])) throw OperandError(1, name() + " divides by zero");
  }
};

ValueType type_of_comparison(const Operands& o, bool of_conditions) {
  if (of_conditions && is_type(o.args[0], ValueType::condition))
    o.all(ValueType::condition, "a condition, as on the left");
  else if (is_type(o.args[0], ValueType::condition))
    o.refuse(0, "a number (a < b < c is written a < b && b < c)");
  else
    o.numbers();
  return ValueType::condition;
}

ValueType type_of_select(const Operands& o) {
  const Expression &c = o.args[0], &a = o.args[1], &b = o.args[2];
  if (!is_type(c, ValueType::condition)) o.refuse(0, "a condition");
  if (is_type(a, ValueType::condition)) {
    if (!is_type(b, ValueType::condition)) o.refuse(2, "a condition, as in the other branch");
    return ValueType::condition;
  }
  if (is_type(b, ValueType::condition)) o.refuse(2, "a number, as in the other branch");
  return c->inexact ? ValueType::real : o.numbers(1);
}

ValueType type_of(const Operands& o) {
  switch (o.op) {
    case Op::negate: case Op::add: case Op::subtract: case Op::multiply:
    case Op::min: case Op::max: case Op::abs: case Op::clamp:
      return o.numbers();
    case Op::divide:
      o.nonzero_divisor();
      return o.numbers();
    case Op::remainder: case Op::floor_div: case Op::floor_mod:
      o.all(ValueType::index, "an index");
      o.nonzero_divisor();
      return ValueType::index;
    case Op::less: case Op::less_equal: case Op::greater: case Op::greater_equal:
      return type_of_comparison(o, false);
    case Op::equal: case Op::not_equal:
      return type_of_comparison(o, true);
    case Op::logical_not: case Op::logical_and: case Op::logical_or:
      o.all(ValueType::condition, "a condition");
      return ValueType::condition;
    case Op::select:
      return type_of_select(o);
    case Op::tanh: case Op::sigmoid: case Op::exp: case Op::log:
    case Op::sin: case Op::cos: case Op::floor:
      o.numbers();
      return ValueType::real;
    default:
      throw OperandError(-1, o.name() + " takes no operands");
  }
}

Expression constant(ValueType type, double value) {
  Node node;
  node.type = type;
  node.value = value;
  return finish(std::move(node));
}

/// Counts down through the nodes in the order of the text.
const Expression* find_node(const Expression& root, int& n) {
  if (n-- == 0) return &root;
  for (const Expression& arg : root->args) {
    if (n >= arg->size) {
      n -= arg->size;
    } else {
      return find_node(arg, n);
    }
  }
  return nullptr;
}

}  // namespace

const OpSyntax& syntax_of(Op op) { return syntax[static_cast<int>(op)]; }

const char* name_of(ValueType type) {
  switch (type) {
    case ValueType::index: return "index";
    case ValueType::real: return "real";
    case ValueType::condition: return "condition";
  }
  return "?";
}

bool is_table_name(std::string_view name) {
  const auto word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= '0' && c <= '9');
  };
  if (name.empty() || name.size() > max_table_name || (name[0] >= '0' && name[0] <= '9') ||
      !std::all_of(name.begin(), name.end(), word))
    return false;
  if (name == "H" || name == "inf" || name == "true" || name == "false") return false;
  return std::none_of(std::begin(syntax), std::end(syntax),
                      [&](const OpSyntax& s) { return name == s.name; });
}

Expression variable(Op op) {
  if (op >= Op::constant) throw OperandError(-1, "op: no variable, expected score, b, h, q, ...");
  Node node;
  node.op = op;
  node.type = op == Op::score ? ValueType::real : ValueType::index;
  return finish(std::move(node));
}
Expression real_constant(double value) {
  if (std::isnan(value)) throw OperandError(-1, "constant: NaN, expected a number");
  return constant(ValueType::real, value);
}
Expression index_constant(std::int32_t value) { return constant(ValueType::index, value); }
Expression condition_constant(bool value) { return constant(ValueType::condition, value); }

Expression apply_op(Op op, std::vector<Expression> args) {
  if (op <= Op::read) throw OperandError(-1, "op: expected an operator or a function");
  const Operands operands{op, args};
  const auto wanted = static_cast<std::size_t>(syntax_of(op).args);
  if (args.size() != wanted)
    throw OperandError(-1, operands.name() + " got " + std::to_string(args.size()) +
                               (args.size() == 1 ? " operand" : " operands") + ", expected " +
                               std::to_string(wanted));
  Node node;
  node.op = op;
  node.type = type_of(operands);
  if (node.type == ValueType::condition)
    node.inexact = std::any_of(args.begin(), args.end(), [](const Expression& e) {
      return e->inexact || is_type(e, ValueType::real);
    });
  node.args = std::move(args);
  return finish(std::move(node));
}

Expression read_table(const std::string& table, ValueType type,
                      std::vector<Expression> subscripts) {
  if (!is_table_name(table))
    throw OperandError(-1, "table name '" + table + "': expected a word of at most " +
                               std::to_string(max_table_name) + " letters, digits and '_'");
  if (subscripts.empty() || subscripts.size() > max_table_rank)
    throw OperandError(-1, "table '" + table + "': " + std::to_string(subscripts.size()) +
                               " subscripts, expected 1 to 4");
  for (std::size_t i = 0; i < subscripts.size(); ++i)
    if (!is_type(subscripts[i], ValueType::index))
      throw OperandError(static_cast<int>(i),
                         "subscript of '" + table + "' is a " + name_of(subscripts[i]->type) +
                             ", expected an index (one that does not depend on a real number)");
  Node node;
  node.op = Op::read;
  node.type = type;
  node.table = table;
  node.args = std::move(subscripts);
  return finish(std::move(node));
}

Expression with_args(const Expression& node, std::vector<Expression> args) {
  if (node->op == Op::read) return read_table(node->table, node->type, std::move(args));
  if (args.empty() && node->args.empty()) return node;
  return apply_op(node->op, std::move(args));
}

Expression node_at(const Expression& root, int n) {
  int left = n;
  const Expression* found = n < 0 || n >= root->size ? nullptr : find_node(root, left);
  if (!found)
    throw std::invalid_argument("n: " + std::to_string(n) + ", expected 0 to " +
                                std::to_string(root->size - 1));
  return *found;
}

Expression replace_at(const Expression& root, int n, const Expression& by) {
  if (n < 0 || n >= root->size) node_at(root, n);  // throws
  if (n == 0) return by;
  std::vector<Expression> args = root->args;
  --n;
  for (Expression& arg : args) {
    if (n < arg->size) {
      arg = replace_at(arg, n, by);
      break;
    }
    n -= arg->size;
  }
  return with_args(root, std::move(args));
}

bool same_tree(const Expression& a, const Expression& b) {
  return a == b ||
         (a->op == b->op && a->type == b->type && a->table == b->table &&
          std::bit_cast<std::uint64_t>(a->value) == std::bit_cast<std::uint64_t>(b->value) &&
          std::equal(a->args.begin(), a->args.end(), b->args.begin(), b->args.end(), same_tree));
}

bool uses(const Expression& root, Op op) {
  return root->op == op || std::any_of(root->args.begin(), root->args.end(),
                                       [&](const Expression& arg) { return uses(arg, op); });
}

void require_mod(const Expression& root) {
  if (root->type == ValueType::condition)
    throw std::invalid_argument("a mod gives a real number, but this is a condition: " +
                                to_text(root));
}
void require_mask(const Expression& root) {
  if (root->type != ValueType::condition)
    throw std::invalid_argument(std::string("a mask gives a condition, but this has type ") +
                                name_of(root->type) + ": " + to_text(root));
  if (uses(root, Op::score))
    throw std::invalid_argument("a mask does not see 'score': " + to_text(root));
}

}  // namespace attn
