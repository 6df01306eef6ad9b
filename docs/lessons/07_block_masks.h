#pragma once

#include "docs/lessons/05_mods_and_masks.h"

namespace lesson {

/// How many pairs of a block attend: none, some or all.
enum class Kind { empty, partial, full };

/// The plane of queries and keys in square blocks, and what finding their kinds has cost.
struct Blocks {
  int size, rows, keys;     ///< elements a side of a block, queries, keys
  std::vector<Kind> kinds;  ///< [rows / size][keys / size], both rounded up
  int questions = 0;        ///< boxes asked about
  int elements = 0;         ///< pairs asked about one by one

  int across() const { return (keys + size - 1) / size; }  ///< blocks in a row of blocks
  int down() const { return (rows + size - 1) / size; }    ///< rows of blocks
  /// Of one block, counted from the top left.
  Kind& at(int block_row, int block) { return kinds[block_row * across() + block]; }
  /// The same, to read.
  Kind at(int block_row, int block) const { return kinds[block_row * across() + block]; }
};

/// Asks the mask about the blocks [r0, r1) x [c0, c1) at once; where the answer is "it depends",
/// asks again about each quarter. A single block that stays undecided is looked at pair by pair.
template <class Mask>
void decide(Blocks& b, const Mask& mask, int r0, int r1, int c0, int c1) {
  if (r0 >= r1 || c0 >= c1) return;
  const int i0 = r0 * b.size, i1 = std::min(r1 * b.size, b.rows);
  const int j0 = c0 * b.size, j1 = std::min(c1 * b.size, b.keys);
  ++b.questions;
  attn::Maybe answer = OnRanges(b.keys).mask(mask, {i0, i1 - 1}, {j0, j1 - 1});

  if (!answer.yes() && !answer.no()) {
    if (r1 - r0 > 1 || c1 - c0 > 1) {
      const int r = (r0 + r1 + 1) / 2, c = (c0 + c1 + 1) / 2;
      decide(b, mask, r0, r, c0, c);
      decide(b, mask, r0, r, c, c1);
      decide(b, mask, r, r1, c0, c);
      decide(b, mask, r, r1, c, c1);
      return;
    }
    answer = attn::Maybe(false, false);
    for (int i = i0; i < i1; ++i)
      for (int j = j0; j < j1; ++j, ++b.elements)
        (OnDoubles(b.keys).mask(mask, i, j) ? answer.can_be_true : answer.can_be_false) = true;
  }
  for (int r = r0; r < r1; ++r)
    for (int c = c0; c < c1; ++c)
      b.at(r, c) = answer.no() ? Kind::empty : answer.yes() ? Kind::full : Kind::partial;
}

/// The blocks of a mask of `rows` queries and `keys` keys, `size` a side.
template <class Mask>
Blocks blocks_of(const Mask& mask, int rows, int keys, int size) {
  Blocks b{size, rows, keys, {}};
  b.kinds.resize(static_cast<std::size_t>(b.down()) * b.across());
  decide(b, mask, 0, b.down(), 0, b.across());
  return b;
}

/// Lesson 5 by blocks: an empty block costs nothing, a full one does not ask the mask, a partial
/// one asks for every pair. The mod is asked everywhere.
template <class Mod, class Mask>
Answer by_blocks(const Problem& x, int i, const Mod& mod, const Mask& mask, const Blocks& blocks) {
  OnDoubles asked(blocks.keys);
  Running r{.o = Row(x.v[0].size())};
  for (int block = 0; block < blocks.across(); ++block) {
    const Kind kind = blocks.at(i / blocks.size, block);
    if (kind == Kind::empty) continue;
    const int last = std::min((block + 1) * blocks.size, blocks.keys);
    for (int j = block * blocks.size; j < last; ++j) {
      if (kind == Kind::partial && !asked.mask(mask, i, j)) continue;
      add_key(r, asked.mod(mod, score(x, j), i, j), x.v[j]);
    }
  }
  return finish(r);
}

}  // namespace lesson
