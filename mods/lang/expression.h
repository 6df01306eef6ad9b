#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

/// Mods and masks as data: a typed tree that prints as C-like text (`score + slope[h] * (kv - q)`),
/// is parsed from it (mods/lang/parse.h), walked by the reference (mods/lang/tree_functor.h) and
/// compiled for the kernels (mods/lang/compile.h).
///
/// An index stands for a 32-bit integer; beside a real number it becomes one. An index never
/// depends on a real number, so what is read from a table never depends on rounding.
namespace attn {

/// What an expression gives, and what a table holds: 32-bit integers, float scores or conditions.
enum class ValueType : std::uint8_t { index, real, condition };

/// What a node of an expression does.
enum class Op : std::uint8_t {
  score, b, h, q, kv,                                              // what the functor is given
  length_b, length_hq, length_hkv, length_sq, length_skv,          // what the environment knows
  constant, read,
  negate, logical_not,
  add, subtract, multiply, divide, remainder,
  less, less_equal, greater, greater_equal, equal, not_equal,
  logical_and, logical_or, select,
  min, max, abs, clamp,
  tanh, sigmoid, exp, log, sin, cos, floor,
  floor_div, floor_mod,
};
/// How many kinds of node there are.
inline constexpr int op_count = static_cast<int>(Op::floor_mod) + 1;

struct Node;
/// A tree is never changed once built, so subtrees may be shared.
using Expression = std::shared_ptr<const Node>;

/// Built by the functions below only, which check types and limits.
struct Node {
  Op op = Op::constant;  ///< what the node does
  ValueType type = ValueType::real;  ///< of its value
  bool inexact = false;          ///< a condition that compares reals: rounding may flip it
  int depth = 1;                 ///< nodes on the longest path down
  int size = 1;                  ///< nodes, a shared one counted each time
  double value = 0;              ///< of a constant; 0 or 1 where it is a condition
  std::string table;             ///< of a read
  std::vector<Expression> args;  ///< operands, or a read's subscripts
};

/// The most levels that an expression may have.
inline constexpr int max_expression_depth = 200;
/// The most nodes.
inline constexpr int max_expression_size = 1000;
/// The most axes of a table.
inline constexpr int max_table_rank = 4;
/// The longest name of a table, in bytes.
inline constexpr int max_table_name = 23;

/// A node that cannot be built. `operand` counts from 0; -1 is the node itself.
class OperandError : public std::invalid_argument {
 public:
  OperandError(int at, const std::string& message) : std::invalid_argument(message), operand(at) {}
  int operand;  ///< which of `args` is at fault
};

/// `score`, an index or a length: any operation before `constant`.
Expression variable(Op op);
/// @throws OperandError if `value` is NaN.
Expression real_constant(double value);
Expression index_constant(std::int32_t value);  ///< any 32-bit number
Expression condition_constant(bool value);  ///< true or false

/// An operator or function (any operation after `read`) on its operands. Types follow the
/// operation: arithmetic, `min`, `max`, `abs`, `clamp` and `select` give an index where every operand
/// is one, else a real; `select` gives a real also where its condition compares reals. `remainder`,
/// `floor_div` and `floor_mod` need indices; `equal` and `not_equal` also compare two conditions.
/// @throws OperandError on a wrong count or type, a divisor that is the constant zero, or a tree
///   larger than `max_expression_depth` or `max_expression_size`.
Expression apply_op(Op op, std::vector<Expression> args);

/// `table[subscripts...]`; `type` is what the table holds.
/// @throws OperandError on a rank that is not 1 to 4, a subscript that is no index, or a bad name.
Expression read_table(const std::string& table, ValueType type, std::vector<Expression> subscripts);

/// The same node over other operands.
Expression with_args(const Expression& node, std::vector<Expression> args);
/// The `n`-th node, counted from 0 in the order of the text: a node before its operands.
/// @throws std::invalid_argument if there is none.
Expression node_at(const Expression& root, int n);
/// `root` with its `n`-th node replaced. @throws OperandError if the result does not type.
Expression replace_at(const Expression& root, int n, const Expression& by);

/// The same tree; constants are compared by their bits.
bool same_tree(const Expression& a, const Expression& b);
bool uses(const Expression& root, Op op);  ///< whether some node does `op`

/// The root of a mod is a real (or an index, which becomes one).
/// @throws std::invalid_argument else.
void require_mod(const Expression& root);
/// The root of a mask is a condition, and `score` is not read. @throws std::invalid_argument else.
void require_mask(const Expression& root);

/// The canonical text, with no more parentheses than needed: parsed, it gives the same tree.
std::string to_text(const Expression& root);

const char* name_of(ValueType type);  ///< "index", "real" or "condition"

/// How an operation is written.
struct OpSyntax {
  const char* name;    ///< "kv", "+", "tanh"
  int args;            ///< operands; a read has its rank
  int precedence;      ///< of an infix operator, 0 for all else
  bool is_function;    ///< `name(args)`
};
const OpSyntax& syntax_of(Op op);  ///< of any operation
/// Letters, digits and `_`, a letter or `_` first, at most `max_table_name` characters, and not a
/// word of the language.
bool is_table_name(std::string_view name);

}  // namespace attn
