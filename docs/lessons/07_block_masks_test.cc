#include "docs/lessons/07_block_masks.h"

#include <gtest/gtest.h>

#include "masks/causal.h"
#include "masks/document.h"
#include "masks/window.h"

namespace lesson {
namespace {

/// The kind of one block, by looking at every pair of it.
template <class Mask>
Kind looked_at(const Mask& mask, const Blocks& b, int r, int c) {
  int yes = 0, no = 0;
  for (int i = r * b.size; i < std::min((r + 1) * b.size, b.rows); ++i)
    for (int j = c * b.size; j < std::min((c + 1) * b.size, b.keys); ++j)
      ++(OnDoubles(b.keys).mask(mask, i, j) ? yes : no);
  return no == 0 ? Kind::full : yes == 0 ? Kind::empty : Kind::partial;
}

template <class Mask>
void expect_right_blocks(const Mask& mask, int rows, int keys, int size) {
  const Blocks b = blocks_of(mask, rows, keys, size);
  for (int r = 0; r < b.down(); ++r)
    for (int c = 0; c < b.across(); ++c)
      EXPECT_EQ(b.at(r, c), looked_at(mask, b, r, c)) << "block " << r << ", " << c;
}

/// Document numbers of `keys` tokens, a new one now and then.
attn::Tensor<std::int32_t, 2> documents(int keys, std::uint32_t seed) {
  std::mt19937 random(seed);
  attn::Tensor<std::int32_t, 2> ids({1, keys});
  for (int j = 1; j < keys; ++j) ids(0, j) = ids(0, j - 1) + (random() % 5 == 0);
  return ids;
}

TEST(BlockMasks, AreWhatLookingAtEveryPairGives) {
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    const int rows = 1 + seed % 30, keys = 1 + seed * 7 % 30, size = 1 + seed % 6;
    expect_right_blocks(attn::causal(), rows, keys, size);
    expect_right_blocks(attn::window(seed % 4, 1), rows, keys, size);
    const auto ids = documents(keys, seed);
    expect_right_blocks(attn::causal() && attn::document(ids), keys, keys, size);
  }
}

// An empty block contributes nothing and a full one everything: lesson 5, to the last bit.
TEST(BlockMasks, ChangeNoBitOfTheAnswer) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    const Problem x = random_problem(seed, 1 + seed % 30);
    const int keys = static_cast<int>(x.k.size());
    const auto ids = documents(keys, seed);
    const auto mask = attn::causal() && attn::document(ids);
    const Blocks blocks = blocks_of(mask, keys, keys, 1 + static_cast<int>(seed % 7));
    attn::Tensor<float, 1> slopes({1});
    slopes(0) = 0.25f;
    for (int i = 0; i < keys; ++i) {
      const Answer before = attention(x, i, CappedAlibi{slopes}, mask);
      const Answer now = by_blocks(x, i, CappedAlibi{slopes}, mask, blocks);
      EXPECT_EQ(now.o, before.o) << "seed " << seed << " row " << i;
      EXPECT_EQ(now.lse, before.lse) << "seed " << seed << " row " << i;
    }
  }
}

// The last key of a row that ends inside a block: the mask has to be asked there.
TEST(BlockMasks, ThePartialBlockIsAsked) {
  const Problem x{{0}, {{1}, {2}, {3}, {4}}, {{1}, {3}, {5}, {7}}, 1};
  const auto mod = [](auto s, auto, auto, auto, auto) { return s; };
  const Blocks blocks = blocks_of(attn::causal(), 4, 4, 2);
  EXPECT_EQ(by_blocks(x, 2, mod, attn::causal(), blocks).o[0], 3);
}

// The exercise: how many questions does a causal mask of n x n blocks cost, n a power of two?
// One for the whole plane, and four for each undecided square: 1, 2, 4, ... n/2 of them stand on
// the diagonal, so 1 + 4 (n - 1).
TEST(BlockMasks, CostTheDiagonalAndNotTheArea) {
  for (int n = 1; n <= 256; n *= 2) {
    const Blocks blocks = blocks_of(attn::causal(), 2 * n, 2 * n, 2);
    EXPECT_EQ(blocks.questions, 4 * n - 3);
    EXPECT_EQ(blocks.elements, 4 * n);  // the n blocks on the diagonal
  }
}

}  // namespace
}  // namespace lesson
