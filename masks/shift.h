#pragma once

#include <cstdint>

#include "masks/algebra.h"

namespace attn {

/// A mask seen from other positions.
///
///     attend(b, h, i, j) = mask(b, h, i + rows, j + keys)
///
/// shift(causal(), 0, -2): every row may see two keys more.
///
///       keys j
///     i ###.....
///       ####....
///       #####...
///       ######..
///
/// A chunk of a longer problem is a shift by where the chunk starts: key chunk n of length c has
/// `shift(mask, 0, n * c)`. The inner mask still asks for the lengths of the problem at hand, and
/// reads its tables at the shifted positions.
template <class Mask>
struct Shift : MaskBase {
  Mask mask;                        ///< asked at the other positions
  std::int32_t rows = 0, keys = 0;  ///< added to q, and to kv

  template <class Env>
  ATTN_HOST_DEVICE auto operator()(Index<Env> b, Index<Env> h, Index<Env> q, Index<Env> kv) const {
    return call_mask(mask, b, h, q + rows, kv + keys);
  }
  void check(const Sizes& sizes) const { check_mask(mask, sizes); }  ///< the mask itself
};

/// The mask at row i + rows and key j + keys. Either may be negative.
template <class Mask>
Shift<Mask> shift(const Mask& mask, std::int32_t rows, std::int32_t keys) {
  return {{}, mask, rows, keys};
}

}  // namespace attn
