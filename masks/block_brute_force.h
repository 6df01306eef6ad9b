#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "masks/block_mask.h"
#include "masks/dense_construction.h"

/// Block masks the slow way, for tests: every pair is looked at, every block is visited.
namespace attn {

/// The kind of block (q_block, kv_block) of one head, by asking for every pair.
template <class Mask>
BlockKind brute_kind(const Mask& mask, const Sizes& sizes, const BlockMaskShape& shape, int b,
                     int h, int q_block, int kv_block) {
  bool some = false, all = true;
  for (int i = q_block * shape.q_block; i < std::min((q_block + 1) * shape.q_block, sizes.sq); ++i)
    for (int j = kv_block * shape.kv_block;
         j < std::min((kv_block + 1) * shape.kv_block, sizes.skv); ++j) {
      const bool attends_here = attends<ExactEnv>(mask, sizes, b, h, i, j);
      some |= attends_here;
      all &= attends_here;
    }
  return all ? BlockKind::full : some ? BlockKind::partial : BlockKind::empty;
}

/// "" where `blocks` says of each block what `expected(b, h, q block, kv block)` says.
template <class Expected>
std::string first_wrong_block(const BlockMask& blocks, const Expected& expected) {
  const BlockMaskShape& s = blocks.shape();
  for (int b = 0; b < s.b; ++b)
    for (int h = 0; h < s.hq; ++h)
      for (int r = 0; r < s.q_blocks(); ++r)
        for (int c = 0; c < s.kv_blocks(); ++c) {
          const BlockKind want = expected(b, h, r, c), got = blocks.kind(b, h, r, c);
          if (want != got)
            return "b" + std::to_string(b) + " h" + std::to_string(h) + " block " +
                   std::to_string(r) + ", " + std::to_string(c) + ": kind " +
                   std::to_string(static_cast<int>(got)) + ", expected " +
                   std::to_string(static_cast<int>(want));
        }
  return "";
}

/// "" where `blocks` is right for `mask`, by every pair.
template <class Mask>
std::string first_wrong_block(const BlockMask& blocks, const Mask& mask, const Sizes& sizes) {
  return first_wrong_block(blocks, [&](int b, int h, int r, int c) {
    return brute_kind(mask, sizes, blocks.shape(), b, h, r, c);
  });
}

/// What blocks of `old` say of a rectangle of pairs: where all that cover it agree that, else
/// partial.
inline BlockKind covering_kind(const BlockMask& old, int b, int h, int q_first, int q_last,
                               int kv_first, int kv_last) {
  const BlockMaskShape& s = old.shape();
  bool all_full = true, all_empty = true;
  for (int r = q_first / s.q_block; r <= q_last / s.q_block; ++r)
    for (int c = kv_first / s.kv_block; c <= kv_last / s.kv_block; ++c) {
      const BlockKind kind = old.kind(b, h, r, c);
      all_full &= kind == BlockKind::full;
      all_empty &= kind == BlockKind::empty;
    }
  return all_full ? BlockKind::full : all_empty ? BlockKind::empty : BlockKind::partial;
}

/// "" where each block of `cut`, which starts at (b, h, q, kv) of `old`, is what its cover says.
inline std::string first_wrong_cut(const BlockMask& cut, const BlockMask& old, int b0, int h0,
                                   int q0, int kv0) {
  const BlockMaskShape& s = cut.shape();
  return first_wrong_block(cut, [&](int b, int h, int r, int c) {
    return covering_kind(old, b0 + b, h0 + h, q0 + r * s.q_block,
                         q0 + std::min((r + 1) * s.q_block, s.sq) - 1, kv0 + c * s.kv_block,
                         kv0 + std::min((c + 1) * s.kv_block, s.skv) - 1);
  });
}

}  // namespace attn
