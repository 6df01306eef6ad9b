#pragma once

#include "masks/algebra.h"
#include "masks/alignment.h"

namespace attn {

/// A query attends to the keys up to its own position.
///
///     attend(b, h, i, j) = j <= i + off        off by `alignment.h`
///
///       keys j
///     i #.......
///       ##......
///       ###.....
///       ####....
///       #####...
///       ######..
///       #######.
///       ########
///
/// A. Vaswani et al., "Attention Is All You Need", 2017, section 3.2.3.
///
/// Elsewhere:
///   PyTorch `is_causal`                        causal(top_left)
///   FlashAttention from 2.1 on, FlashInfer, xFormers `LowerTriangularFromBottomRight`
///                                              causal(bottom_right)
///   JAX splash attention `CausalMask(offset)`  causal(diagonal_offset(offset))
///   the future only, j >= i                    !causal(diagonal_offset(-1))
struct Causal : MaskBase {
  Alignment alignment;  ///< where the diagonal ends

  template <class Index>
  ATTN_HOST_DEVICE auto operator()(Index b, Index, Index q, Index kv) const {
    return kv <= alignment.diagonal(b, q, kv);
  }
  void check(const Sizes& sizes) const { alignment.check(sizes); }  ///< as Alignment::check
};

/// Row i attends to keys j <= i + off. The lengths are those of the problem at each call.
inline Causal causal(const Alignment& alignment = top_left) { return {{}, alignment}; }

}  // namespace attn
