#include "docs/lessons/08_split_kv.h"

#include <gtest/gtest.h>

#include "masks/causal.h"
#include "masks/window.h"
#include "mods/identity.h"

namespace lesson {
namespace {

TEST(SplitKv, AgreesWithOneWorker) {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    const Problem x = random_problem(seed, 1 + seed % 30);
    const int keys = static_cast<int>(x.k.size()), i = static_cast<int>(seed * 5) % keys;
    const auto mask = attn::window(static_cast<int>(seed % 20), 1);
    const Blocks blocks = blocks_of(mask, keys, keys, 1 + static_cast<int>(seed % 4));
    attn::Tensor<float, 1> slopes({1});
    slopes(0) = 0.25f;
    const CappedAlibi mod{slopes};
    const Answer before = by_blocks(x, i, mod, mask, blocks);
    const Answer now = split_kv(x, i, mod, mask, blocks, 1 + seed % 9);
    // two normalisations in place of one
    const double bound = 2 * rounding_bound(x, 0.25 * keys);
    for (std::size_t d = 0; d < now.o.size(); ++d)
      EXPECT_LE(std::abs(now.o[d] - before.o[d]), bound) << "seed " << seed;
    EXPECT_LE(std::abs(now.lse - before.lse), bound) << "seed " << seed;
  }
}

// More workers than blocks: some have nothing to do, and that changes no bit.
TEST(SplitKv, AnEmptyPartChangesNothing) {
  const Answer some{{3, 4}, 2}, none{{0, 0}, -std::numeric_limits<double>::infinity()};
  const Answer two[] = {some, none}, one[] = {some}, nothing[] = {none, none};
  EXPECT_EQ(merge(two).o, merge(one).o);
  EXPECT_EQ(merge(two).lse, some.lse);
  EXPECT_EQ(merge(nothing).o, none.o);
  EXPECT_EQ(merge(nothing).lse, none.lse);
}

// Three keys in two parts, one of two keys and one of one: equal scores, so a mean of three.
TEST(SplitKv, AShareIsWhatThePartWeighs) {
  const Problem x{{0}, {{1}, {2}, {3}}, {{2}, {2}, {8}}, 1};
  const Blocks blocks = blocks_of(attn::causal(), 3, 3, 2);
  const Answer answer = split_kv(x, 2, attn::identity(), attn::causal(), blocks, 2);
  EXPECT_LE(std::abs(answer.o[0] - 4), rounding_bound(x)) << "o is " << answer.o[0];
}

// The exercise: parts of parts may be merged, in any grouping.
TEST(SplitKv, MergingIsAssociative) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal(0, 3);
    const Answer a{{normal(random)}, normal(random)}, b{{normal(random)}, normal(random)},
        c{{normal(random)}, normal(random)};
    const Answer all[] = {a, b, c}, ab[] = {a, b};
    const Answer grouped[] = {merge(ab), c};
    const double largest = std::max({1.0, std::abs(a.o[0]), std::abs(b.o[0]), std::abs(c.o[0])}),
                 lse = std::max({std::abs(a.lse), std::abs(b.lse), std::abs(c.lse)});
    const double bound = (8 * lse + 32) * 0x1p-53 * largest;  // each exponent: |lse| roundings
    EXPECT_LE(std::abs(merge(grouped).o[0] - merge(all).o[0]), bound);
    EXPECT_LE(std::abs(merge(grouped).lse - merge(all).lse), bound);
  }
}

}  // namespace
}  // namespace lesson
