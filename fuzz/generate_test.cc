// What is drawn: valid cases, the same from the same seed, of every kind; and what they shrink to.
#include "fuzz/generate.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "fuzz/campaign.h"
#include "fuzz/table_spec.h"
#include "mods/lang/tables.h"
#include "mods/lang/tree_functor.h"

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
    const TableStore tables(c.tables, c.sizes(), c.seed);
    check_functors(TreeMod(c.mod, tables.tables()), TreeMask(c.mask, tables.tables()), problem);
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

/// Shares of 1000 cases, a third below what is drawn so that a change of the generator that loses a
/// region is seen, and one that moves it a little is not.
TEST(Cases, ReachEveryRegion) {
  Coverage coverage;
  int bottom_right = 0, odd = 0;
  for (int i = 0; i < 1000; ++i) {
    const Case c = drawn(i);
    count(coverage, c, {});
    bottom_right += to_text(c.mask).find("Skv - Sq") != std::string::npos;
    odd += c.d % 8 != 0;
  }
  const auto at_least = [&](int least, const char* dimension, const std::string& region) {
    EXPECT_GE(coverage[dimension][region], static_cast<std::uint64_t>(least))
        << dimension << " " << region;
  };
  at_least(300, "spans", "two query and two key tiles");
  for (int f = 0; f < fill_count; ++f) at_least(20, "fill", name_of(static_cast<Fill>(f)));
  for (int l = 1; l < layout_count; ++l) at_least(25, "layout", name_of(static_cast<Layout>(l)));
  at_least(300, "layout", "bhsd");
  at_least(200, "dtype", "fp16");
  at_least(300, "dtype", "bf16");
  at_least(40, "tile", "production");
  at_least(250, "lengths", "Sq < Skv");
  at_least(150, "lengths", "Sq > Skv");
  at_least(3, "lengths", "Sq = Skv");
  at_least(100, "heads", "MQA");
  at_least(60, "heads", "GQA");
  at_least(150, "head size", "D != Dv");
  at_least(3, "queries", "<=0");
  at_least(3, "keys", "<=0");
  at_least(15, "scale", "negative");
  at_least(5, "scale", "zero");
  at_least(80, "mod size", "large");
  at_least(100, "mask size", "large");
  at_least(80, "mask size", "constant");
  for (const char* rank : {"1", "2", "4"}) at_least(8, "table rank", rank);
  for (const char* op : {"tanh", "sigmoid", "sin", "cos", "floor", "abs", "max", "clamp", "&&",
                         "||", "!", "floor_mod"})
    at_least(3, "operation", op);
  EXPECT_GE(bottom_right, 15);
  EXPECT_GE(odd, 200);
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
  return {static_cast<double>(c.b) + c.hq + c.hkv + c.sq + c.skv + c.d + c.dv + !c.small_tile,
          static_cast<double>(c.mod->size + !simplest + c.mask->size + !full),
          constants(c.mod) + constants(c.mask), large(c.mod) + large(c.mask),
          static_cast<double>(c.layout != Layout::bhsd) + c.scale.has_value() +
              (c.fill != Fill::gaussian && c.fill != Fill::small_ints)};
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

TEST(SmallerCases, EndAtTheSmallest) {
  Case c = drawn(3);
  int steps = 0;
  for (auto next = smaller_cases(c); !next.empty(); next = smaller_cases(c)) {
    c = next.back();  // the smallest step that is offered
    ASSERT_LT(++steps, 2000);
  }
  c.seed = 0;
  c.dtype = DType::bf16;
  c.fill = Fill::gaussian;
  c.implementation = "flash_forward";
  EXPECT_EQ(to_text(c),
            "v1 B1 Hq1 Hkv1 Sq1 Skv1 D1 Dv1 bf16; mod: score; mask: true; fill: gaussian; seed: 0; "
            "impl: flash_forward");
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
