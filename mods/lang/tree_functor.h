#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "mods/lang/evaluate.h"
#include "mods/lang/expression.h"
#include "mods/lang/tables.h"

/// An expression as a functor that walks its tree: what the reference runs. The kernels run a
/// compiled program (mods/lang/program.h) instead, so that a fault in one way is seen by the other.
namespace attn {
namespace detail {

/// One evaluation. Operands are evaluated from left to right, so that captured reads are counted in
/// the order of the text.
template <class Env>
class TreeWalk {
 public:
  using Score = typename Env::Score;
  using Condition = ConditionOf<Env>;

  const Tables& tables;
  Index<Env> b, h, q, kv;
  Score score{};

  Score real(const Node& n) const {
    if (n.type == ValueType::index) return index(n).score();
    switch (n.op) {
      case Op::score: return score;
      case Op::constant: return literal<Score>(n.value);
      case Op::read: return read<float>(n);
      case Op::select: {
        const Condition c = condition(*n.args[0]);
        const Score a = real(*n.args[1]), otherwise = real(*n.args[2]);
        return attn::select(c, a, otherwise);
      }
      default: return combine(n.op, operands<Score>(n, [this](const Node& x) { return real(x); }));
    }
  }

  Index<Env> index(const Node& n) const {
    switch (n.op) {
      case Op::b: return b;
      case Op::h: return h;
      case Op::q: return q;
      case Op::kv: return kv;
      case Op::length_b: return whole(sizes(q).b);
      case Op::length_hq: return whole(sizes(q).hq);
      case Op::length_hkv: return whole(sizes(q).hkv);
      case Op::length_sq: return whole(sizes(q).sq);
      case Op::length_skv: return whole(sizes(q).skv);
      case Op::constant: return whole(static_cast<std::int32_t>(n.value));
      case Op::read: return read<std::int32_t>(n);
      case Op::select: {
        const Condition c = condition(*n.args[0]);
        const Index<Env> a = index(*n.args[1]), otherwise = index(*n.args[2]);
        return attn::select(decided(c), a, otherwise);
      }
      default: {
        const auto x = operands<Index<Env>>(n, [this](const Node& arg) { return index(arg); });
        switch (n.op) {
          case Op::remainder: return x[0] % x[1];
          case Op::floor_div: return attn::floor_div(x[0], x[1]);
          case Op::floor_mod: return attn::floor_mod(x[0], x[1]);
          default: return combine(n.op, x);
        }
      }
    }
  }

  Condition condition(const Node& n) const {
    if (n.op == Op::constant) return Condition(n.value != 0);
    if (n.op == Op::read) return Condition(read<bool>(n));
    const ValueType a = n.args[0]->type, other = n.args.back()->type;
    if (a == ValueType::condition)
      return combine(n.op, operands<Condition>(n, [this](const Node& x) { return condition(x); }));
    if (a == ValueType::index && other == ValueType::index)
      return compare(n.op, operands<Index<Env>>(n, [this](const Node& x) { return index(x); }));
    return compare(n.op, operands<Score>(n, [this](const Node& x) { return real(x); }));
  }

 private:
  [[noreturn]] static void unexpected(Op op) {
    throw std::logic_error(std::string("expression tree: unexpected ") + syntax_of(op).name);
  }
  Index<Env> whole(std::int32_t value) const { return {typename Env::Int(value), q.env}; }

  /// At most three, in order; those left over repeat the first.
  template <class X, class Evaluate>
  std::array<X, 3> operands(const Node& n, Evaluate evaluate) const {
    const X first = evaluate(*n.args[0]);
    std::array<X, 3> x{first, first, first};
    for (std::size_t i = 1; i < n.args.size(); ++i) x[i] = evaluate(*n.args[i]);
    return x;
  }

  /// Arithmetic that indices and reals have in common, and the functions of reals.
  template <class X>
  static X combine(Op op, const std::array<X, 3>& x) {
    switch (op) {
      case Op::negate: return -x[0];
      case Op::add: return x[0] + x[1];
      case Op::subtract: return x[0] - x[1];
      case Op::multiply: return x[0] * x[1];
      case Op::divide: return x[0] / x[1];
      case Op::min: return attn::min(x[0], x[1]);
      case Op::max: return attn::max(x[0], x[1]);
      case Op::clamp: return attn::clamp(x[0], x[1], x[2]);
      case Op::abs: return attn::abs(x[0]);
      default: break;
    }
    if constexpr (std::is_same_v<X, Score>) {
      switch (op) {
        case Op::tanh: return attn::tanh(x[0]);
        case Op::sigmoid: return attn::sigmoid(x[0]);
        case Op::exp: return attn::exp(x[0]);
        case Op::log: return attn::log(x[0]);
        case Op::sin: return attn::sin(x[0]);
        case Op::cos: return attn::cos(x[0]);
        case Op::floor: return attn::floor(x[0]);
        default: break;
      }
    }
    unexpected(op);
  }
  static Condition combine(Op op, const std::array<Condition, 3>& c) {
    switch (op) {
      case Op::logical_not: return !c[0];
      case Op::logical_and: return c[0] && c[1];
      case Op::logical_or: return c[0] || c[1];
      case Op::equal: return same_condition(c[0], c[1]);
      case Op::not_equal: return !same_condition(c[0], c[1]);
      case Op::select: return select_condition(c[0], c[1], c[2]);
      default: unexpected(op);
    }
  }
  template <class X>
  static Condition compare(Op op, const std::array<X, 3>& x) {
    switch (op) {
      case Op::less: return x[0] < x[1];
      case Op::less_equal: return x[0] <= x[1];
      case Op::greater: return x[0] > x[1];
      case Op::greater_equal: return x[0] >= x[1];
      case Op::equal: return x[0] == x[1];
      case Op::not_equal: return x[0] != x[1];
      default: unexpected(op);
    }
  }

  template <class T>
  auto read(const Node& n) const {
    const Table& table = *tables.find(n.table);
    std::array<Index<Env>, max_table_rank> i{q, q, q, q};
    for (std::size_t axis = 0; axis < n.args.size(); ++axis) i[axis] = index(*n.args[axis]);
    switch (n.args.size()) {
      case 1: return table.captured<1, T>()(i[0]);
      case 2: return table.captured<2, T>()(i[0], i[1]);
      case 3: return table.captured<3, T>()(i[0], i[1], i[2]);
      default: return table.captured<4, T>()(i[0], i[1], i[2], i[3]);
    }
  }
};

}  // namespace detail

/// A score mod given by an expression, for every host environment. Copies share tree and tables;
/// the tables' memory stays the caller's.
class TreeMod {
 public:
  /// @throws std::invalid_argument if the root is a condition, or a table is missing or of another
  ///   rank or type.
  TreeMod(Expression expression, Tables tables)
      : expression_(std::move(expression)),
        tables_(std::make_shared<const Tables>(std::move(tables))) {
    require_mod(expression_);
    tables_->require(expression_);
  }
  template <class Score, class Index>
  Score operator()(Score s, Index b, Index h, Index q, Index kv) const {
    using Env = std::remove_pointer_t<decltype(q.env)>;
    return detail::TreeWalk<Env>{*tables_, b, h, q, kv, s}.real(*expression_);
  }
  const Expression& expression() const { return expression_; }  ///< the root
  const Tables& tables() const { return *tables_; }             ///< that it reads from

 private:
  Expression expression_;
  std::shared_ptr<const Tables> tables_;
};

/// A mask given by an expression; see `TreeMod`.
class TreeMask {
 public:
  /// @throws std::invalid_argument if the root is no condition or reads `score`, or a table is
  ///   missing or of another rank or type.
  TreeMask(Expression expression, Tables tables)
      : expression_(std::move(expression)),
        tables_(std::make_shared<const Tables>(std::move(tables))) {
    require_mask(expression_);
    tables_->require(expression_);
  }
  template <class Index>
  auto operator()(Index b, Index h, Index q, Index kv) const {
    using Env = std::remove_pointer_t<decltype(q.env)>;
    return detail::TreeWalk<Env>{*tables_, b, h, q, kv}.condition(*expression_);
  }
  const Expression& expression() const { return expression_; }  ///< the root
  const Tables& tables() const { return *tables_; }             ///< that it reads from

 private:
  Expression expression_;
  std::shared_ptr<const Tables> tables_;
};

}  // namespace attn
