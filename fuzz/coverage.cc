#include "fuzz/coverage.h"

#include <algorithm>
#include <functional>

#include "fuzz/case_sequences.h"
#include "mods/lang/call.h"
#include "mods/lang/environments.h"
#include "mods/lang/tree_functor.h"

namespace attn::fuzz {
namespace {

/// Names a region of a dimension.
using Add = std::function<void(const char* dimension, const std::string& region)>;

constexpr const char* buckets[] = {"0", "1", "2..16", "17..32", "33..64", "65..128", ">128"};
std::string bucket(int n) {
  constexpr int last[] = {0, 1, 16, 32, 64, 128};
  return buckets[std::lower_bound(std::begin(last), std::end(last), n) - std::begin(last)];
}

/// "-" is both an operation of one operand and of two.
std::string name_of(Op op) { return op == Op::negate ? "negate" : syntax_of(op).name; }

void count_shape(const Add& add, const Case& c) {
  add("tile", c.small_tile ? "small" : "production");
  add("spans", spans_tiles(c) ? "two query and two key tiles" : "fewer tiles");
  add("queries", bucket(c.sq));
  add("keys", bucket(c.skv));
  add("lengths", c.sq == c.skv ? "Sq = Skv" : c.sq < c.skv ? "Sq < Skv" : "Sq > Skv");
  add("heads", c.hq == c.hkv ? "MHA" : c.hkv == 1 ? "MQA" : "GQA");
  if (c.hkv > 0) add("group", std::to_string(c.hq / c.hkv));
  add("head size", c.d == c.dv ? (c.d % 8 ? "D = Dv, odd" : "D = Dv, multiple of 8") : "D != Dv");
  if (std::max(c.d, c.dv) > 128) add("head size", "beyond 128");
}

/// What only some implementations have.
void count_kind(const Add& add, const Case& c) {
  const Implementation& row = implementation_named(c.implementation);
  if (row.sequences != Sequences::dense) {
    const bool zero_queries = std::count(c.query_lengths.begin(), c.query_lengths.end(), 0) > 0,
               zero_keys = std::count(c.key_lengths.begin(), c.key_lengths.end(), 0) > 0;
    add("sequences", c.b == 0 ? "none" : c.b == 1 ? "one" : "several");
    if (zero_queries) add("sequences", "some without queries");
    if (zero_keys) add("sequences", "some without keys");
  }
  if (has_cache(row)) add("splits", c.splits ? std::to_string(c.splits) : "chosen");
  if (row.sequences == Sequences::paged) add("page", std::to_string(c.page_size));
  if (c.blocks) {
    const TileSize tile = tile_of(c);
    const bool whole = c.blocks->q % tile.q == 0 && c.blocks->kv % tile.kv == 0;
    add("blocks", whole ? "whole tiles" : "not whole tiles");
  }
  if (row.pass == Pass::backward) add("dLSE", c.d_lse ? "given" : "none");
  if (row.pass == Pass::forward) add("row max", c.row_max ? "wanted" : "not wanted");
  add("sink", c.sink ? "given" : "none");
  add("dropout", c.dropout != 0 ? std::to_string(c.dropout).substr(0, 3) : "none");
}

/// Calls f(node) for every node.
template <class F>
void visit(const Expression& e, const F& f) {
  f(*e);
  for (const Expression& arg : e->args) visit(arg, f);
}

/// The indices by which the entry that is read differs, such as "b kv": an axis of extent 1 is
/// none.
std::string varies_by(const Node& read, const TableSpec& table) {
  std::string text;
  for (const Op index : {Op::b, Op::h, Op::q, Op::kv})
    for (std::size_t axis = 0; axis < read.args.size(); ++axis)
      if (table.dims[axis] != "1" && uses(read.args[axis], index)) {
        text += (text.empty() ? "" : " ") + name_of(index);
        break;
      }
  return text.empty() ? "nothing" : text;
}

void count_tables(const Add& add, const Case& c) {
  for (const TableSpec& t : c.tables) {
    add("table rank", std::to_string(t.dims.size()));
    add("table type", name_of(t.type()));
    for (const Expression& e : {c.mod, c.mask})
      visit(e, [&](const Node& n) {
        if (n.op == Op::read && n.table == t.name) add("table by", varies_by(n, t));
      });
  }
}

/// How the mod's derivative behaves for scores from -64 to 64, at the first and last pair of a
/// sequence.
std::string derivative_of(const Case& c) {
  bool positive = true, negative = false, zero = false;
  if (c.mod->op != Op::score && c.hq > 0) {
    positive = false;
    std::vector<TableSpec> read;
    const std::vector<TableDeclaration> names = tables_read(c.mod);
    for (const TableSpec& t : c.tables)
      if (std::any_of(names.begin(), names.end(), [&](auto& n) { return n.name == t.name; }))
        read.push_back(t);
    const TableStore store(read, c.sizes(), c.seed);
    const TreeMod mod(c.mod, store.tables());
    for (const Sequence& s : logical_sequences(c)) {
      if (s.queries.count == 0 || s.keys.count == 0) continue;
      DualEnv env{s.sizes};
      using I = Index<DualEnv>;
      for (const bool last : {false, true})
        for (int step = -16; step <= 16; ++step) {
          const int q = s.sizes.q_offset + (last ? s.queries.count - 1 : 0);
          const auto y = call_mod(mod, DualEnv::Score(4.0 * step, 1.0), I{s.b, &env},
                                  I{last ? c.hq - 1 : 0, &env}, I{q, &env},
                                  I{last ? s.keys.count - 1 : 0, &env});
          if (y.v == -infinity) continue;  // masked
          positive |= y.d > 0, negative |= y.d < 0, zero |= y.d == 0;
        }
    }
  }
  return zero ? "vanishes" : positive && negative ? "changes sign" : "has one sign";
}

void count_expressions(const Add& add, const Case& c) {
  add("mod size", c.mod->size == 1 ? "score" : c.mod->size <= 8 ? "small" : "large");
  add("mask size", c.mask->size == 1 ? "all true" : c.mask->size <= 8 ? "small" : "large");
  std::vector<bool> seen(op_count);
  for (const Expression& e : {c.mod, c.mask})
    visit(e, [&](const Node& n) { seen[static_cast<int>(n.op)] = true; });
  for (int op = 0; op < op_count; ++op)
    if (seen[op]) add("operation", name_of(static_cast<Op>(op)));
  bool floor = false, branch = false;
  visit(c.mod, [&](const Node& n) {
    floor |= n.op == Op::floor;
    branch |= n.inexact;
  });
  add("jump of the mod", floor ? "floor" : branch ? "branch on the score" : "none");
  add("derivative", derivative_of(c));
}

void count_rows(const Add& add, const RowCounts& rows) {
  if (rows.empty > 0) add("rows", "some empty");
  if (rows.one_key > 0) add("rows", "some of one key");
  if (rows.one_hot > 0) add("rows", "some proved one-hot");
  if (rows.counted > 0) add("rows", "some proved uniform");
  if (rows.powers > 0) add("rows", "some of powers of two");
  if (rows.general > 0) add("rows", "some general");
}

/// The regions of the dimensions that are plain lists.
const std::map<std::string, std::vector<std::string>>& listed_regions() {
  static const std::map<std::string, std::vector<std::string>> all = {
      {"dtype", {"bf16", "fp16", "fp32"}},
      {"scale", {"default", "positive", "negative", "zero"}},
      {"tile", {"small", "production"}},
      {"spans", {"two query and two key tiles", "fewer tiles"}},
      {"queries", {std::begin(buckets), std::end(buckets)}},
      {"keys", {std::begin(buckets), std::end(buckets)}},
      {"lengths", {"Sq = Skv", "Sq < Skv", "Sq > Skv"}},
      {"heads", {"MHA", "GQA", "MQA"}},
      {"group", {"1", "2", "3", "4", "5", "6", "7", "8"}},
      {"head size", {"D = Dv, odd", "D = Dv, multiple of 8", "D != Dv", "beyond 128"}},
      {"sequences", {"none", "one", "several", "some without queries", "some without keys"}},
      {"splits", {"chosen", "1", "2", "3", "4", "5", "6"}},
      {"page", {"1", "2", "16", "64", "100"}},
      {"blocks", {"whole tiles", "not whole tiles"}},
      {"dLSE", {"given", "none"}},
      {"row max", {"wanted", "not wanted"}},
      {"sink", {"given", "none"}},
      {"dropout", {"none", "0.1", "0.5", "0.9"}},
      {"mod size", {"score", "small", "large"}},
      {"mask size", {"all true", "small", "large"}},
      {"jump of the mod", {"none", "floor", "branch on the score"}},
      {"derivative", {"has one sign", "changes sign", "vanishes"}},
      {"table rank", {"1", "2", "3", "4"}},
      {"table type", {"index", "real", "condition"}},
      {"table by",
       {"nothing", "b", "h", "q", "kv", "b q", "b kv", "h q", "h kv", "q kv", "b h q", "b q kv",
        "h q kv", "b h q kv"}},
      {"rows",
       {"some empty", "some of one key", "some proved one-hot", "some proved uniform",
        "some of powers of two", "some general"}},
  };
  return all;
}

}  // namespace

Coverage empty_coverage() {
  Coverage coverage;
  for (const auto& [dimension, regions] : listed_regions())
    for (const std::string& region : regions) coverage[dimension][region] = 0;
  for (const Implementation& row : implementations())
    coverage["implementation"][std::string(row.name)] = 0;
  for (int f = 0; f < fill_count; ++f) coverage["fill"][name_of(static_cast<Fill>(f))] = 0;
  for (int l = 0; l < layout_count; ++l) coverage["layout"][name_of(static_cast<Layout>(l))] = 0;
  for (int op = 0; op < op_count; ++op) coverage["operation"][name_of(static_cast<Op>(op))] = 0;
  return coverage;
}

void count(Coverage& coverage, const Case& c, const Verdict& verdict) {
  if (verdict.outcome == Outcome::refused) return;
  const Add add = [&](const char* dimension, const std::string& region) {
    ++coverage[dimension][region];
  };
  add("implementation", c.implementation);
  add("fill", name_of(c.fill));
  add("layout", name_of(c.layout));
  add("dtype", name_of(c.dtype));
  add("scale", !c.scale       ? "default"
               : *c.scale > 0 ? "positive"
               : *c.scale < 0 ? "negative"
                              : "zero");
  count_shape(add, c);
  count_kind(add, c);
  count_expressions(add, c);
  count_tables(add, c);
  count_rows(add, verdict.rows);
}

}  // namespace attn::fuzz
