#include "mods/lang/compile.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>
#include <vector>

#include "mods/lang/tokens.h"

namespace attn {
namespace {

/// Where an instruction finds a value.
struct Register {
  ValueType type;
  std::uint8_t number;
};

/// What the interpreter sets before the first instruction: never handed out.
int inputs_of(ValueType type) {
  switch (type) {
    case ValueType::index: return 4;
    case ValueType::real: return 1;
    case ValueType::condition: return 0;
  }
  return 0;
}

Code by_type(ValueType type, Code index, Code real, Code condition) {
  return type == ValueType::index ? index : type == ValueType::real ? real : condition;
}

/// The instruction of an operation whose operands all have type `t`.
Code code_of(Op op, ValueType t) {
  const auto pick = [t](Code index, Code real) { return by_type(t, index, real, index); };
  switch (op) {
    case Op::negate: return pick(Code::negate_index, Code::negate_real);
    case Op::add: return pick(Code::add_index, Code::add_real);
    case Op::subtract: return pick(Code::subtract_index, Code::subtract_real);
    case Op::multiply: return pick(Code::multiply_index, Code::multiply_real);
    case Op::divide: return pick(Code::divide_index, Code::divide_real);
    case Op::remainder: return Code::remainder_index;
    case Op::min: return pick(Code::min_index, Code::min_real);
    case Op::max: return pick(Code::max_index, Code::max_real);
    case Op::abs: return pick(Code::abs_index, Code::abs_real);
    case Op::tanh: return Code::tanh;
    case Op::sigmoid: return Code::sigmoid;
    case Op::exp: return Code::exp;
    case Op::log: return Code::log;
    case Op::sin: return Code::sin;
    case Op::cos: return Code::cos;
    case Op::floor: return Code::floor;
    case Op::floor_div: return Code::floor_div;
    case Op::floor_mod: return Code::floor_mod;
    case Op::less: return pick(Code::less_index, Code::less_real);
    case Op::less_equal: return pick(Code::less_equal_index, Code::less_equal_real);
    case Op::greater: return pick(Code::greater_index, Code::greater_real);
    case Op::greater_equal: return pick(Code::greater_equal_index, Code::greater_equal_real);
    case Op::equal: return by_type(t, Code::equal_index, Code::equal_real, Code::same_condition);
    case Op::not_equal: return pick(Code::not_equal_index, Code::not_equal_real);
    case Op::logical_not: return Code::logical_not;
    case Op::logical_and: return Code::logical_and;
    case Op::logical_or: return Code::logical_or;
    default: throw std::logic_error(std::string("compile: unexpected ") + syntax_of(op).name);
  }
}

/// Operands are computed from left to right, as the tree is walked, so that reads keep their order.
/// A register is free again once the instruction that reads it is written.
class Compiler {
 public:
  Compiler(const Expression& root, const Tables& tables) : root_(root) {
    const std::vector<TableDeclaration> read = tables_read(root);
    tables.require(root);
    require_room("tables", read.size(), Program::max_tables);
    for (const TableDeclaration& t : read) bind(*tables.find(t.name));
  }

  Program compile(ValueType result) {
    program_.result = evaluate(root_, result).number;
    return program_;
  }

 private:
  void require_room(const char* what, std::size_t wanted, int room) const {
    if (wanted > static_cast<std::size_t>(room))
      throw std::invalid_argument("expression too large for a program: needs more than " +
                                  std::to_string(room) + " " + what + ": " +
                                  detail::quoted(to_text(root_)));
  }

  void bind(const Table& table) {
    ProgramTable& t = program_.tables[program_.table_count++];
    t.data = table.data;
    t.rank = table.rank;
    for (std::size_t axis = 0; axis < table.extents.size(); ++axis) {
      t.extents[axis] = static_cast<std::int32_t>(table.extents[axis]);
      t.strides[axis] = table.strides[axis];
    }
    static_assert(sizeof t.name == max_table_name + 1);
    std::memcpy(t.name, table.name.c_str(), table.name.size() + 1);
  }
  std::uint8_t table_number(const std::string& name) const {
    const auto* first = program_.tables;
    return static_cast<std::uint8_t>(
        std::find_if(first, first + program_.table_count,
                     [&](const ProgramTable& t) { return name == t.name; }) - first);
  }

  std::uint8_t constant_number(double value) {
    const auto bits = [](double x) { return std::bit_cast<std::uint64_t>(x); };
    double *first = program_.constants, *last = first + program_.constant_count;
    double* found = std::find_if(first, last, [&](double c) { return bits(c) == bits(value); });
    if (found == last) {
      require_room("constants", static_cast<std::size_t>(program_.constant_count) + 1,
                   Program::max_constants);
      *last = value;
      ++program_.constant_count;
    }
    return static_cast<std::uint8_t>(found - first);
  }

  // ---- registers -------------------------------------------------------------------------------
  std::uint32_t& in_use(ValueType type) { return in_use_[static_cast<std::size_t>(type)]; }

  void release(const Register& r) {
    if (r.number >= inputs_of(r.type)) in_use(r.type) &= ~(1u << r.number);
  }
  Register acquire(ValueType type) {
    int n = inputs_of(type);
    while (n < Program::registers && (in_use(type) >> n & 1u)) ++n;
    require_room(type == ValueType::index  ? "index registers"
                 : type == ValueType::real ? "real registers"
                                           : "condition registers",
                 static_cast<std::size_t>(n) + 1, Program::registers);
    in_use(type) |= 1u << n;
    return {type, static_cast<std::uint8_t>(n)};
  }

  // ---- instructions ----------------------------------------------------------------------------
  Register emit(Code code, ValueType type, const std::vector<Register>& sources,
                std::uint8_t which = 0) {
    require_room("instructions", static_cast<std::size_t>(program_.instruction_count) + 1,
                 Program::max_instructions);
    for (const Register& r : sources) release(r);
    const Register target = acquire(type);
    Instruction& in = program_.instructions[program_.instruction_count++];
    in.code = code;
    in.target = target.number;
    in.which = which;
    for (std::size_t i = 0; i < sources.size(); ++i) in.source[i] = sources[i].number;
    return target;
  }

  /// The value of a node as `type`; an index becomes a real where one is wanted.
  Register evaluate(const Expression& e, ValueType type) {
    const Register r = evaluate(e);
    return r.type == type ? r : emit(Code::to_real, ValueType::real, {r});
  }

  Register evaluate(const Expression& e) {
    switch (e->op) {
      case Op::score: return {ValueType::real, 0};
      case Op::b: return {ValueType::index, 0};
      case Op::h: return {ValueType::index, 1};
      case Op::q: return {ValueType::index, 2};
      case Op::kv: return {ValueType::index, 3};
      case Op::length_b: return emit(Code::length_b, e->type, {});
      case Op::length_hq: return emit(Code::length_hq, e->type, {});
      case Op::length_hkv: return emit(Code::length_hkv, e->type, {});
      case Op::length_sq: return emit(Code::length_sq, e->type, {});
      case Op::length_skv: return emit(Code::length_skv, e->type, {});
      case Op::constant:
        return emit(by_type(e->type, Code::load_index, Code::load_real, Code::load_condition),
                    e->type, {}, constant_number(e->value));
      case Op::read:
        return emit(by_type(e->type, Code::read_index, Code::read_real, Code::read_condition),
                    e->type, operands(e, ValueType::index), table_number(e->table));
      case Op::select: return evaluate_select(e);
      case Op::clamp: return evaluate_clamp(e);
      default: return evaluate_operation(e);
    }
  }

  std::vector<Register> operands(const Expression& e, ValueType type) {
    std::vector<Register> all;
    for (const Expression& arg : e->args) all.push_back(evaluate(arg, type));
    return all;
  }

  /// Operands share a type: real beside a real, and for the functions of reals.
  Register evaluate_operation(const Expression& e) {
    ValueType type = e->type;
    if (type == ValueType::condition) {
      type = e->args[0]->type;
      for (const Expression& arg : e->args)
        if (arg->type == ValueType::real) type = ValueType::real;
    }
    if (e->op == Op::not_equal && type == ValueType::condition)
      return emit(Code::logical_not, type, {emit(Code::same_condition, type, operands(e, type))});
    return emit(code_of(e->op, type), e->type, operands(e, type));
  }

  Register evaluate_select(const Expression& e) {
    const Register c = evaluate(e->args[0]);
    const Register a = evaluate(e->args[1], e->type), b = evaluate(e->args[2], e->type);
    return emit(by_type(e->type, Code::select_index, Code::select_real, Code::select_condition),
                e->type, {c, a, b});
  }

  /// min(max(x, low), high), as `attn::clamp`.
  Register evaluate_clamp(const Expression& e) {
    const std::vector<Register> x = operands(e, e->type);
    const Register raised = emit(code_of(Op::max, e->type), e->type, {x[0], x[1]});
    return emit(code_of(Op::min, e->type), e->type, {raised, x[2]});
  }

  const Expression& root_;
  Program program_{};
  std::array<std::uint32_t, 3> in_use_{};  // a bit a register, by type
};

}  // namespace

ProgramMod compile_mod(const Expression& mod, const Tables& tables) {
  require_mod(mod);
  return {Compiler(mod, tables).compile(ValueType::real)};
}

ProgramMask compile_mask(const Expression& mask, const Tables& tables) {
  require_mask(mask);
  return {Compiler(mask, tables).compile(ValueType::condition)};
}

}  // namespace attn
