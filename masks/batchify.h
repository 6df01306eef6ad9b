#pragma once

#include <cstdint>

#include "masks/algebra.h"
#include "mods/arguments_check.h"

namespace attn {

/// A batch laid out along the sequence: entry n has positions n * length to (n + 1) * length - 1,
/// and each entry sees itself only, through a mask that knows its own positions.
///
///     attend(b, h, i, j) = floor(i / n) == floor(j / n)  and  mask(b, h, i mod n, j mod n)
///
/// batchify(causal(), 3):
///
///       keys j
///     i #.....
///       ##....
///       ###...
///       ...#..
///       ...##.
///       ...###
///
/// Elsewhere: `batchify_mask_mod` (attention-gym). Entries of different lengths are
/// `document_wise`. The inner mask asks for the lengths of the whole problem, so align it by a
/// fixed offset.
template <class Mask>
struct Batchify : MaskBase {
  Mask mask;            ///< of one entry, in its own positions
  std::int32_t length;  ///< n, positions of an entry

  template <class Env>
  ATTN_HOST_DEVICE auto operator()(Index<Env> b, Index<Env> h, Index<Env> q, Index<Env> kv) const {
    const auto same_entry = attn::floor_div(q, length) == attn::floor_div(kv, length);
    return same_entry &&
           call_mask(mask, b, h, attn::floor_mod(q, length), attn::floor_mod(kv, length));
  }
  /// @throws std::invalid_argument if the length is below 1.
  void check(const Sizes& sizes) const {
    check_at_least("batchify", "length", length, 1);
    check_mask(mask, sizes);
  }
};

/// Entries of `length` positions. @throws std::invalid_argument if it is below 1.
template <class Mask>
Batchify<Mask> batchify(const Mask& mask, std::int32_t length) {
  check_at_least("batchify", "length", length, 1);
  return {{}, mask, length};
}

}  // namespace attn
