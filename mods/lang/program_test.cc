#include "mods/lang/program.h"

#include <gtest/gtest.h>

#include <cmath>

#include "mods/lang/compile.h"
#include "mods/lang/expression_samples.h"
#include "mods/lang/parse.h"

namespace attn {
namespace {

using samples::place;

/// The text as a program at score 0.5, b 1, h 2, q 7, kv 11 of `samples::sizes`.
double value_of(const std::string& text) {
  ExactEnv env{samples::sizes};
  const auto p = place(env, 1, 2, 7, 11);
  return call_mod(compile_mod(parse_mod(text), {}), 0.5, p.b, p.h, p.q, p.kv);
}

TEST(Program, RunsEveryOperation) {
  EXPECT_EQ(value_of("score + b + h + q + kv"), 21.5);
  EXPECT_EQ(value_of("B + 10 * (Hq + 10 * (Hkv + 10 * (Sq + 100 * Skv)))"), 4024242.0);
  EXPECT_EQ(value_of("-(q - kv) * 2 / 3"), 2.0);
  EXPECT_EQ(value_of("(q - kv) / 3"), -1.0);
  EXPECT_EQ(value_of("(q - kv) % 3"), -1.0);
  EXPECT_EQ(value_of("floor_div(q - kv, 3)"), -2.0);
  EXPECT_EQ(value_of("floor_mod(q - kv, 3)"), 2.0);
  EXPECT_EQ(value_of("-score * 3 / 2"), -0.75);
  EXPECT_EQ(value_of("score - 2 - -1.5"), 0.0);
  EXPECT_EQ(value_of("min(q, kv) + max(q, kv) * 100"), 1107.0);
  EXPECT_EQ(value_of("min(score, 0.25) + max(score, 2)"), 2.25);
  EXPECT_EQ(value_of("abs(q - kv) + abs(-score)"), 4.5);
  EXPECT_EQ(value_of("clamp(q, 8, 10) + clamp(score, 0, 0.25)"), 8.25);
  EXPECT_EQ(value_of("floor(score * 5)"), 2.0);
  EXPECT_EQ(value_of("tanh(score)"), std::tanh(0.5));
  EXPECT_EQ(value_of("sigmoid(score)"), 1 / (1 + std::exp(-0.5)));
  EXPECT_EQ(value_of("exp(score)"), std::exp(0.5));
  EXPECT_EQ(value_of("log(score)"), std::log(0.5));
  EXPECT_EQ(value_of("sin(score)"), std::sin(0.5));
  EXPECT_EQ(value_of("cos(score)"), std::cos(0.5));
  EXPECT_EQ(value_of("q < kv ? 3 : 4"), 3.0);
  EXPECT_EQ(value_of("(q < kv) == (kv < q) ? score : q"), 7.0);
  EXPECT_EQ(value_of("(q < kv) != (kv < q) ? score : q"), 0.5);
  for (const std::string c : {"true", "false"})
    for (const std::string a : {"true", "false"})
      for (const std::string b : {"true", "false"}) {
        const std::string& chosen = c == "true" ? a : b;
        EXPECT_EQ(value_of("(" + c + " ? " + a + " : " + b + ") ? 1 : 0"), chosen == "true");
        EXPECT_EQ(value_of(a + " == " + b + " ? 1 : 0"), a == b);
        EXPECT_EQ(value_of(a + " != " + b + " ? 1 : 0"), a != b);
      }
  EXPECT_EQ(value_of("!(q < 8 && kv < 8) || false ? 1 : 2"), 1.0);
  EXPECT_EQ(value_of("(q == 7) && (q != 8) && q <= 7 && q >= 7 && kv > 10 ? 1 : 2"), 1.0);
  EXPECT_EQ(value_of("score == 0.5 && score != 1 && score <= 0.5 && score > 0 ? 1 : 2"), 1.0);
}

TEST(Program, AnUndecidedChoiceIsDecidedWhereItsArmsAgree) {
  RangeEnv env{samples::sizes};
  const auto range = [&](int low, int high) {
    return Index<RangeEnv>{Range<std::int64_t>(low, high), &env};
  };
  const auto verdict = [&](const std::string& text) {
    const ProgramMask mask = compile_mask(parse_mask(text), {});
    const Maybe m = call_mask(mask, range(0, 1), range(0, 3), range(0, 23), range(0, 39));
    return m.yes() ? 1 : m.no() ? 0 : -1;
  };
  EXPECT_EQ(verdict("q > kv ? kv < 40 : kv < 50"), 1);
  EXPECT_EQ(verdict("q > kv ? kv > 40 : kv > 50"), 0);
  EXPECT_EQ(verdict("q > kv ? kv < 40 : kv > 50"), -1);
}

TEST(Program, ConstantsAreHeldInDoubleOnTheHost) { EXPECT_EQ(value_of("0.1"), 0.1); }

TEST(Program, ReadsOutOfRangeNameTheTable) {
  samples::SampleTables tables(1);
  const Expression mod = parse_mod("slope[kv]", tables.tables().declarations());
  ExactEnv env{samples::sizes};
  const auto p = place(env, 0, 0, 0, 8);
  const auto told = [&](const auto& f) {
    try {
      call_mod(f, 0.0, p.b, p.h, p.q, p.kv);
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string expected = "slope: index 8 in axis 0 of shape [8], expected 0 to 7";
  EXPECT_EQ(told(TreeMod(mod, tables.tables())), expected);
  EXPECT_EQ(told(compile_mod(mod, tables.tables())), expected);
}

std::string refusal(const Expression& mod, const Tables& tables) {
  try {
    compile_mod(mod, tables);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(Program, RefusesWhatDoesNotFit) {
  Expression sum = variable(Op::score), right = variable(Op::score);
  std::string constants = "0.0";
  for (int i = 0; i < 97; ++i) sum = apply_op(Op::add, {sum, variable(Op::score)});
  for (int i = 0; i < 16; ++i)
    right = apply_op(Op::add, {apply_op(Op::tanh, {variable(Op::score)}), right});
  for (int i = 1; i < 33; ++i) constants += " + " + std::to_string(i) + ".0";
  const auto contains = [](const std::string& text, const std::string& part) {
    return text.find("too large for a program: needs more than " + part) != std::string::npos;
  };
  EXPECT_TRUE(contains(refusal(sum, {}), "96 instructions"));
  EXPECT_LT(refusal(sum, {}).size(), 200u);  // and not the whole of it
  EXPECT_TRUE(contains(refusal(right, {}), "16 real registers"));
  EXPECT_TRUE(contains(refusal(parse_mod(constants), {}), "32 constants"));

  Tables many;
  const float one = 1;
  Expression all = variable(Op::score);
  for (int i = 0; i < 9; ++i) {
    const std::string name = "t" + std::to_string(i);
    many.add(name, TensorView<const float, 1>{&one, {1}, {1}});
    all = apply_op(Op::add, {all, read_table(name, ValueType::real, {variable(Op::q)})});
  }
  EXPECT_TRUE(contains(refusal(all, many), "8 tables"));
  EXPECT_NE(refusal(parse_mod("slope[q]", {{"slope", 1, ValueType::real}}), {})
                .find("table 'slope': not bound"), std::string::npos);
  EXPECT_NE(refusal(condition_constant(true), {}).find("a mod gives a real"), std::string::npos);
  EXPECT_THROW(compile_mask(variable(Op::q), {}), std::invalid_argument);
  EXPECT_THROW(TreeMask(apply_op(Op::less, {variable(Op::score), variable(Op::q)}), {}),
               std::invalid_argument);
}

}  // namespace
}  // namespace attn
