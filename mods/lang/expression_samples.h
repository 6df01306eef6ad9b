#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "mods/lang/call.h"
#include "mods/lang/environments.h"
#include "mods/lang/expression.h"
#include "mods/lang/tables.h"
#include "mods/lang/tree_functor.h"

/// Random trees and the tables they read, for the tests of this folder.
namespace attn::samples {

inline constexpr Sizes sizes{2, 4, 2, 24, 40};

/// One table of each type and rank 1 to 4; an axis of extent 1 broadcasts.
class SampleTables {
 public:
  explicit SampleTables(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    for (float& x : reals_) x = static_cast<float>(static_cast<int>(random() % 33) - 16) / 7;
    for (std::int32_t& x : indices_) x = static_cast<std::int32_t>(random() % 9) - 2;
    for (bool& x : conditions_) x = random() % 2;
    tables_.add("slope", TensorView<const float, 1>{reals_.data(), {8}, {1}});
    tables_.add("bias", TensorView<const float, 2>{reals_.data() + 4, {8, 8}, {-1 + 9, 1}});
    tables_.add("rel", TensorView<const float, 4>{reals_.data(), {1, 4, 8, 8}, {0, 64, 8, 1}});
    tables_.add("doc", TensorView<const std::int32_t, 1>{indices_.data(), {64}, {1}});
    tables_.add("off", TensorView<const std::int32_t, 3>{indices_.data(), {2, 1, 8}, {8, 0, 1}});
    tables_.add("keep", TensorView<const bool, 2>{conditions_.data(), {8, 8}, {1, 8}});
  }
  SampleTables(const SampleTables&) = delete;
  SampleTables& operator=(const SampleTables&) = delete;
  const Tables& tables() const { return tables_; }

 private:
  std::array<float, 256> reals_;
  std::array<std::int32_t, 64> indices_;
  std::array<bool, 64> conditions_;
  Tables tables_;
};

/// Draws trees. `finite` leaves out what makes infinities and NaN.
class Trees {
 public:
  Trees(std::uint64_t seed, const Tables& tables, bool finite)
      : random_(seed), tables_(tables), finite_(finite) {}

  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  template <class T>
  const T& one_of(const std::vector<T>& all) {
    return all[static_cast<std::size_t>(below(static_cast<int>(all.size())))];
  }

  Expression draw(ValueType type, int depth) {
    switch (type) {
      case ValueType::index: return index(depth);
      case ValueType::real: return real(depth);
      case ValueType::condition: return condition(depth);
    }
    return nullptr;
  }
  /// A mask sees no score.
  void without_score() { score_ = false; }

 private:
  Expression number(int depth) { return below(3) ? real(depth) : index(depth); }

  Expression real(int depth) {
    if (depth <= 0 || below(8) == 0) return real_leaf();
    switch (below(7)) {
      case 0: return read(ValueType::real, depth);
      case 1:
        return apply_op(Op::select, {condition(depth - 1), real(depth - 1), number(depth - 1)});
      case 2: {
        std::vector<Op> functions{Op::tanh, Op::sigmoid, Op::sin, Op::cos, Op::floor};
        if (!finite_) functions.insert(functions.end(), {Op::exp, Op::log});
        return apply_op(one_of(functions), {number(depth - 1)});
      }
      case 3: return apply_op(below(2) ? Op::negate : Op::abs, {real(depth - 1)});
      case 4: return apply_op(Op::clamp, {number(depth - 1), real(0), number(0)});
      default: {
        std::vector<Op> infix{Op::add, Op::subtract, Op::multiply, Op::min, Op::max};
        if (!finite_) infix.push_back(Op::divide);
        return binary(infix, number(depth - 1), real(depth - 1));
      }
    }
  }
  Expression real_leaf() {
    const int choice = below(finite_ ? 9 : 10);
    if (choice < 5 && score_) return variable(Op::score);
    if (choice < 7) return real_constant((below(41) - 20) / 8.0);
    if (choice < 9) return real_constant((below(2001) - 1000) * 1e-3);
    return real_constant(below(2) ? std::numeric_limits<double>::infinity() : -1e30);
  }

  Expression index(int depth) {
    if (depth <= 0 || below(6) == 0) {
      if (below(3) == 0) return index_constant(below(13) - 6);
      return variable(static_cast<Op>(1 + below(9)));
    }
    switch (below(6)) {
      case 0: return read(ValueType::index, depth);
      case 1: return apply_op(below(2) ? Op::negate : Op::abs, {index(depth - 1)});
      case 2: return apply_op(Op::clamp, {index(depth - 1), index(0), index(0)});
      case 3: {
        const Expression c = condition(depth - 1);
        if (!c->inexact) return apply_op(Op::select, {c, index(depth - 1), index(depth - 1)});
        [[fallthrough]];
      }
      case 4:
        return apply_op(
            one_of<Op>({Op::divide, Op::remainder, Op::floor_div, Op::floor_mod}),
            {index(depth - 1), index_constant(below(2) ? 1 + below(9) : -1 - below(9))});
      default:
        return binary({Op::add, Op::subtract, Op::multiply, Op::min, Op::max}, index(depth - 1),
                      index(depth - 1));
    }
  }

  Expression condition(int depth) {
    if (depth <= 0 || below(10) == 0)
      return below(4) ? apply_op(Op::greater_equal, {variable(Op::q), variable(Op::kv)})
                      : condition_constant(below(2));
    switch (below(6)) {
      case 0: return read(ValueType::condition, depth);
      case 1: return apply_op(Op::logical_not, {condition(depth - 1)});
      case 2: return binary({Op::logical_and, Op::logical_or, Op::equal, Op::not_equal},
                            condition(depth - 1), condition(depth - 1));
      case 3: return apply_op(Op::select, {condition(depth - 1), condition(depth - 1),
                                           condition(depth - 1)});
      default:
        return binary({Op::less, Op::less_equal, Op::greater, Op::greater_equal, Op::equal,
                       Op::not_equal},
                      below(4) ? index(depth - 1) : real(depth - 1), number(depth - 1));
    }
  }

  Expression binary(const std::vector<Op>& ops, const Expression& a, const Expression& b) {
    const Op op = one_of(ops);
    if (op == Op::divide && b->op == Op::constant && b->value == 0)
      return apply_op(op, {b, real_constant(3)});
    return below(2) || op == Op::divide ? apply_op(op, {a, b}) : apply_op(op, {b, a});
  }

  /// Subscripts are folded into the table's axes.
  Expression read(ValueType type, int depth) {
    std::vector<Table> fitting;
    for (const Table& t : tables_.all())
      if (t.type == type) fitting.push_back(t);
    const Table t = one_of(fitting);
    std::vector<Expression> subscripts;
    for (int axis = 0; axis < t.rank; ++axis) {
      const auto extent = static_cast<std::int32_t>(t.extents[static_cast<std::size_t>(axis)]);
      const Expression i = index(depth - 2);
      subscripts.push_back(extent == 1 ? i : apply_op(Op::floor_mod, {i, index_constant(extent)}));
    }
    return read_table(t.name, t.type, subscripts);
  }

  std::mt19937_64 random_;
  const Tables& tables_;
  bool finite_;
  bool score_ = true;
};

/// One place in the index plane, or a box of them.
template <class Env>
struct Place {
  Index<Env> b, h, q, kv;
};
template <class Env>
Place<Env> place(Env& env, int b, int h, int q, int kv) {
  return {{b, &env}, {h, &env}, {q, &env}, {kv, &env}};
}

/// False where the library refuses the tree before launch: index arithmetic may leave 32 bits or
/// divide by zero.
template <class Run>
bool is_accepted(Run run) {
  RangeEnv env{sizes};
  const auto all = [](int n) { return Range<std::int64_t>(0, n - 1); };
  try {
    run(Place<RangeEnv>{{all(sizes.b), &env}, {all(sizes.hq), &env}, {all(sizes.sq), &env},
                        {all(sizes.skv), &env}});
  } catch (const std::invalid_argument&) {
    return false;
  }
  return true;
}
inline bool is_accepted(const TreeMod& mod) {
  return is_accepted([&](const Place<RangeEnv>& p) {
    call_mod(mod, Range<double>(-4.0, 4.0), p.b, p.h, p.q, p.kv);
  });
}
inline bool is_accepted(const TreeMask& mask) {
  return is_accepted([&](const Place<RangeEnv>& p) { call_mask(mask, p.b, p.h, p.q, p.kv); });
}

/// The same bits; any NaN is like any other.
inline bool same_bits(double a, double b) {
  return (a != a && b != b) || std::memcmp(&a, &b, sizeof a) == 0;
}

}  // namespace attn::samples
