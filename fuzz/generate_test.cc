// What is drawn: valid cases, the same from the same seed, of every kind; and what they shrink to.
#include "fuzz/generate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "fuzz/campaign.h"
#include "fuzz/case_sequences.h"
#include "fuzz/table_spec.h"
#include "masks/registry.h"
#include "mods/lang/parse.h"
#include "mods/lang/tables.h"
#include "mods/lang/tree_functor.h"
#include "mods/registry.h"

namespace attn::fuzz {
namespace {

/// What `run_case` would refuse, asked without running a kernel.
void expect_valid(const Case& c) {
  const std::string text = to_text(c);
  ASSERT_TRUE(c.b >= 0 && c.hq >= 0 && c.hkv >= 0 && c.sq >= 0 && c.skv >= 0 && c.d >= 1 &&
              c.dv >= 0)
      << text;
  ASSERT_TRUE(c.hkv == 0 ? c.hq == 0 : c.hq % c.hkv == 0) << text;
  Problem problem;
  problem.b = c.b, problem.hq = c.hq, problem.hkv = c.hkv, problem.sq = c.sq, problem.skv = c.skv;
  problem.d = c.d, problem.dv = c.dv, problem.dtype = c.dtype;
  const Implementation& row = implementation_named(c.implementation);
  ASSERT_FALSE(row.refusal(problem)) << text;
  ASSERT_NO_THROW({
    check_parts(c, row);
    const TableStore tables(c.tables, c.sizes(), c.seed);
    check_functors(TreeMod(c.mod, tables.tables()), TreeMask(c.mask, tables.tables()),
                   logical_sequences(c));
    parse_case(text);
  }) << text;
}

Case drawn(std::uint64_t i, const Fixed& fixed = {}) { return drawn_case(fixed, 41, i).value(); }

TEST(Cases, AreValid) {
  for (int i = 0; i < 1000; ++i) expect_valid(drawn(i));
}

TEST(Cases, ReadEveryTableThatTheyDeclare) {
  for (int i = 0; i < 300; ++i) {
    const Case c = drawn(i);
    std::set<std::string> read, declared;
    for (const Expression& e : {c.mod, c.mask})
      for (const TableDeclaration& t : tables_read(e)) read.insert(t.name);
    for (const TableSpec& t : c.tables) declared.insert(t.name);
    EXPECT_EQ(read, declared) << to_text(c);
  }
}

TEST(Cases, AreTheSameFromTheSameSeed) {
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(to_text(drawn(i)), to_text(drawn(i)));
    EXPECT_NE(to_text(drawn(i)), to_text(drawn(i + 1)));
    EXPECT_NE(to_text(drawn(i)), to_text(drawn_case({}, 42, i).value()));
  }
}

/// The text of an expression, its tables and constants as they are in every instance of an entry.
std::string skeleton(const Expression& e) {
  if (e->op == Op::constant) return e->type == ValueType::condition ? to_text(e) : "#";
  if (e->op == Op::negate && e->args[0]->op == Op::constant) return "#";
  std::string text = e->op == Op::read ? e->table : syntax_of(e->op).name;
  for (const Expression& arg : e->args) text += "(" + skeleton(arg) + ")";
  return text;
}

/// Skeletons of the entries of a registry, that of each with its default parameters.
template <class Entry, class Make>
std::map<std::string, std::string> skeletons(
    const std::vector<Entry>& registry, Make make,
    Expression (*parse)(std::string_view, const std::vector<TableDeclaration>&)) {
  const Sizes sizes{2, 4, 4, 64, 64, 0, 0};
  std::map<std::string, std::string> all;
  for (const Entry& entry : registry) {
    const auto built = make(entry, sizes);
    all[skeleton(parse(built.expression(), built.tables().declarations()))] = entry.name;
  }
  return all;
}

/// Whole expressions only: the drawn ones that mask pairs or leave holes are not looked into.
TEST(Cases, DrawEveryEntryOfTheRegistries) {
  auto mods = skeletons(
      mod_registry(), [](auto& e, auto& s) { return make_mod(e, s); }, parse_mod);
  auto masks = skeletons(
      mask_registry(), [](auto& e, auto& s) { return make_mask(e, s); }, parse_mask);
  EXPECT_GT(mods.size(), 25u);
  EXPECT_GT(masks.size(), 60u);
  for (int i = 0; i < 30000 && !(mods.empty() && masks.empty()); ++i) {
    const Case c = drawn(i);
    mods.erase(skeleton(c.mod));
    masks.erase(skeleton(c.mask));
  }
  for (const auto& [text, name] : mods) ADD_FAILURE() << "mod " << name << ": " << text;
  for (const auto& [text, name] : masks) ADD_FAILURE() << "mask " << name << ": " << text;
}

TEST(Cases, KeepWhatIsFixed) {
  Fixed fixed;
  fixed.b = 2, fixed.sq = 5, fixed.skv = 77, fixed.d = 24, fixed.dv = 9, fixed.hq = 6,
  fixed.hkv = 2;
  fixed.dtype = DType::f16;
  fixed.tables = {parse_table_spec("slope[Hq]=alibi"), parse_table_spec("doc[Skv]=documents(4)")};
  const Case declares = [&] {
    Case c;
    c.tables = fixed.tables;
    return c;
  }();
  fixed.mod =
      parse_case(
          "v1 B1 Hq1 Hkv1 Sq1 Skv1 D1 Dv1 bf16; table: slope[Hq]=alibi; mod: score + slope[h]")
          .mod;
  const auto holds = [&](const Case& c) {
    EXPECT_EQ(to_text(c.mod), "score + slope[h]");
    EXPECT_EQ(c.dtype, DType::f16);
    EXPECT_EQ(c.tables.front().name, "slope");
    EXPECT_TRUE(c.b == 2 && c.sq == 5 && c.skv == 77 && c.d == 24 && c.dv == 9 && c.hq == 6 &&
                c.hkv == 2)
        << to_text(c);
  };
  for (int i = 0; i < 50; ++i) {
    const Case c = drawn(i, fixed);
    holds(c);
    expect_valid(c);
    for (const Case& smaller : smaller_cases(c, fixed)) holds(smaller);
  }
  Fixed one_sided;  // query heads alone: as many key/value heads
  one_sided.hq = 5;
  for (int i = 0; i < 50; ++i) expect_valid(drawn(i, one_sided));
}

TEST(Cases, AreOfTheImplementationsThatAreWanted) {
  Fixed fixed;
  fixed.implementations = {std::string(implementations()[0].name)};
  for (int i = 0; i < 20; ++i) EXPECT_EQ(drawn(i, fixed).implementation, implementations()[0].name);
  // those that refuse what is fixed are left out
  Fixed single;
  single.dtype = DType::f32;
  for (int i = 0; i < 40; ++i) {
    const Case c = drawn(i, single);
    Problem p;
    p.d = p.dv = 1, p.dtype = DType::f32;
    const bool any = std::any_of(implementations().begin(), implementations().end(),
                                 [&](const Implementation& row) { return !row.refusal(p); });
    EXPECT_EQ(!implementation_named(c.implementation).refusal(p), any) << to_text(c);
    EXPECT_EQ(c.dtype, DType::f32);
  }
}

double rank_of(Fill fill) {
  return fill == Fill::exact_count  ? 0
         : fill == Fill::small_ints ? 1
         : fill == Fill::gaussian   ? 2
                                    : 3;
}

/// Falls at every step of shrinking, so that shrinking ends: the sizes of the problem, then of the
/// expressions, then how plain the rest is.
std::vector<double> measure(const Case& c) {
  const auto constants = [](const Expression& root) {
    double sum = 0;
    for (int n = 0; n < root->size; ++n) {
      const Expression node = node_at(root, n);
      if (node->op == Op::constant && node->type != ValueType::condition)
        sum += node->value != 0 && node->value != 1;
      if (node->op == Op::read) sum += 1;
    }
    return sum;
  };
  const auto large = [](const Expression& root) {
    double sum = 0;
    for (int n = 0; n < root->size; ++n) {
      const Expression node = node_at(root, n);
      if (node->op == Op::constant && node->type == ValueType::index) sum += std::abs(node->value);
    }
    return sum;
  };
  const bool simplest = same_tree(c.mod, variable(Op::score));
  const bool full = same_tree(c.mask, condition_constant(true));
  double lengths = 0;
  for (const std::vector<int>* of : {&c.query_lengths, &c.key_lengths})
    for (const int n : *of) lengths += n;
  const TileSize tile = tile_of(c);
  return {static_cast<double>(c.b) + c.hq + c.hkv + c.sq + c.skv + c.d + c.dv + !c.small_tile,
          static_cast<double>(!c.query_lengths.empty() + !c.key_lengths.empty()),
          lengths,
          static_cast<double>(c.page_size) + c.splits,
          static_cast<double>(c.blocks ? (c.blocks->q != tile.q) + (c.blocks->kv != tile.kv) : 0),
          static_cast<double>(c.mod->size + !simplest + c.mask->size + !full),
          constants(c.mod) + constants(c.mask),
          large(c.mod) + large(c.mask),
          static_cast<double>(c.layout != Layout::bhsd) + c.scale.has_value() + c.sink +
              (c.dropout != 0) + c.d_lse + c.row_max + (c.dtype == DType::bf16) + rank_of(c.fill),
          static_cast<double>(c.seed)};
}

TEST(SmallerCases, AreValidAndSimpler) {
  int tried = 0;
  for (int i = 0; i < 60; ++i) {
    const Case c = drawn(i);
    for (const Case& smaller : smaller_cases(c)) {
      ++tried;
      ASSERT_LT(measure(smaller), measure(c)) << to_text(c) << "\n" << to_text(smaller);
      expect_valid(smaller);
    }
  }
  EXPECT_GT(tried, 1000);
}

/// Whatever is drawn, the smallest step at a time leads to the smallest case of its implementation.
TEST(SmallerCases, EndAtTheSmallest) {
  std::set<std::string> seen;
  for (int i = 0; seen.size() < implementations().size() && i < 500; ++i) {
    Case c = drawn(i);
    if (c.b == 0 || c.hkv == 0 || c.sq == 0 || c.skv == 0 || c.dv == 0) continue;
    if (!seen.insert(c.implementation).second) continue;
    int steps = 0;
    for (auto next = smaller_cases(c); !next.empty(); next = smaller_cases(c)) {
      c = next.back();  // the smallest step that is offered
      ASSERT_LT(++steps, 4000);
    }
    Case smallest;
    smallest.implementation = c.implementation;
    smallest.d = smallest.dv = 1;
    smallest.dtype = c.dtype == DType::f32 ? DType::f32 : DType::f16;
    smallest.fill = Fill::exact_count;
    smallest.page_size = c.page_size ? 1 : 0;
    if (c.blocks) smallest.blocks = BlockSize{tile_of(smallest).q, tile_of(smallest).kv};
    EXPECT_EQ(to_text(c), to_text(smallest));
  }
  EXPECT_EQ(seen.size(), implementations().size());
}

TEST(SmallerCases, DropOneSequenceAtATime) {
  const std::string packed = [] {
    for (const Implementation& row : implementations())
      if (row.sequences == Sequences::packed) return std::string(row.name);
    return std::string();
  }();
  ASSERT_FALSE(packed.empty()) << "no implementation of packed sequences";
  const Case c = parse_case(
      "v1 B3 Hq1 Hkv1 Sq9 Skv9 D8 Dv8 bf16; qlens: 1,2,3; kvlens: 4,5,6; impl: " + packed);
  std::set<std::string> kept;
  for (const Case& smaller : smaller_cases(c)) {
    expect_valid(smaller);
    if (smaller.b != 2) continue;
    std::string text;
    for (const int n : smaller.query_lengths) text += std::to_string(n);
    for (const int n : smaller.key_lengths) text += std::to_string(n);
    kept.insert(text);
  }
  EXPECT_EQ(kept, (std::set<std::string>{"1245", "1346", "2356"}));
}

TEST(SmallerCases, TheSimplestComesFirst) {
  const Case c = parse_case("v1 B3 Hq6 Hkv3 Sq100 Skv100 D64 Dv64 bf16; mask: kv <= q");
  const std::vector<Case> smaller = smaller_cases(c);
  ASSERT_GE(smaller.size(), 2u);
  EXPECT_EQ(smaller[0].b, 1);
  EXPECT_EQ(smaller[2].hq, 1);
}

}  // namespace
}  // namespace attn::fuzz
