#include "reference/dropout.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "reference/gradient_fixtures.h"

namespace attn::reference {
namespace {

template <class Mod = Plain, class MaskMod = All>
ForwardResult run(const Case& c, const Dropout& dropout, const Mod& mod = {},
                  const MaskMod& mask = {}) {
  return forward(c.in.q.view(), c.in.k.view(), c.in.v.view(), mod, mask,
                 Extras{nullptr, dropout}.options(c.p));
}

/// Equal scores, and V the unit matrix: O[i,j] = P'[i,j], 1 / Skv before dropout.
Case shows_weights(int b, int hq, int hkv, int sq, int skv) {
  Case c(sizes_of(b, hq, hkv, sq, skv, 1, skv), 1);
  for (double& q : c.in.q.values()) q = 0;
  for (double& v : c.in.v.values()) v = 0;
  for (int n = 0; n < b; ++n)
    for (int h = 0; h < hkv; ++h)
      for (int j = 0; j < skv; ++j) c.in.v(n, h, j, j) = 1;
  return c;
}

TEST(DropoutByHand, KeepsByPhiloxWordsOfThePair) {
  // seed 0, b = h = i = 0: the words are the published ones of counter 0 and key 0,
  // 6627e8d5, e169c58d, bc57ac4c, 9b00dbd8. At p = 1/2 the first is below 2^31: dropped; the other
  // three are kept and weigh 1/4 * 2.
  const auto out = run(shows_weights(1, 1, 1, 1, 4), {0.5, 0});
  EXPECT_EQ(out.o.values(), (std::vector<double>{0, 0.5, 0.5, 0.5}));
  EXPECT_EQ(out.lse(0, 0, 0), std::log(4.0));  // of the row before dropout
  EXPECT_EQ(out.row_max(0, 0, 0), 0);
}

TEST(DropoutByHand, AWordAtTheThresholdIsKept) {
  // p = 6627e8d5 * 2^-32: the first word is not below round(p 2^32); one more and it is.
  const Case c = shows_weights(1, 1, 1, 1, 4);
  const double p = 0x6627e8d5p-32;
  EXPECT_EQ(run(c, {p, 0}).o(0, 0, 0, 0), 0.25 * (1 / (1 - p)));
  EXPECT_EQ(run(c, {p + 0x1p-32, 0}).o(0, 0, 0, 0), 0);
  EXPECT_EQ(run(c, {p + 0x1p-34, 0}).o(0, 0, 0, 0), 0.25 * (1 / (1 - p - 0x1p-34)));  // rounds
}

TEST(DropoutByHand, DrawsForEveryBatchHeadAndPair) {
  // sizes over two row blocks, an axis of keys that is no multiple of 4, shared key/value heads
  const Dropout dropout{0.375, 0x123456789abcdef0};
  const int skv = 8;
  const auto out = run(shows_weights(2, 4, 2, 70, skv), dropout);
  for (unsigned b = 0; b < 2; ++b)
    for (unsigned h = 0; h < 4; ++h)
      for (unsigned i = 0; i < 70; ++i)
        for (unsigned j = 0; j < skv; ++j) {
          const auto word = philox4x32({{j / 4, i, h, b}}, dropout.seed).word[j % 4];
          EXPECT_EQ(out.o(b, h, i, j), word >= 0x60000000 ? 0.125 * (1 / 0.625) : 0);
        }
}

TEST(Dropout, OfZeroIsNone) {
  const Case c(sizes_of(2, 4, 2, 70, 9, 3, 2), 1);
  expect_bits(run(c, {0, 99}), run(c, {}));
}

TEST(Dropout, LeavesTheLseAlone) {
  const Case c(sizes_of(2, 4, 2, 70, 9, 3, 2), 1);
  const auto out = run(c, {0.5, 99}), without = run(c, {});
  expect_bits("lse", out.lse, without.lse);
  expect_bits("row_max", out.row_max, without.row_max);
  EXPECT_NE(out.o.values(), without.o.values());
}

TEST(Dropout, KeepsAsManyAsItShould) {
  // n independent pairs: a count six standard deviations off has a chance of 2e-9.
  const int sq = 256, skv = 256;
  for (double p : {0.0625, 0.5, 0.875}) {
    const auto out = run(shows_weights(1, 2, 1, sq, skv), {p, 5});
    double kept = 0;
    for (double x : out.o.values()) kept += x != 0;
    const double n = 2.0 * sq * skv;
    EXPECT_LE(std::abs(kept - n * (1 - p)), 6 * std::sqrt(n * p * (1 - p))) << p;
  }
}

TEST(Dropout, SeedsDrawApart) {
  const Case c = shows_weights(1, 1, 1, 8, 8);
  const auto low = run(c, {0.5, 1}), high = run(c, {0.5, std::uint64_t{1} << 32}),
             none = run(c, {0.5, 0});
  EXPECT_NE(low.o.values(), none.o.values());
  EXPECT_NE(high.o.values(), none.o.values());
  EXPECT_NE(high.o.values(), low.o.values());
}

TEST(Dropout, SparesEmptyRowsAndMaskedPairs) {
  Case c(sizes_of(1, 2, 1, 5, 5, 2, 2), 1);
  for (int d : {0, 1})  // key 4 is attended by row 4 alone
    c.in.k(0, 0, 4, d) = c.in.v(0, 0, 4, d) = std::numeric_limits<double>::quiet_NaN();
  const auto out = run(c, {0.5, 3}, Plain{}, NotAfter{});
  for (int h : {0, 1})
    for (int i = 0; i < 5; ++i) EXPECT_EQ(std::isnan(out.o(0, h, i, 0)), i == 4);
  const auto empty = run(c, {0.5, 3}, Plain{}, Table{Tensor<std::int32_t, 2>({5, 5})});
  for (double x : empty.o.values()) EXPECT_EQ(x, 0);
}

/// Everything at once: sink, dropout, D != Dv, shared heads, rows with no key anywhere.
TEST(DropoutAgainstLoops, RandomMasks) {
  const auto slopes = filled<float, 1>({4}, {0.5, 0.25, -0.125, 0});
  const Distance distance{slopes};
  auto sink = filled<float, 1>({4}, {0.5, -2, 3, 0.25});
  unsigned seed = 50;
  for (const Problem& p : {sizes_of(2, 4, 2, 7, 9, 5, 3), sizes_of(1, 4, 1, 66, 70, 16, 8),
                           sizes_of(1, 4, 4, 130, 6, 3, 1)})
    for (double rate : {0.1, 0.7}) {
      const Case c(p, seed += 5);
      std::mt19937 random(seed);
      Table mask{Tensor<std::int32_t, 2>({p.sq, p.skv})};
      for (auto& pair : mask.pairs.values()) pair = random() % 8 == 0;
      const Extras extras{&sink, {rate, seed}};
      const auto out =
          forward(c.in.q.view(), c.in.k.view(), c.in.v.view(), distance, mask, extras.options(p));
      const Expected want = expected(
          p, c.in, distance.by_hand(),
          [&](int, int, int q, int kv) { return mask.pairs(q, kv) != 0; }, extras.variant());
      expect_within("o", out.o, want.o, want.o_bound);
      expect_within("lse", out.lse, want.lse, want.lse_bound);
      expect_within("row_max", out.row_max, want.row_max, want.row_max_bound);
    }
}

TEST(DropoutByDifferences, WithModAndMask) {
  auto slopes = filled<float, 1>({4}, {0.5, 0.25, -0.125, 0});
  const Distance distance{slopes};
  expect_gradients(Case(sizes_of(2, 4, 2, 4, 5, 3, 2), 5), distance, NotAfter{}, distance.by_hand(),
                   hand_causal, 4, {&slopes}, 1, {nullptr, {0.375, 7}});
  expect_gradients(Case(sizes_of(1, 2, 1, 70, 5, 2, 3), 1), Plain{}, All{}, hand_identity,
                   hand_full, 1, {}, 9, {nullptr, {0.625, 8}});
}

}  // namespace
}  // namespace attn::reference
