#pragma once

#include <concepts>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "masks/algebra.h"
#include "mods/lang/captured.h"

namespace attn {

/// Any mask at all, written out as a boolean tensor.
///
///     attend(b, h, i, j) = mask[b, h, i, j]        true: attend
///
/// Shapes of rank 2, 3 and 4 align to the right, as in NumPy: [Sq, Skv], [Hq, Sq, Skv] (the first
/// axis is the head, not the batch) and [B, Hq, Sq, Skv]. An axis of extent 1 broadcasts: key
/// padding is [B, 1, 1, Skv]. Row [1, 1, 1, 5] of 1 1 0 1 0:
///
///       keys j
///     i ##.#.
///       ##.#.
///       ##.#.
///
/// The mask costs a byte a pair in memory; a mask by formula costs none.
///
/// Elsewhere: `attn_mask` of dtype bool (PyTorch; true attends there too), `NumpyMask` (JAX splash
/// attention). `key_padding_mask` of `torch.nn.MultiheadAttention` has the opposite sense (true is
/// left out): `!dense(mask)`. FlashInfer's packed mask holds the same booleans, one a bit, the
/// lowest bit first. An additive mask of 0 and -inf is a bias, not a mask.
struct Dense : MaskBase {
  Captured<4, bool> mask;  ///< [B or 1, Hq or 1, Sq or 1, Skv or 1]

  template <class Index>
  ATTN_HOST_DEVICE auto operator()(Index b, Index h, Index q, Index kv) const {
    return mask(b, h, q, kv);
  }

  /// @throws std::invalid_argument if the shape does not broadcast to [B, Hq, Sq, Skv].
  void check(const Sizes& sizes) const {
    const std::array<std::int64_t, 4> problem{sizes.b, sizes.hq, sizes.sq, sizes.skv};
    for (int axis = 0; axis < 4; ++axis)
      if (mask.tensor.extents[axis] != 1 && mask.tensor.extents[axis] != problem[axis])
        throw std::invalid_argument("dense: mask has shape " + shape_string(mask.tensor.extents) +
                                    " (axes missing on the left read as 1), expected each axis 1 "
                                    "or as in [B, Hq, Sq, Skv] = " +
                                    shape_string(problem));
  }
};

/// `mask` is [Sq, Skv], [Hq, Sq, Skv] or [B, Hq, Sq, Skv], any axis 1. The memory stays the
/// caller's. Whether it fits a problem is known, and checked, when the mask meets one.
template <class T, int Rank>
requires std::same_as < std::remove_const_t<T>,
bool > Dense dense(const TensorView<T, Rank>& mask) {
  static_assert(Rank >= 2 && Rank <= 4, "a dense mask has rank 2, 3 or 4");
  TensorView<const bool, 4> full{mask.data, {1, 1, 1, 1}, {0, 0, 0, 0}};
  for (std::size_t axis = 0; axis < Rank; ++axis) {
    full.extents[4 - Rank + axis] = mask.extents[axis];
    full.strides[4 - Rank + axis] = mask.strides[axis];
  }
  return {{}, Captured<4, bool>(full, "dense mask")};
}
/// The mask that `mask` holds: [Sq, Skv], or with [Hq] or [B, Hq] before these.
template <int Rank>
Dense dense(const Captured<Rank, bool>& mask) {
  return dense(mask.tensor);
}

}  // namespace attn
