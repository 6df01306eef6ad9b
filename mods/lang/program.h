#pragma once

#include <cstdint>
#include <type_traits>

#include "mods/lang/captured.h"
#include "mods/lang/evaluate.h"

/// An expression compiled to a short list of instructions: plain data that travels to a kernel by
/// value, so that a mod that nobody compiled runs in a kernel that was. See mods/lang/compile.h.
///
/// A kernel that takes one as a parameter declares it `const __grid_constant__`: else each thread
/// copies it to its own memory, because instructions are addressed by a variable.
namespace attn {

#if defined(__CUDACC__)
#define ATTN_NOINLINE __host__ __device__ __noinline__
#else
#define ATTN_NOINLINE __attribute__((noinline))
#endif

/// Instructions by the type of their operands. Those on two operands take registers 0 and 1.
enum class Code : std::uint8_t {
  // -> index
  load_index, length_b, length_hq, length_hkv, length_sq, length_skv, read_index,
  negate_index, add_index, subtract_index, multiply_index, divide_index, remainder_index,
  min_index, max_index, abs_index, floor_div, floor_mod, select_index,
  // -> real
  load_real, to_real, read_real,
  negate_real, add_real, subtract_real, multiply_real, divide_real, min_real, max_real, abs_real,
  tanh, sigmoid, exp, log, sin, cos, floor, select_real,
  // -> condition
  load_condition, read_condition,
  less_index, less_equal_index, greater_index, greater_equal_index, equal_index, not_equal_index,
  less_real, less_equal_real, greater_real, greater_equal_real, equal_real, not_equal_real,
  logical_not, logical_and, logical_or, same_condition, select_condition,
};

/// `source` are registers: of the operands, or of a read's subscripts. `which` is the constant or
/// the table. Each type has registers of its own.
struct Instruction {
  Code code;               ///< what is done
  std::uint8_t target;     ///< the register of the result
  std::uint8_t which;      ///< index of the constant or table
  std::uint8_t source[4];  ///< one an operand or subscript
};

/// Captured memory of a program. A caller that moves tables to a device replaces `data`.
struct ProgramTable {
  const void* data;         ///< where the code that runs can read it
  std::int64_t strides[4];  ///< in elements, of the first `rank` axes
  std::int32_t extents[4];  ///< of the first `rank` axes
  std::int32_t rank;        ///< 1 to 4
  char name[24];            ///< for messages, ended by a NUL
  /// The same memory as a captured tensor, of this rank and type.
  template <int Rank, class T>
  ATTN_INLINE Captured<Rank, T> captured() const {
    Captured<Rank, T> c;
    c.tensor.data = static_cast<const T*>(data);
    for (int axis = 0; axis < Rank; ++axis) {
      c.tensor.extents[axis] = extents[axis];
      c.tensor.strides[axis] = strides[axis];
    }
    c.name = name;
    return c;
  }
};

/// An expression, compiled: instructions over registers, and the tables that they read.
struct Program {
  static constexpr int max_instructions = 96, max_constants = 32, max_tables = 8;  ///< of a program
  /// Registers of each type. Index registers 0 to 3 begin as b, h, q, kv; real register 0 as score.
  static constexpr int registers = 16;

  Instruction instructions[max_instructions];  ///< in the order in which they run
  double constants[max_constants];  ///< of all three types
  ProgramTable tables[max_tables];  ///< in order of first read
  std::int32_t instruction_count, constant_count, table_count;  ///< used of each array
  std::int32_t result;  ///< the register of the root: a real of a mod, a condition of a mask
};
static_assert(std::is_trivially_copyable_v<Program>);

/// The state of one run.
template <class Env>
struct ProgramRegisters {
  typename Env::Int index[Program::registers];     ///< of whole numbers
  typename Env::Score real[Program::registers];    ///< of scores
  ConditionOf<Env> condition[Program::registers];  ///< of conditions
  /// Puts the indices where programs expect them.
  ATTN_INLINE void start(const Index<Env>& b, const Index<Env>& h, const Index<Env>& q,
                         const Index<Env>& kv) {
    index[0] = b.value;
    index[1] = h.value;
    index[2] = q.value;
    index[3] = kv.value;
  }
};

namespace detail {

/// Runs an instruction that reads a table.
template <class T, class Env>
ATTN_INLINE auto read_table(const Program& p, const Instruction& in, ProgramRegisters<Env>& r,
                            Env* env) {
  const ProgramTable& t = p.tables[in.which];
  const auto at = [&](int axis) { return Index<Env>{r.index[in.source[axis]], env}; };
  switch (t.rank) {
    case 1: return t.template captured<1, T>()(at(0));
    case 2: return t.template captured<2, T>()(at(0), at(1));
    case 3: return t.template captured<3, T>()(at(0), at(1), at(2));
    default: return t.template captured<4, T>()(at(0), at(1), at(2), at(3));
  }
}

/// Runs an instruction whose result is an index.
template <class Env>
ATTN_INLINE void step_index(const Program& p, const Instruction& in, ProgramRegisters<Env>& r,
                            Env* env) {
  using Int = typename Env::Int;
  const auto x = [&](int i) { return Index<Env>{r.index[in.source[i]], env}; };
  Int& out = r.index[in.target];
  switch (in.code) {
    case Code::load_index: out = Int(static_cast<std::int32_t>(p.constants[in.which])); break;
    case Code::length_b: out = Int(env->sizes.b); break;
    case Code::length_hq: out = Int(env->sizes.hq); break;
    case Code::length_hkv: out = Int(env->sizes.hkv); break;
    case Code::length_sq: out = Int(env->sizes.sq); break;
    case Code::length_skv: out = Int(env->sizes.skv); break;
    case Code::read_index: out = read_table<std::int32_t>(p, in, r, env).value; break;
    case Code::negate_index: out = (-x(0)).value; break;
    case Code::add_index: out = (x(0) + x(1)).value; break;
    case Code::subtract_index: out = (x(0) - x(1)).value; break;
    case Code::multiply_index: out = (x(0) * x(1)).value; break;
    case Code::divide_index: out = (x(0) / x(1)).value; break;
    case Code::remainder_index: out = (x(0) % x(1)).value; break;
    case Code::min_index: out = attn::min(x(0), x(1)).value; break;
    case Code::max_index: out = attn::max(x(0), x(1)).value; break;
    case Code::abs_index: out = attn::abs(x(0)).value; break;
    case Code::floor_div: out = attn::floor_div(x(0), x(1)).value; break;
    case Code::floor_mod: out = attn::floor_mod(x(0), x(1)).value; break;
    case Code::select_index:
      out = attn::select(decided(r.condition[in.source[0]]), x(1), x(2)).value;
      break;
    default: break;
  }
}

/// Runs an instruction whose result is a score.
template <class Env>
ATTN_INLINE void step_real(const Program& p, const Instruction& in, ProgramRegisters<Env>& r,
                           Env* env) {
  using Score = typename Env::Score;
  const auto x = [&](int i) -> const Score& { return r.real[in.source[i]]; };
  Score& out = r.real[in.target];
  switch (in.code) {
    case Code::load_real: out = literal<Score>(p.constants[in.which]); break;
    case Code::to_real: out = env->to_score(r.index[in.source[0]]); break;
    case Code::read_real: out = read_table<float>(p, in, r, env); break;
    case Code::negate_real: out = -x(0); break;
    case Code::add_real: out = x(0) + x(1); break;
    case Code::subtract_real: out = x(0) - x(1); break;
    case Code::multiply_real: out = x(0) * x(1); break;
    case Code::divide_real: out = x(0) / x(1); break;
    case Code::min_real: out = attn::min(x(0), x(1)); break;
    case Code::max_real: out = attn::max(x(0), x(1)); break;
    case Code::abs_real: out = attn::abs(x(0)); break;
    case Code::tanh: out = attn::tanh(x(0)); break;
    case Code::sigmoid: out = attn::sigmoid(x(0)); break;
    case Code::exp: out = attn::exp(x(0)); break;
    case Code::log: out = attn::log(x(0)); break;
    case Code::sin: out = attn::sin(x(0)); break;
    case Code::cos: out = attn::cos(x(0)); break;
    case Code::floor: out = attn::floor(x(0)); break;
    case Code::select_real: out = attn::select(r.condition[in.source[0]], x(1), x(2)); break;
    default: break;
  }
}

/// Runs an instruction whose result is a condition.
template <class Env>
ATTN_INLINE void step_condition(const Program& p, const Instruction& in,
                                ProgramRegisters<Env>& r, Env* env) {
  using Condition = ConditionOf<Env>;
  const auto i = [&](int k) { return Index<Env>{r.index[in.source[k]], env}; };
  const auto x = [&](int k) -> const auto& { return r.real[in.source[k]]; };
  const auto c = [&](int k) -> const Condition& { return r.condition[in.source[k]]; };
  Condition& out = r.condition[in.target];
  switch (in.code) {
    case Code::load_condition: out = Condition(p.constants[in.which] != 0); break;
    case Code::read_condition: out = read_table<bool>(p, in, r, env); break;
    case Code::less_index: out = i(0) < i(1); break;
    case Code::less_equal_index: out = i(0) <= i(1); break;
    case Code::greater_index: out = i(0) > i(1); break;
    case Code::greater_equal_index: out = i(0) >= i(1); break;
    case Code::equal_index: out = i(0) == i(1); break;
    case Code::not_equal_index: out = i(0) != i(1); break;
    case Code::less_real: out = x(0) < x(1); break;
    case Code::less_equal_real: out = x(0) <= x(1); break;
    case Code::greater_real: out = x(0) > x(1); break;
    case Code::greater_equal_real: out = x(0) >= x(1); break;
    case Code::equal_real: out = x(0) == x(1); break;
    case Code::not_equal_real: out = x(0) != x(1); break;
    case Code::logical_not: out = !c(0); break;
    case Code::logical_and: out = c(0) && c(1); break;
    case Code::logical_or: out = c(0) || c(1); break;
    case Code::same_condition: out = same_condition(c(0), c(1)); break;
    case Code::select_condition: out = select_condition(c(0), c(1), c(2)); break;
    default: break;
  }
}

/// Runs every instruction once, in order: no branch depends on a value. Not inlined, so that a
/// kernel holds the interpreter once however often it calls the mod.
template <class Env>
ATTN_NOINLINE void run_program(const Program& p, ProgramRegisters<Env>& r, Env* env) {
  for (int i = 0; i < p.instruction_count; ++i) {
    const Instruction& in = p.instructions[i];
    if (in.code < Code::load_real)
      step_index(p, in, r, env);
    else if (in.code < Code::load_condition)
      step_real(p, in, r, env);
    else
      step_condition(p, in, r, env);
  }
}

}  // namespace detail

/// A compiled score mod, for every environment of host and kernels.
struct ProgramMod {
  Program program;  ///< of a mod; no instructions: the identity

  template <class Score, class Index>
  ATTN_HOST_DEVICE Score operator()(Score s, Index b, Index h, Index q, Index kv) const {
    using Env = std::remove_pointer_t<decltype(q.env)>;
    if (program.instruction_count == 0) return s;  // the identity
    ProgramRegisters<Env> r;
    r.start(b, h, q, kv);
    r.real[0] = s;
    detail::run_program(program, r, q.env);
    return r.real[program.result];
  }
};

/// A compiled mask.
struct ProgramMask {
  Program program;  ///< of a mask

  template <class Index>
  ATTN_HOST_DEVICE auto operator()(Index b, Index h, Index q, Index kv) const {
    using Env = std::remove_pointer_t<decltype(q.env)>;
    const Instruction& first = program.instructions[0];
    if (program.instruction_count == 1 && first.code == Code::load_condition)  // true or false
      return ConditionOf<Env>(program.constants[first.which] != 0);
    ProgramRegisters<Env> r;
    r.start(b, h, q, kv);
    detail::run_program(program, r, q.env);
    return r.condition[program.result];
  }
};

}  // namespace attn
