#include "reference/tape.h"

#include <gtest/gtest.h>

#include <cmath>

#include "mods/lang/expression_samples.h"
#include "mods/lang/parse.h"

namespace attn::reference {
namespace {

using namespace attn::samples;

constexpr Sizes all = samples::sizes;

/// How far the two ways may be apart, relative to the sum of the magnitudes of the terms: on its
/// way a term takes at most 8 roundings an operation (slope, product, sum), and each leaf sums at
/// most one term a node.
double rounding(const Expression& root) {
  return 2 * std::expm1(0x1p-53 * (8 * root->depth + root->size));
}

void expect_same_slopes(const TreeMod& mod, std::array<int, 4> at, double s, bool strict) {
  const Expression& root = mod.expression();
  const Tape tape(root, mod.tables(), all, at, s);
  DualEnv env{all};
  const auto p = place(env, at[0], at[1], at[2], at[3]);
  const auto dual = [&](int seeded) {
    env.seeded = seeded;
    env.reads = 0;
    return call_mod(mod, Dual<double>(s, seeded < 0 ? 1.0 : 0.0), p.b, p.h, p.q, p.kv);
  };
  const double bound = rounding(root);
  const Dual<double> along_score = dual(-1);
  const auto reads = static_cast<int>(tape.reads().size());
  ASSERT_TRUE(same_bits(along_score.v, tape.value())) << to_text(root);
  ASSERT_LE(std::abs(along_score.d - tape.score_slope().value),
            bound * tape.score_slope().magnitude)
      << to_text(root);
  ASSERT_EQ(env.reads, reads) << to_text(root);
  for (int r = 0; r < reads; ++r) {
    const double d = dual(r).d;
    const Tape::Leaf& leaf = tape.reads()[r];
    ASSERT_EQ(env.seeded_data, leaf.data) << to_text(root);
    ASSERT_EQ(env.seeded_offset, leaf.offset) << to_text(root);
    ASSERT_LE(std::abs(d - tape.slope(leaf).value), bound * tape.slope(leaf).magnitude)
        << to_text(root) << " read " << r;
  }
  if (strict) {
    ASSERT_GT(tape.score_slope().magnitude, 0);
  }
}

TEST(Tape, DifferentiatesByHand) {
  // f = c tanh(s / c) with c = slope[1] = 2, s = 0: f' = 1, and df/dc = tanh(0) - 0 = 0
  const std::array<float, 2> slopes{3, 2};
  Tables tables;
  tables.add("slope", TensorView<const float, 1>{slopes.data(), {2}, {1}});
  const Expression root =
      parse_mod("slope[h] * tanh(score / slope[h]) + (kv - q)", tables.declarations());
  const Tape tape(root, tables, all, {0, 1, 3, 5}, 0);
  EXPECT_EQ(tape.value(), 2);
  EXPECT_EQ(tape.score_slope().value, 1);
  ASSERT_EQ(tape.reads().size(), 2u);
  EXPECT_EQ(tape.reads()[0].offset, 1);
  EXPECT_EQ(tape.slope(tape.reads()[0]).value, 0);          // tanh(0)
  EXPECT_EQ(tape.slope(tape.reads()[1]).value, 0);          // -2 * 1 * 0 / 4
  const Tape at_three(root, tables, all, {0, 0, 0, 0}, 3);  // s / c = 1
  const double t = std::tanh(1.0);
  EXPECT_EQ(at_three.slope(at_three.reads()[0]).value, t);
}

TEST(Tape, AgreesWithDualNumbersOnEveryOperation) {
  const SampleTables tables(1);
  for (const char* text :
       {"exp(score / 4) / (1 + exp(score / 4)) * bias[h, q % 8]", "log(2 + abs(slope[h])) * score",
        "score / (3 + slope[h] * slope[h])", "sigmoid(score) - tanh(score * slope[h])",
        "sin(score * slope[h]) * cos(score + slope[h])", "clamp(score * slope[h], -1, 1) + score",
        "min(score, slope[h]) + max(score, bias[h, kv % 8]) + floor(score) + abs(-score)",
        "select(score < slope[h], score * score, bias[h, 0] * score)"}) {
    const TreeMod mod(parse_mod(text, tables.tables().declarations()), tables.tables());
    for (int h = 0; h < all.hq; ++h)
      for (double s : {-2.5, -0.125, 0.75, 3.0}) expect_same_slopes(mod, {1, h, 5, 9}, s, true);
  }
}

TEST(Tape, AgreesWithDualNumbersOnRandomTrees) {
  for (int seed = 0; seed < 200; ++seed) {
    const SampleTables tables(seed);
    Trees trees(seed, tables.tables(), true);
    for (int n = 0; n < 25; ++n) {
      const TreeMod mod(trees.draw(ValueType::real, 2 + trees.below(4)), tables.tables());
      if (!is_accepted(mod)) continue;
      for (int k = 0; k < 4; ++k)
        expect_same_slopes(
            mod,
            {trees.below(all.b), trees.below(all.hq), trees.below(all.sq), trees.below(all.skv)},
            (trees.below(8001) - 4000) / 1000.0, false);
    }
  }
}

}  // namespace
}  // namespace attn::reference
