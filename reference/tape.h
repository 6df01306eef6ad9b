#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "mods/lang/expression.h"
#include "mods/lang/index.h"
#include "mods/lang/tables.h"

/// A second way to differentiate a score mod, for the tests of the first: an expression is written
/// on a tape operation by operation, and derivatives are carried back from the result to all leaves
/// at once. It shares neither the walk of mods/lang/tree_functor.h nor the rules of dual numbers.
///
/// A. Griewank and A. Walther, "Evaluating Derivatives", 2nd ed., 2008, section 3.2.
namespace attn::reference {

/// A derivative and the sum of the magnitudes of the terms that make it: one term for each path
/// from the leaf to the result, the product of the slopes along it.
struct Slope {
  double value = 0, magnitude = 0;
};

class Tape {
 public:
  struct Leaf {
    int entry = -1;
    const void* data = nullptr;  ///< of a captured entry: its tensor,
    std::int64_t offset = 0;     ///< and where in it
  };

  /// The mod `root` at one place; tables keep their memory.
  Tape(const Expression& root, const Tables& tables, const Sizes& sizes, std::array<int, 4> place,
       double score)
      : tables_(tables), sizes_(sizes), place_(place) {
    score_ = push(score);
    result_ = real(*root);
    slopes_.resize(entries_.size());
    slopes_[result_] = {1, 1};
    for (std::size_t n = entries_.size(); n-- > 0;)
      for (const Argument& a : entries_[n].arguments) {
        slopes_[a.entry].value += slopes_[n].value * a.slope;
        slopes_[a.entry].magnitude += slopes_[n].magnitude * a.magnitude;
      }
  }

  double value() const { return entries_[result_].value; }
  Slope score_slope() const { return slopes_[score_]; }
  /// The floating captured entries in the order of the text, and the result's slope to each.
  const std::vector<Leaf>& reads() const { return reads_; }
  Slope slope(const Leaf& leaf) const { return slopes_[leaf.entry]; }

 private:
  struct Argument {
    int entry;
    double slope, magnitude;  ///< magnitude: the sum of the slope's terms, each taken positive
  };
  struct Entry {
    double value;
    std::vector<Argument> arguments;
  };

  int push(double value, std::vector<Argument> arguments = {}) {
    entries_.push_back({value, std::move(arguments)});
    return static_cast<int>(entries_.size()) - 1;
  }
  static Argument argument(int entry, double slope) { return {entry, slope, std::abs(slope)}; }
  /// One of its arguments, as it is.
  int same(int x) { return push(entries_[x].value, {argument(x, 1)}); }

  int real(const Node& n) {
    if (n.type == ValueType::index) return push(index(n));
    if (n.op == Op::score) return score_;
    if (n.op == Op::constant) return push(n.value);
    if (n.op == Op::read) {
      const auto [table, offset] = locate(n);
      reads_.push_back({push(static_cast<const float*>(table->data)[offset]), table->data, offset});
      return reads_.back().entry;
    }
    if (n.op == Op::select) {
      const bool c = condition(*n.args[0]);
      const int a = real(*n.args[1]), b = real(*n.args[2]);
      return same(c ? a : b);
    }
    std::array<int, 3> at{};
    std::array<double, 3> x{};
    for (std::size_t i = 0; i < n.args.size(); ++i) {
      at[i] = real(*n.args[i]);
      x[i] = entries_[at[i]].value;
    }
    return operation(n.op, at, x);
  }

  int operation(Op op, const std::array<int, 3>& at, const std::array<double, 3>& x) {
    const auto one = [&](double y, double slope) { return push(y, {argument(at[0], slope)}); };
    const auto two = [&](double y, double da, double db) {
      return push(y, {argument(at[0], da), argument(at[1], db)});
    };
    switch (op) {
      case Op::negate:
        return one(-x[0], -1);
      case Op::add:
        return two(x[0] + x[1], 1, 1);
      case Op::subtract:
        return two(x[0] - x[1], 1, -1);
      case Op::multiply:
        return two(x[0] * x[1], x[1], x[0]);
      case Op::divide:
        return two(x[0] / x[1], 1 / x[1], -x[0] / (x[1] * x[1]));
      case Op::max:
        return same(x[0] >= x[1] ? at[0] : at[1]);
      case Op::min:
        return same(x[0] <= x[1] ? at[0] : at[1]);
      case Op::clamp: {
        const int low = x[0] >= x[1] ? 0 : 1;
        return same(x[low] <= x[2] ? at[low] : at[2]);
      }
      case Op::abs:
        return one(std::abs(x[0]), (x[0] > 0) - (x[0] < 0));
      case Op::floor:
        return push(std::floor(x[0]));
      case Op::sin:
        return one(std::sin(x[0]), std::cos(x[0]));
      case Op::cos:
        return one(std::cos(x[0]), -std::sin(x[0]));
      case Op::exp:
        return one(std::exp(x[0]), std::exp(x[0]));
      case Op::log:
        return one(std::log(x[0]), 1 / x[0]);
      case Op::tanh: {
        const double y = std::tanh(x[0]);
        return push(y, {{at[0], (1 - y) * (1 + y), 1 + y * y}});
      }
      case Op::sigmoid: {
        const double y = 1 / (1 + std::exp(-x[0]));
        return push(y, {{at[0], y - y * y, y + y * y}});
      }
      default:
        throw std::logic_error("tape: no real operation");
    }
  }

  int index(const Node& n) {
    switch (n.op) {
      case Op::b:
        return place_[0];
      case Op::h:
        return place_[1];
      case Op::q:
        return place_[2];
      case Op::kv:
        return place_[3];
      case Op::length_b:
        return sizes_.b;
      case Op::length_hq:
        return sizes_.hq;
      case Op::length_hkv:
        return sizes_.hkv;
      case Op::length_sq:
        return sizes_.sq;
      case Op::length_skv:
        return sizes_.skv;
      case Op::constant:
        return static_cast<int>(n.value);
      case Op::read: {
        const auto [table, offset] = locate(n);
        return static_cast<const std::int32_t*>(table->data)[offset];
      }
      case Op::select: {
        const bool c = condition(*n.args[0]);
        const int a = index(*n.args[1]), b = index(*n.args[2]);
        return c ? a : b;
      }
      default:
        break;
    }
    std::array<int, 3> x{};
    for (std::size_t i = 0; i < n.args.size(); ++i) x[i] = index(*n.args[i]);
    switch (n.op) {
      case Op::negate:
        return -x[0];
      case Op::add:
        return x[0] + x[1];
      case Op::subtract:
        return x[0] - x[1];
      case Op::multiply:
        return x[0] * x[1];
      case Op::divide:
        return x[0] / x[1];
      case Op::remainder:
        return x[0] % x[1];
      case Op::floor_div:
        return floored(x[0], x[1]);
      case Op::floor_mod:
        return x[0] - floored(x[0], x[1]) * x[1];
      case Op::min:
        return std::min(x[0], x[1]);
      case Op::max:
        return std::max(x[0], x[1]);
      case Op::clamp:
        return std::min(std::max(x[0], x[1]), x[2]);
      case Op::abs:
        return std::abs(x[0]);
      default:
        throw std::logic_error("tape: no index operation");
    }
  }
  static int floored(int a, int b) {
    return static_cast<int>(std::floor(static_cast<double>(a) / b));
  }

  bool condition(const Node& n) {
    if (n.op == Op::constant) return n.value != 0;
    if (n.op == Op::read) {
      const auto [table, offset] = locate(n);
      return static_cast<const bool*>(table->data)[offset];
    }
    std::array<double, 3> x{};  // an index is exact in fp64, a condition is 0 or 1
    for (std::size_t i = 0; i < n.args.size(); ++i)
      x[i] = n.args[i]->type == ValueType::condition ? condition(*n.args[i])
                                                     : entries_[real(*n.args[i])].value;
    switch (n.op) {
      case Op::logical_not:
        return x[0] == 0;
      case Op::logical_and:
        return x[0] != 0 && x[1] != 0;
      case Op::logical_or:
        return x[0] != 0 || x[1] != 0;
      case Op::select:
        return (x[0] != 0 ? x[1] : x[2]) != 0;
      case Op::less:
        return x[0] < x[1];
      case Op::less_equal:
        return x[0] <= x[1];
      case Op::greater:
        return x[0] > x[1];
      case Op::greater_equal:
        return x[0] >= x[1];
      case Op::equal:
        return x[0] == x[1];
      case Op::not_equal:
        return x[0] != x[1];
      default:
        throw std::logic_error("tape: no condition");
    }
  }

  struct Place {
    const attn::Table* table;
    std::int64_t offset;
  };
  Place locate(const Node& n) {
    const attn::Table* table = tables_.find(n.table);
    std::int64_t offset = 0;
    for (std::size_t axis = 0; axis < n.args.size(); ++axis) {
      const int i = index(*n.args[axis]);
      if (table->extents[axis] != 1) offset += i * table->strides[axis];
    }
    return {table, offset};
  }

  const Tables& tables_;
  Sizes sizes_;
  std::array<int, 4> place_;
  std::vector<Entry> entries_;
  std::vector<Slope> slopes_;
  std::vector<Leaf> reads_;
  int score_ = 0, result_ = 0;
};

}  // namespace attn::reference
