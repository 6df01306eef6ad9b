#pragma once

#include <cstdint>

#include "masks/algebra.h"
#include "mods/arguments_check.h"

namespace attn {

/// A small causal triangle in every block of the plane.
///
///     attend(b, h, i, j) = j mod n <= i mod n
///
/// mini_causal(3):
///
///       keys j
///     i #..#..
///       ##.##.
///       ######
///       #..#..
///       ##.##.
///       ######
///
/// Nobody trains with it: no block of n x n is full or empty, so a kernel that takes a block for
/// either shows at once. From FlashAttention 4's tests, n = 128 there.
struct MiniCausal : MaskBase {
  std::int32_t length;  ///< n

  template <class Index>
  ATTN_HOST_DEVICE auto operator()(Index, Index, Index q, Index kv) const {
    return attn::floor_mod(kv, length) <= attn::floor_mod(q, length);
  }
  /// @throws std::invalid_argument if the length is below 1.
  void check(const Sizes&) const { check_at_least("mini_causal", "length", length, 1); }
};

/// Triangles of `length` rows. @throws std::invalid_argument if it is below 1.
inline MiniCausal mini_causal(std::int32_t length) {
  const MiniCausal mask{{}, length};
  mask.check({});
  return mask;
}

}  // namespace attn
