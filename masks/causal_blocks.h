#pragma once

#include <cstdint>

#include "masks/algebra.h"
#include "mods/arguments_check.h"

namespace attn {

/// Causal from block to block, and everything inside a block.
///
///     attend(b, h, i, j) = floor(j / n) <= floor(i / n)
///
/// block_causal(2):
///
///       keys j
///     i ##....
///       ##....
///       ####..
///       ####..
///       ######
///       ######
///
/// With n = 1 it is causal(). Elsewhere: `block_causal` in FlashAttention 4's tests; the frame-wise
/// causal masks of video generators, n the tokens of a frame.
struct BlockCausal : MaskBase {
  std::int32_t length;  ///< n

  template <class Index>
  ATTN_HOST_DEVICE auto operator()(Index, Index, Index q, Index kv) const {
    return attn::floor_div(kv, length) <= attn::floor_div(q, length);
  }
  /// @throws std::invalid_argument if the length is below 1.
  void check(const Sizes&) const { check_at_least("block_causal", "length", length, 1); }
};

/// Blocks of `length` positions. @throws std::invalid_argument if it is below 1.
inline BlockCausal block_causal(std::int32_t length) {
  const BlockCausal mask{{}, length};
  mask.check({});
  return mask;
}

}  // namespace attn
