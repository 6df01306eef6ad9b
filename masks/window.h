#pragma once

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>

#include "masks/algebra.h"
#include "masks/alignment.h"

namespace attn {

/// A side of a window without an end.
inline constexpr std::int32_t unbounded = std::numeric_limits<std::int32_t>::max();

/// A query attends to the keys near its own position.
///
///     attend(b, h, i, j) = i + off - left <= j <= i + off + right        off by `alignment.h`
///
/// Both ends are included, so a row sees up to left + 1 + right keys. window(2, 1):
///
///       keys j
///     i ##......
///       ###.....
///       ####....
///       .####...
///       ..####..
///       ...####.
///       ....####
///       .....###
///
/// I. Beltagy et al., "Longformer: The Long-Document Transformer", 2020, section 3.1;
/// A. Q. Jiang et al., "Mistral 7B", 2023, section 2.
///
/// Elsewhere (the ends differ by one between systems):
///   FlashAttention `window_size=(l, r)`, -1 without end
///                                        window(l, r, bottom_right), -1 as `unbounded`
///   attention-gym `sliding_window` of W, 0 <= i - j <= W
///                                        window(W, 0)
///   Mistral, Transformers `sliding_window = W`: W keys, the query's own included
///                                        window(W - 1, 0)
///   cuDNN left bound L (excluded), right bound R
///                                        window(L - 1, R), or aligned bottom_right
///   FlashInfer `window_left = W`         window(W, unbounded, bottom_right)
///   JAX splash attention `LocalMask((l, r), offset)`
///                                        window(l, r, diagonal_offset(offset))
struct Window : MaskBase {
  std::int32_t left = unbounded;   ///< keys before the query's own position
  std::int32_t right = unbounded;  ///< keys behind it
  Alignment alignment;             ///< which key is at a query's own position

  template <class Index>
  ATTN_HOST_DEVICE auto operator()(Index b, Index, Index q, Index kv) const {
    // The distance is compared, not i + off + right, which could leave 32 bits.
    const Index distance = kv - alignment.diagonal(b, q, kv);
    using Condition = decltype(distance <= right);
    Condition inside(true);
    if (left != unbounded) inside = inside && distance >= -left;
    if (right != unbounded) inside = inside && distance <= right;
    return inside;
  }

  /// @throws std::invalid_argument if an end is negative or the alignment does not fit.
  void check(const Sizes& sizes) const {
    check_end("left", left);
    check_end("right", right);
    alignment.check(sizes);
  }
  static void check_end(const char* name, std::int32_t value) {  /// throws below 0
    if (value < 0)
      throw std::invalid_argument(std::string("window: ") + name + " = " + std::to_string(value) +
                                  ", expected 0 or more, or attn::unbounded");
  }
};

/// Row i attends to keys from i + off - left to i + off + right, both included; `unbounded` leaves
/// a side without an end. The lengths are those of the problem at each call.
/// @throws std::invalid_argument if `left` or `right` is negative.
inline Window window(std::int32_t left, std::int32_t right, const Alignment& alignment = top_left) {
  Window::check_end("left", left);
  Window::check_end("right", right);
  return {{}, left, right, alignment};
}

}  // namespace attn
