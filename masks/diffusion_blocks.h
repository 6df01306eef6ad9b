#pragma once

#include <cstdint>

#include "masks/algebra.h"
#include "mods/arguments_check.h"

namespace attn {

/// Training of a block diffusion model: the sequence holds the noised tokens, then the clean ones.
/// A noised block is denoised with itself and the clean blocks before it; the clean half is block
/// causal.
///
///     half = Skv / 2, I = floor((i mod half) / n), J likewise
///     attend(b, h, i, j) = I == J  and both in the same half
///                          or  I > J   and i noised and j clean
///                          or  I >= J  and both clean
///
/// block_diffusion(4, 2), noised | clean:
///
///       keys j
///     i ##..|....
///       ##..|....
///       ..##|##..
///       ..##|##..
///       ----+----
///       ....|##..
///       ....|##..
///       ....|####
///       ....|####
///
/// M. Arriola et al., "Block Diffusion", ICLR 2025, appendix B.6.
///
/// Elsewhere: `generate_block_diffusion_mask` (attention-gym).
struct BlockDiffusion : MaskBase {
  std::int32_t half;    ///< tokens of each half
  std::int32_t length;  ///< n

  template <class Index>
  ATTN_HOST_DEVICE auto operator()(Index, Index, Index q, Index kv) const {
    const auto q_clean = q >= half, kv_clean = kv >= half;
    const Index q_block = attn::floor_div(attn::floor_mod(q, half), length);
    const Index kv_block = attn::floor_div(attn::floor_mod(kv, half), length);
    const auto same_half = (q_clean && kv_clean) || (!q_clean && !kv_clean);
    return (q_block == kv_block && same_half) || (q_block > kv_block && !q_clean && kv_clean) ||
           (q_block >= kv_block && q_clean && kv_clean);
  }
  /// @throws std::invalid_argument if half or length is below 1, or the problem longer than 2 half.
  void check(const Sizes& sizes) const {
    check_at_least("block_diffusion", "half", half, 1);
    check_at_least("block_diffusion", "length", length, 1);
    if (sizes.sq > 2 * std::int64_t{half} || sizes.skv > 2 * std::int64_t{half})
      throw std::invalid_argument("block_diffusion: half = " + std::to_string(half) +
                                  ", expected at least half of Sq = " + std::to_string(sizes.sq) +
                                  " and Skv = " + std::to_string(sizes.skv));
  }
};

/// `half` noised and `half` clean tokens, in blocks of `length`.
/// @throws std::invalid_argument if either is below 1.
inline BlockDiffusion block_diffusion(std::int32_t half, std::int32_t length) {
  const BlockDiffusion mask{{}, half, length};
  mask.check({});
  return mask;
}

}  // namespace attn
