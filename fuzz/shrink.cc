#include <algorithm>
#include <stdexcept>

#include "fuzz/case_sequences.h"
#include "fuzz/generate.h"
#include "mods/lang/expression.h"

namespace attn::fuzz {
namespace {

/// Lengths to try in place of `now`, from the simplest.
std::vector<int> smaller_lengths(int now, int tile, int least) {
  std::vector<int> tries;
  for (const int n : {0, 1, 2, tile - 1, tile, tile + 1, now / 2, now - now / 4, now - 8, now - 1})
    if (n >= least && n < now && std::find(tries.begin(), tries.end(), n) == tries.end())
      tries.push_back(n);
  return tries;
}

/// Every expression that replaces one node by something simpler of its type.
std::vector<Expression> smaller_expressions(const Expression& root, const Expression& simplest) {
  std::vector<Expression> tries;
  if (same_tree(root, simplest)) return tries;
  tries.push_back(simplest);
  const auto attempt = [&](int n, const Expression& by) {
    try {
      Expression smaller = replace_at(root, n, by);
      if (smaller->type == root->type) tries.push_back(std::move(smaller));
    } catch (const std::invalid_argument&) {  // does not type: not a candidate
    }
  };
  for (int n = 0; n < root->size; ++n) {
    const Expression node = node_at(root, n);
    for (const Expression& arg : node->args)
      if (arg->type == node->type) attempt(n, arg);
    if (node->type == ValueType::real && simplest->op == Op::score && node->size > 1)
      attempt(n, simplest);
    if (node->op == Op::constant && node->value != 0 && node->value != 1) {
      if (node->type == ValueType::index)
        for (const int v : {0, 1, static_cast<int>(node->value / 2)}) attempt(n, index_constant(v));
      if (node->type == ValueType::real)
        for (const double v : {0.0, 1.0}) attempt(n, real_constant(v));
    }
    if (node->op == Op::read && node->type == ValueType::real) attempt(n, real_constant(1));
    if (node->op == Op::read && node->type == ValueType::index) attempt(n, index_constant(0));
    if (node->type == ValueType::condition && node->op != Op::constant)
      attempt(n, condition_constant(true));
  }
  return tries;
}

/// Lengths of sequences follow the batch and the axis that they are lengths of.
void fit_lengths(std::vector<int>& lengths, int count, int most) {
  if (lengths.empty()) return;
  lengths.resize(count);
  for (int& length : lengths) length = std::min(length, most);
  if (std::all_of(lengths.begin(), lengths.end(), [&](int n) { return n == most; }))
    lengths.clear();
}

/// Collects the simpler neighbours of one case.
class Neighbours {
 public:
  Neighbours(const Case& c, const Fixed& fixed) : c_(c), fixed_(fixed), tile_(tile_of(c)) {}

  std::vector<Case> all() {
    outputs();
    batch_and_heads();
    lengths();
    sequences();
    options();
    expressions();
    data();
    return std::move(tries_);
  }

 private:
  template <class Change>
  void with(Change change) {
    Case smaller = c_;
    change(smaller);
    fit_lengths(smaller.query_lengths, smaller.b, smaller.sq);
    fit_lengths(smaller.key_lengths, smaller.b, smaller.skv);
    drop_unread_tables(smaller);
    tries_.push_back(std::move(smaller));
  }

  void batch_and_heads() {
    if (!fixed_.b) {
      if (c_.b > 1) with([](Case& s) { s.b = 1; });
      if (c_.b > 2) with([](Case& s) { s.b = 2; });
      if (c_.b > 3 && c_.query_lengths.empty() && c_.key_lengths.empty())
        with([](Case& s) { --s.b; });
      for (int b = 0; b < c_.b && c_.b > 1; ++b)
        if (!c_.query_lengths.empty() || !c_.key_lengths.empty())
          with([b](Case& s) {  // without sequence b
            --s.b;
            for (std::vector<int>* lengths : {&s.query_lengths, &s.key_lengths})
              if (!lengths->empty()) lengths->erase(lengths->begin() + b);
          });
    }
    if (fixed_.hq || fixed_.hkv) return;
    if (c_.hq > 1) with([](Case& s) { s.hq = s.hkv = 1; });
    if (c_.hq > c_.hkv && c_.hkv > 1) with([](Case& s) { s.hq = s.hkv; });
    if (c_.hkv > 1) with([](Case& s) { s.hq /= s.hkv, s.hkv = 1; });
    if (c_.hkv > 0 && c_.hq / c_.hkv > 2) with([](Case& s) { s.hq = 2 * s.hkv; });
    if (c_.hkv > 0 && c_.hq / c_.hkv > 3) with([](Case& s) { s.hq -= s.hkv; });
    if (c_.hkv > 2) with([](Case& s) { s.hq = s.hq / s.hkv * 2, s.hkv = 2; });
    if (c_.hkv > 3) with([](Case& s) { s.hq -= s.hq / s.hkv, --s.hkv; });
  }

  void lengths() {
    if (!c_.small_tile) with([](Case& s) { s.small_tile = true; });
    const auto shorten = [&](const std::optional<int>& fixed, int Case::*length, int tile) {
      if (fixed) return;
      for (const int n : smaller_lengths(c_.*length, tile, 1))
        with([=](Case& s) { s.*length = n; });
    };
    shorten(fixed_.sq, &Case::sq, tile_.q);
    shorten(fixed_.skv, &Case::skv, tile_.kv);
    shorten(fixed_.d, &Case::d, 16);
    shorten(fixed_.dv, &Case::dv, 8);
  }

  void sequences() {
    for (std::vector<int> Case::*lengths : {&Case::query_lengths, &Case::key_lengths}) {
      const std::vector<int>& now = c_.*lengths;
      if (!now.empty()) with([=](Case& s) { (s.*lengths).clear(); });
      for (std::size_t b = 0; b < now.size(); ++b)
        for (const int n : smaller_lengths(now[b], tile_.kv, 0))
          with([=](Case& s) { (s.*lengths)[b] = n; });
    }
    if (c_.page_size > 1)
      for (const int n : smaller_lengths(c_.page_size, 16, 1))
        with([n](Case& s) { s.page_size = n; });
    for (int n = 0; n < c_.splits; ++n) with([n](Case& s) { s.splits = n; });
    if (!c_.blocks) return;
    if (c_.blocks->q != tile_.q) with([this](Case& s) { s.blocks->q = tile_.q; });
    if (c_.blocks->kv != tile_.kv) with([this](Case& s) { s.blocks->kv = tile_.kv; });
  }

  void outputs() {
    if (c_.d_lse) with([](Case& s) { s.d_lse = false; });
    if (c_.row_max) with([](Case& s) { s.row_max = false; });
  }

  void options() {
    if (c_.sink) with([](Case& s) { s.sink = false; });
    if (c_.dropout != 0) with([](Case& s) { s.dropout = 0; });
    if (c_.scale) with([](Case& s) { s.scale.reset(); });
  }

  /// fp16, which rounds less than bf16; plainer fills, a contiguous layout, small seeds.
  void data() {
    if (!fixed_.dtype && c_.dtype == DType::bf16 && takes_half())
      with([](Case& s) { s.dtype = DType::f16; });
    constexpr Fill plain[] = {Fill::exact_count, Fill::small_ints, Fill::gaussian};
    for (const Fill fill : plain) {
      if (fill == c_.fill) break;
      with([fill](Case& s) { s.fill = fill; });
    }
    if (c_.layout != Layout::bhsd) with([](Case& s) { s.layout = Layout::bhsd; });
    for (const std::uint64_t seed : {0, 1, 2})
      if (seed < c_.seed) with([seed](Case& s) { s.seed = seed; });
  }
  bool takes_half() const {
    Problem problem;
    problem.d = c_.d, problem.dv = c_.dv, problem.dtype = DType::f16;
    return !implementation_named(c_.implementation).refusal(problem);
  }

  void expressions() {
    if (!fixed_.mask)
      for (const Expression& e : smaller_expressions(c_.mask, condition_constant(true)))
        with([&](Case& s) { s.mask = e; });
    if (!fixed_.mod)
      for (const Expression& e : smaller_expressions(c_.mod, variable(Op::score)))
        with([&](Case& s) { s.mod = e; });
  }

  const Case& c_;
  const Fixed& fixed_;
  TileSize tile_;
  std::vector<Case> tries_;
};

}  // namespace

std::vector<Case> smaller_cases(const Case& c, const Fixed& fixed) {
  return Neighbours(c, fixed).all();
}

}  // namespace attn::fuzz
