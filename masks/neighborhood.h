#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "masks/algebra.h"
#include "masks/grid_order.h"

namespace attn {

/// Each pixel attends to the k x k pixels around it; at the border the square moves inside.
///
///     r = floor(k / 2)
///     attend(b, h, i, j) = |clamp(x(i), r, width - 1 - r) - x(j)| <= r   and the same in y
///
/// x and y by `grid_order.h`: row-major, tiled or Morton. The keys of one query, 5 x 5 image, k =
/// 3:
///
///     of (2, 1)     of (0, 0)
///       .###.         ###..
///       .###.         ###..
///       .###.         ###..
///       .....         .....
///       .....         .....
///
/// A. Hassani et al., "Neighborhood Attention Transformer", CVPR 2023, section 3.1.
///
/// Elsewhere: `generate_natten`, `generate_tiled_natten`, `generate_morton_natten` (attention-gym);
/// `natten_2d` in PyTorch FlexAttention's tests. An even k there rounds as here: k / 2 on each
/// side.
struct Neighborhood : MaskBase {
  GridOrder order;      ///< where each token lies in the image
  std::int32_t kernel;  ///< k

  template <class Index>
  ATTN_HOST_DEVICE auto operator()(Index, Index, Index q, Index kv) const {
    return near(order.x(q), order.x(kv), order.width) &&
           near(order.y(q), order.y(kv), order.height);
  }
  /// @throws std::invalid_argument if the kernel is not 1 to the image's sides, or the sequences
  /// are
  ///     longer than the image.
  void check(const Sizes& sizes) const {
    order.check("neighborhood");
    const std::int32_t most = std::min(order.width, order.height);
    if (kernel < 1 || 2 * (kernel / 2) + 1 > most)
      throw std::invalid_argument("neighborhood: kernel = " + std::to_string(kernel) +
                                  ", expected 1 or more, and 2 (kernel / 2) + 1 at most " +
                                  std::to_string(most));
    const std::int64_t pixels = std::int64_t{order.width} * order.height;
    if (sizes.sq > pixels || sizes.skv > pixels)
      throw std::invalid_argument("neighborhood: image of " + std::to_string(pixels) +
                                  " tokens, expected at least Sq = " + std::to_string(sizes.sq) +
                                  " and Skv = " + std::to_string(sizes.skv));
  }

 private:
  template <class Index>
  ATTN_HOST_DEVICE auto near(const Index& query, const Index& key, std::int32_t length) const {
    const std::int32_t r = kernel / 2;
    return attn::abs(attn::clamp(query, r, length - 1 - r) - key) <= r;
  }
};

/// A square of `kernel` pixels around each.
/// @throws std::invalid_argument if `kernel` is not 1 to the image's sides.
inline Neighborhood neighborhood(const GridOrder& order, std::int32_t kernel) {
  const Neighborhood mask{{}, order, kernel};
  mask.check({});
  return mask;
}

}  // namespace attn
