#include "mods/lang/expression.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "mods/lang/expression_samples.h"
#include "mods/lang/parse.h"
#include "mods/lang/tables.h"

namespace attn {
namespace {

const std::vector<TableDeclaration> declared{{"slope", 1, ValueType::real},
                                             {"bias", 2, ValueType::real},
                                             {"doc", 1, ValueType::index},
                                             {"keep", 2, ValueType::condition}};

Expression mod(const std::string& text) { return parse_mod(text, declared); }

TEST(Expression, PrintsWithoutNeedlessParentheses) {
  for (const char* text :
       {"score", "score + slope[h] * (kv - q)", "score - (q - kv)", "score - q - kv",
        "(score + 1) * 2", "q / (kv + 1) % 3", "-(score + 1)", "-score * 2", "-(-score)", "-(2)",
        "-(-2)", "score - -2", "-2 * score", "2 - 0.5", "30.0 * tanh(score / 30.0)",
        "q >= kv ? score : -inf", "q > kv ? 1 : q < kv ? 2 : 3", "(q > kv ? true : false) ? 1 : 2",
        "(q > kv ? 1 : 2) + score", "q > kv && h == 0 || b != 1 ? score : 0",
        "q > kv && (h == 0 || b != 1) ? score : 0", "!(q > kv) ? score : 0",
        "!!keep[q, kv] ? 1 : 2",
        "q < kv == h < b ? score : 0", "bias[doc[q], doc[kv + 1] * 2]",
        "clamp(score, -1.5, Hq + Skv)",
        "floor_div(q, 16) + floor_mod(kv, 16)", "1e-30 + 1e+300 + 0.1 + 1e+05 + -0.0",
        "-2147483648 + 2147483647", "min(max(score, 0), b) + B + Hkv + Sq"})
    EXPECT_EQ(to_text(mod(text)), text);
}

TEST(Expression, OtherSpellingsPrintInOneWay) {
  const auto canonical = [](const char* text) { return to_text(mod(text)); };
  EXPECT_EQ(canonical("select(q>kv,score,H)"), "q > kv ? score : Hq");
  EXPECT_EQ(canonical("bias[ q ][ kv ]"), "bias[q, kv]");
  EXPECT_EQ(canonical("(((score)))+((1.50))*.5"), "score + 1.5 * 0.5");
  EXPECT_EQ(canonical("- 5\n+\tscore"), "-5 + score");
  EXPECT_EQ(canonical("1e3 + 5. + -inf"), "1000.0 + 5.0 + -inf");
}

TEST(Expression, RandomTreesRoundTrip) {
  const samples::SampleTables tables(3);
  samples::Trees random(3, tables.tables(), false);
  for (int i = 0; i < 3000; ++i) {
    const bool mask = i % 2;
    const Expression tree = random.draw(mask ? ValueType::condition : ValueType::real, i % 7);
    const std::string text = to_text(tree);
    const auto known = tables.tables().declarations();
    if (mask && uses(tree, Op::score)) continue;
    const Expression again = mask ? parse_mask(text, known) : parse_mod(text, known);
    ASSERT_TRUE(same_tree(tree, again)) << text;
    ASSERT_EQ(to_text(again), text);
  }
}

TEST(Expression, DeepestTreesRoundTrip) {
  const auto yes = [] { return condition_constant(true); };
  const std::vector<std::function<Expression(Expression)>> wraps{
      [](Expression e) { return apply_op(Op::negate, {e}); },
      [](Expression e) { return apply_op(Op::subtract, {e, variable(Op::q)}); },
      [](Expression e) { return apply_op(Op::subtract, {variable(Op::q), e}); },
      [](Expression e) { return apply_op(Op::tanh, {e}); },
      [yes](Expression e) { return apply_op(Op::select, {yes(), e, variable(Op::q)}); },
      [yes](Expression e) { return apply_op(Op::select, {yes(), variable(Op::q), e}); },
      [yes](Expression e) {
        return apply_op(Op::negate, {apply_op(Op::select, {yes(), e, variable(Op::q)})});
      }};
  for (const auto& wrap : wraps) {
    Expression tree = variable(Op::score);
    try {
      for (;;) tree = wrap(tree);
    } catch (const OperandError& error) {
      EXPECT_EQ(error.operand, -1);
    }
    EXPECT_GE(tree->depth, max_expression_depth - 1);
    EXPECT_TRUE(same_tree(parse_mod(to_text(tree)), tree));
  }
}

TEST(Expression, EveryDoubleRoundTrips) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 20000; ++i) {
    const double x = std::bit_cast<double>(static_cast<std::uint64_t>(random()));
    if (x != x) continue;
    const Expression e = real_constant(x);
    ASSERT_TRUE(same_tree(parse_mod(to_text(e)), e)) << to_text(e);
  }
  EXPECT_THROW(real_constant(std::numeric_limits<double>::quiet_NaN()), std::invalid_argument);
}

TEST(Expression, TypesFollowOperands) {
  const auto type = [](const char* text) { return mod(text)->type; };
  EXPECT_EQ(type("q + kv * 2 / 3 % 4"), ValueType::index);
  EXPECT_EQ(type("q + 0.5"), ValueType::real);
  EXPECT_EQ(type("min(q, kv)"), ValueType::index);
  EXPECT_EQ(type("abs(q) + clamp(kv, 0, 5)"), ValueType::index);
  EXPECT_EQ(type("clamp(kv, 0, 5.0)"), ValueType::real);
  EXPECT_EQ(type("floor(q)"), ValueType::real);
  EXPECT_EQ(type("q > kv ? q : kv"), ValueType::index);
  EXPECT_EQ(type("q > kv ? q : 1.0"), ValueType::real);
  EXPECT_EQ(type("score > 0 ? q : kv"), ValueType::real);  // rounding may flip the choice
  EXPECT_EQ(type("!(q > 0.5 || keep[q, kv]) ? q : kv"), ValueType::real);
  EXPECT_EQ(type("!(q > 0 || keep[q, kv]) ? q : kv"), ValueType::index);
}

TEST(Expression, ShrinksByReplacingNodes) {
  const Expression tree = mod("score + slope[h] * (kv - q)");
  EXPECT_EQ(tree->size, 8);
  EXPECT_EQ(to_text(node_at(tree, 0)), "score + slope[h] * (kv - q)");
  EXPECT_EQ(to_text(node_at(tree, 2)), "slope[h] * (kv - q)");
  EXPECT_EQ(to_text(node_at(tree, 4)), "h");
  EXPECT_EQ(to_text(node_at(tree, 7)), "q");
  EXPECT_EQ(to_text(replace_at(tree, 2, node_at(tree, 3))), "score + slope[h]");
  EXPECT_EQ(to_text(replace_at(tree, 4, index_constant(0))), "score + slope[0] * (kv - q)");
  EXPECT_EQ(to_text(replace_at(tree, 0, tree->args[0])), "score");
  EXPECT_EQ(to_text(tree), "score + slope[h] * (kv - q)");
  EXPECT_THROW(replace_at(tree, 4, real_constant(0.5)), OperandError);
  EXPECT_THROW(node_at(tree, 8), std::invalid_argument);
  EXPECT_THROW(node_at(tree, -1), std::invalid_argument);
  for (int n = 0; n < tree->size; ++n)
    EXPECT_TRUE(same_tree(replace_at(tree, n, node_at(tree, n)), tree));
}

TEST(Expression, TellsTreesApart) {
  EXPECT_FALSE(same_tree(real_constant(0.0), real_constant(-0.0)));
  EXPECT_FALSE(same_tree(real_constant(1), index_constant(1)));
  EXPECT_FALSE(same_tree(mod("slope[q]"), mod("slope[kv]")));
  EXPECT_FALSE(same_tree(mod("slope[q]"), parse_mod("other[q]", {{"other", 1, ValueType::real}})));
  EXPECT_FALSE(same_tree(mod("min(q, kv)"), mod("max(q, kv)")));
}

TEST(Expression, RefusesWhatDoesNotType) {
  const Expression q = variable(Op::q), half = real_constant(0.5), yes = condition_constant(true);
  const auto operand = [](Op op, std::vector<Expression> args) {
    try {
      apply_op(op, std::move(args));
    } catch (const OperandError& error) {
      return error.operand;
    }
    return -2;
  };
  EXPECT_EQ(operand(Op::add, {q}), -1);
  EXPECT_EQ(operand(Op::add, {q, yes}), 1);
  EXPECT_EQ(operand(Op::remainder, {half, q}), 0);
  EXPECT_EQ(operand(Op::floor_div, {q, half}), 1);
  EXPECT_EQ(operand(Op::floor_mod, {q, index_constant(0)}), 1);
  EXPECT_EQ(operand(Op::divide, {half, real_constant(-0.0)}), 1);
  EXPECT_EQ(operand(Op::less, {yes, yes}), 0);
  EXPECT_EQ(operand(Op::equal, {yes, q}), 1);
  EXPECT_EQ(operand(Op::equal, {q, yes}), 1);
  EXPECT_EQ(operand(Op::logical_and, {yes, q}), 1);
  EXPECT_EQ(operand(Op::select, {q, q, q}), 0);
  EXPECT_EQ(operand(Op::select, {yes, yes, q}), 2);
  EXPECT_EQ(operand(Op::select, {yes, q, yes}), 2);
  EXPECT_EQ(operand(Op::tanh, {yes}), 0);
  EXPECT_EQ(operand(Op::score, {}), -1);
  EXPECT_EQ(operand(Op::add, {q, half}), -2);
  EXPECT_THROW(variable(Op::add), std::invalid_argument);
  EXPECT_THROW(read_table("t", ValueType::real, {}), OperandError);
  EXPECT_THROW(read_table("t", ValueType::real, {q, q, q, q, q}), OperandError);
  EXPECT_THROW(read_table("t", ValueType::real, {half}), OperandError);
  EXPECT_THROW(read_table("score", ValueType::real, {q}), OperandError);
  EXPECT_THROW(require_mod(yes), std::invalid_argument);
  EXPECT_THROW(require_mask(q), std::invalid_argument);
  EXPECT_NO_THROW(require_mod(q));
}

TEST(Expression, SharedSubtreesCountEachTime) {
  Expression tree = variable(Op::score);
  EXPECT_THROW(for (int i = 0; i < 20; ++i) tree = apply_op(Op::add, {tree, tree}), OperandError);
  EXPECT_EQ(tree->size, 511);
}

TEST(Tables, KnowWhatIsBound) {
  const float reals[4] = {1, 2, 3, 4};
  const bool conditions[2] = {true, false};
  Tables tables;
  tables.add("slope", TensorView<const float, 2>{reals, {2, 2}, {2, 1}});
  tables.add("keep", TensorView<const bool, 1>{conditions, {2}, {1}});
  EXPECT_EQ(tables.find("slope")->rank, 2);
  EXPECT_EQ(tables.find("other"), nullptr);
  EXPECT_EQ(tables.declarations()[1].type, ValueType::condition);
  EXPECT_NO_THROW(tables.require(parse_mod("slope[q, kv]", tables.declarations())));
  EXPECT_THROW(tables.require(mod("slope[q]")), std::invalid_argument);
  EXPECT_THROW(tables.require(mod("doc[q]")), std::invalid_argument);
  const TensorView<const float, 1> one{reals, {4}, {1}}, negative{reals, {-1}, {1}},
      huge{reals, {std::int64_t{1} << 31}, {0}};
  for (const char* name : {"slope", "", "2x", "a-b", "H", "score", "inf", "true", "min",
                           "a_name_that_is_much_too_long"})
    EXPECT_THROW(tables.add(name, one), std::invalid_argument) << name;
  EXPECT_THROW(tables.add("negative", negative), std::invalid_argument);
  EXPECT_THROW(tables.add("huge", huge), std::invalid_argument);
  const auto read = tables_read(mod("doc[q] > 0 ? slope[h] : bias[doc[kv], q]"));
  ASSERT_EQ(read.size(), 3u);
  EXPECT_EQ(read[0].name + read[1].name + read[2].name, "docslopebias");
  EXPECT_EQ(read[2].rank, 2);
  const Expression mixed =
      apply_op(Op::add, {read_table("t", ValueType::real, {variable(Op::q)}),
                         read_table("t", ValueType::index, {variable(Op::q)})});
  EXPECT_THROW(tables_read(mixed), std::invalid_argument);
}

}  // namespace
}  // namespace attn
