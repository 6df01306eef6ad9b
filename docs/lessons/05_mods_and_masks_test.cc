#include "docs/lessons/05_mods_and_masks.h"

#include <gtest/gtest.h>

#include "masks/causal.h"
#include "masks/full.h"
#include "mods/identity.h"
#include "reference/forward.h"

namespace lesson {
namespace {

attn::Tensor<float, 1> one_slope(float slope) {
  attn::Tensor<float, 1> slopes({1});
  slopes(0) = slope;
  return slopes;
}

// A masked key is one that is not there: the lesson before, without those keys.
TEST(ModsAndMasks, AMaskedKeyIsNotThere) {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    const Problem x = random_problem(seed, 1 + seed % 30);
    const int keys = static_cast<int>(x.k.size()), i = static_cast<int>(seed) % keys;
    const std::size_t seen = static_cast<std::size_t>(i) + 1;
    const Problem shorter{
        x.q, {x.k.begin(), x.k.begin() + seen}, {x.v.begin(), x.v.begin() + seen}, x.scale};
    const Answer before = tiled({x.q}, shorter, 1, 1).rows[0];
    const Answer now = attention(x, i, attn::identity(), attn::causal());
    EXPECT_EQ(now.o, before.o);
    EXPECT_EQ(now.lse, before.lse);
  }
}

// All rows at once, by the reference.
TEST(ModsAndMasks, AgreesWithTheReference) {
  for (std::uint32_t seed = 0; seed < 100; ++seed) {
    const Problem x = random_problem(seed, 1 + seed % 30);
    const int keys = static_cast<int>(x.k.size());
    const auto tensor = [](const std::vector<Row>& rows) {
      attn::Tensor<double, 4> t({1, 1, std::ssize(rows), std::ssize(rows[0])});
      std::size_t at = 0;
      for (const Row& row : rows)
        for (const double value : row) t.values()[at++] = value;
      return t;
    };
    const auto q = tensor(std::vector<Row>(x.k.size(), x.q)), k = tensor(x.k), v = tensor(x.v);
    const auto slopes = one_slope(0.25f);
    const CappedAlibi mod{slopes};
    attn::Options options;
    options.scale = x.scale;
    const auto truth =
        attn::reference::forward(q.view(), k.view(), v.view(), mod, attn::causal(), options);
    for (int i = 0; i < keys; ++i) {
      const Answer answer = attention(x, i, mod, attn::causal());
      const double bound = rounding_bound(x, 0.25 * keys);
      for (std::size_t d = 0; d < answer.o.size(); ++d)
        EXPECT_LE(std::abs(answer.o[d] - truth.o(0, 0, i, static_cast<int>(d))), bound);
      EXPECT_LE(std::abs(answer.lse - truth.lse(0, 0, i)), bound);
    }
  }
}

// One text, three number types: the value, its derivative, and a bound for a whole block.
TEST(ModsAndMasks, OneFunctorOnManyNumbers) {
  const auto slopes = one_slope(0.5f);
  const CappedAlibi mod{slopes};
  std::mt19937 random(1);
  std::normal_distribution<double> normal(0, 40);
  for (int n = 0; n < 1000; ++n) {
    const double s = normal(random), u = std::tanh(s / 30);
    const int i = static_cast<int>(random() % 100), j = static_cast<int>(random() % 100);
    EXPECT_EQ(OnDoubles().mod(mod, s, i, j), 30 * u + 0.5 * (j - i));

    // 30 (1 - u^2) / 30: three roundings of numbers up to 30
    const attn::Dual<double> t = OnDuals().mod(mod, {s, 1}, i, j);
    EXPECT_EQ(t.v, 30 * u + 0.5 * (j - i));
    EXPECT_LE(std::abs(t.d - (1 - u * u)), 4 * 0x1p-53);

    const attn::Range<double> bound = OnRanges().mod(mod, {s - 1, s + 1}, {i, i + 7}, {j, j + 7});
    for (const double x : {s - 1, s, s + 1})
      for (int d = 0; d < 64; ++d) {
        const double value = OnDoubles().mod(mod, x, i + d / 8, j + d % 8);
        EXPECT_LE(bound.low, value);
        EXPECT_LE(value, bound.high);
      }
  }
}

TEST(ModsAndMasks, ARangeAnswersForAWholeBlock) {
  const auto ask = [](attn::Range<std::int64_t> i, attn::Range<std::int64_t> j) {
    return OnRanges().mask(attn::causal(), i, j);
  };
  EXPECT_TRUE(ask({8, 15}, {0, 7}).yes());
  EXPECT_TRUE(ask({0, 7}, {8, 15}).no());
  EXPECT_TRUE(ask({0, 7}, {0, 7}).can_be_true && ask({0, 7}, {0, 7}).can_be_false);
}

// A row that may look at nothing.
TEST(ModsAndMasks, ARowWithNoKeyIsZero) {
  const Problem x{{1}, {{1}, {2}}, {{3}, {4}}, 1};
  const Answer answer = attention(x, 0, attn::identity(), !attn::full());
  EXPECT_EQ(answer.o[0], 0);
  EXPECT_EQ(answer.lse, -std::numeric_limits<double>::infinity());
}

// The exercise: cap and bias in the other order.
TEST(ModsAndMasks, TheOrderOfCapAndBiasMatters) {
  const auto slopes = one_slope(1);
  const CappedAlibi mod{slopes};
  EXPECT_LE(OnDoubles().mod(mod, 1e9, 0, 0), 30);           // capped, then biased by 0
  EXPECT_GT(OnDoubles().mod(mod, 1e9, 0, 100), 100);        // the bias is not capped
  EXPECT_LE(30 * std::tanh((1e9 + 1.0 * 100) / 30.0), 30);  // the other order would cap it
}

}  // namespace
}  // namespace lesson
