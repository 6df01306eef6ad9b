#pragma once

#include <cstdint>

#include "masks/diagonal_blocks.h"

namespace attn {

/// Causal inside chunks: a query attends to its own chunk, up to itself.
///
///     attend(b, h, i, j) = floor(i / c) == floor(j / c)  and  j <= i
///
/// chunked_causal(3):
///
///       keys j
///     i #......
///       ##.....
///       ###....
///       ...#...
///       ...##..
///       ...###.
///       ......#
///
/// Meta AI, "Llama 4", 2025: the layers with local attention, c = 8192.
///
/// Elsewhere: `ChunkedCausalMask` (JAX splash attention), `attention_chunk` (FlashAttention 3).
/// Other than a window, the reach of a row shrinks to itself where a chunk begins.
struct ChunkedCausal : MaskBase {
  std::int32_t chunk;  ///< c

  template <class Index>
  ATTN_HOST_DEVICE auto operator()(Index b, Index h, Index q, Index kv) const {
    return BlockDiagonal{{}, chunk}(b, h, q, kv) && kv <= q;
  }
  /// @throws std::invalid_argument if the chunk is below 1.
  void check(const Sizes&) const { check_at_least("chunked_causal", "chunk", chunk, 1); }
};

/// Chunks of `chunk` positions. @throws std::invalid_argument if it is below 1.
inline ChunkedCausal chunked_causal(std::int32_t chunk) {
  const ChunkedCausal mask{{}, chunk};
  mask.check({});
  return mask;
}

}  // namespace attn
