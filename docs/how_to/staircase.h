#pragma once

#include "masks/algebra.h"

/// The mask of docs/how_to_mask.md.
namespace how_to {

//! [mask]
/// A query attends to the keys up to the end of the step after its own. Staircase{{}, 2}:
///
///       keys j                attend(b, h, i, j) = floor(j / n) <= floor(i / n) + 1
///     i ####....
///       ####....
///       ######..
///       ######..
///       ########
///       ########
struct Staircase : attn::MaskBase {
  int step = 1;  ///< n

  template <class Index>
  ATTN_HOST_DEVICE auto operator()(Index, Index, Index q, Index kv) const {
    return attn::floor_div(kv, step) <= attn::floor_div(q, step) + 1;
  }
};
//! [mask]

}  // namespace how_to
