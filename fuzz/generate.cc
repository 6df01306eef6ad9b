#include "fuzz/generate.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "fuzz/grammar.h"
#include "mods/lang/tables.h"

namespace attn::fuzz {
namespace {

int drawn(int low, int high) { return *rc::gen::inRange(low, high + 1); }
bool chance(int percent) { return drawn(0, 99) < percent; }
template <class T, std::size_t N>
T one_of(const T (&options)[N]) {
  return options[drawn(0, static_cast<int>(N) - 1)];
}

/// A length that likes the boundaries of a tile: one less, exact, one more, small, or anything.
int draw_length(int tile, int most) {
  if (chance(2)) return 0;
  if (chance(15)) return drawn(1, 16);
  if (chance(35)) return std::min(most, drawn(1, most / tile) * tile + drawn(-1, 1));
  return drawn(tile + 1, most);
}

int draw_head() {
  if (chance(40)) return one_of({8, 16, 32, 64});
  if (chance(15)) return one_of({80, 96, 120, 128});
  return one_of({1, 7, 20, 24, 33, 40, 59, 63});
}

/// Fills that prove answers exact need a scale that is a power of two.
bool is_exact(Fill fill) { return fill >= Fill::exact_code; }

void draw_shape(Case& c, const Fixed& fixed) {
  c.small_tile = !chance(8);
  const int tile_q = c.small_tile ? 64 : 128, tile_kv = c.small_tile ? 32 : 64;
  c.b = fixed.b.value_or(chance(1) ? 0 : chance(65) ? 1 : drawn(2, 3));
  c.hkv = fixed.hkv.value_or(chance(1) ? 0 : chance(65) ? 1 : drawn(2, 3));
  if (fixed.hq && !fixed.hkv) c.hkv = *fixed.hq;
  c.hq = fixed.hq.value_or(c.hkv * (chance(55) ? 1 : drawn(2, 3)));
  c.sq = fixed.sq.value_or(chance(55) ? draw_length(tile_q, 2 * tile_q + 30)
                                      : draw_length(16, tile_q));
  c.skv = fixed.skv.value_or(draw_length(tile_kv, 5 * tile_kv));
  c.d = fixed.d.value_or(draw_head());
  c.dv = fixed.dv.value_or(chance(70) ? c.d : chance(1) ? 0 : draw_head());
}

void draw_data(Case& c) {
  c.seed = *rc::gen::inRange<std::uint64_t>(0, std::uint64_t{1} << 32);
  // a third of all cases have an answer that is known exactly
  c.fill = chance(33)
               ? one_of({Fill::exact_code, Fill::exact_rank, Fill::exact_count, Fill::exact_powers})
               : static_cast<Fill>(drawn(0, static_cast<int>(Fill::exact_code) - 1));
  if (c.fill == Fill::exact_code && c.d < 18) c.fill = Fill::exact_rank;
  const bool whole = is_exact(c.fill) || c.fill == Fill::very_negative ||
                     c.fill == Fill::very_positive || c.fill == Fill::large_products;
  if (c.fill == Fill::exact_powers)
    c.scale = std::log(2.0);
  else if (whole)
    c.scale = c.fill == Fill::exact_count && chance(30) ? 0.0
              : chance(15)                              ? -0.125
                                                        : one_of({0.125, 0.25});
  else if (chance(15))
    c.scale = one_of({0.0, 1e-3, 0.05, 0.25, 1.0, -0.125, -0.5});
  if (chance(40)) c.layout = static_cast<Layout>(drawn(0, layout_count - 1));
}

/// Tables that the expressions no longer read go.
void drop_tables(Case& c) {
  std::set<std::string> read;
  for (const Expression& e : {c.mod, c.mask})
    for (const TableDeclaration& t : tables_read(e)) read.insert(t.name);
  std::erase_if(c.tables, [&](const TableSpec& t) { return !read.contains(t.name); });
}

Case draw_case(const Fixed& fixed) {
  Case c;
  if (fixed.implementation) c.implementation = *fixed.implementation;
  draw_shape(c, fixed);
  draw_data(c);
  c.dtype = fixed.dtype.value_or(chance(60) ? DType::bf16 : DType::f16);
  c.tables = fixed.tables;
  c.mod = fixed.mod ? *fixed.mod : draw_mod(c);
  c.mask = fixed.mask ? *fixed.mask : draw_mask(c);
  drop_tables(c);
  return c;
}

/// Lengths to try in place of `now`, from the simplest.
std::vector<int> smaller_lengths(int now, int tile, int least) {
  std::vector<int> tries;
  for (const int n : {1, 2, tile - 1, tile, tile + 1, now / 2, now - now / 4, now - 8, now - 1})
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
    if (node->op == Op::constant && node->value != 0 && node->value != 1) {
      if (node->type == ValueType::index)
        for (const int v : {0, 1, static_cast<int>(node->value / 2)}) attempt(n, index_constant(v));
      if (node->type == ValueType::real)
        for (const double v : {0.0, 1.0}) attempt(n, real_constant(v));
    }
    if (node->op == Op::read && node->type == ValueType::real) attempt(n, real_constant(1));
    if (node->type == ValueType::condition && node->op != Op::constant)
      attempt(n, condition_constant(true));
  }
  return tries;
}

}  // namespace

rc::Gen<Case> cases(const Fixed& fixed) {
  return rc::gen::shrink(
      rc::gen::noShrink(rc::gen::exec([fixed] { return draw_case(fixed); })),
      [fixed](const Case& c) { return rc::seq::fromContainer(smaller_cases(c, fixed)); });
}

std::vector<Case> smaller_cases(const Case& c, const Fixed& fixed) {
  std::vector<Case> tries;
  const auto with = [&](auto change) {
    Case smaller = c;
    change(smaller);
    drop_tables(smaller);
    tries.push_back(std::move(smaller));
  };
  if (c.b > 1 && !fixed.b) with([](Case& s) { s.b = 1; });
  if (c.b > 2 && !fixed.b) with([](Case& s) { s.b = 2; });
  if (!fixed.hq && !fixed.hkv) {
    if (c.hq > 1) with([](Case& s) { s.hq = s.hkv = 1; });
    if (c.hq > c.hkv && c.hkv > 1) with([](Case& s) { s.hq = s.hkv; });
    if (c.hkv > 1) with([](Case& s) { s.hq /= s.hkv, s.hkv = 1; });
    if (c.hkv > 0 && c.hq / c.hkv > 2) with([](Case& s) { s.hq = 2 * s.hkv; });
    if (c.hkv > 2) with([](Case& s) { s.hq = s.hq / s.hkv * 2, s.hkv = 2; });
  }
  const int tile_q = c.small_tile ? 64 : 128, tile_kv = c.small_tile ? 32 : 64;
  if (!c.small_tile) with([](Case& s) { s.small_tile = true; });
  if (!fixed.sq)
    for (const int n : smaller_lengths(c.sq, tile_q, 1)) with([n](Case& s) { s.sq = n; });
  if (!fixed.skv)
    for (const int n : smaller_lengths(c.skv, tile_kv, 1)) with([n](Case& s) { s.skv = n; });
  if (!fixed.d)
    for (const int n : smaller_lengths(c.d, 16, 1)) with([n](Case& s) { s.d = n; });
  if (!fixed.dv)
    for (const int n : smaller_lengths(c.dv, 8, 1)) with([n](Case& s) { s.dv = n; });
  if (c.layout != Layout::bhsd) with([](Case& s) { s.layout = Layout::bhsd; });
  if (c.scale) with([](Case& s) { s.scale.reset(); });
  if (!fixed.mask)
    for (const Expression& e : smaller_expressions(c.mask, condition_constant(true)))
      with([&](Case& s) { s.mask = e; });
  if (!fixed.mod)
    for (const Expression& e : smaller_expressions(c.mod, variable(Op::score)))
      with([&](Case& s) { s.mod = e; });
  if (c.fill != Fill::gaussian && c.fill != Fill::small_ints)
    for (const Fill fill : {Fill::gaussian, Fill::small_ints})
      with([fill](Case& s) { s.fill = fill; });
  return tries;
}

}  // namespace attn::fuzz
