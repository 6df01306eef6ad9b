#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "mods/arguments_check.h"
#include "mods/lang/index.h"

namespace attn {

/// The order in which the tokens of an image stand in the sequence. A 4 x 4 image:
///
///     row_major       tiled(2 x 2)    morton
///      0  1  2  3      0  1  4  5      0  1  4  5
///      4  5  6  7      2  3  6  7      2  3  6  7
///      8  9 10 11      8  9 12 13      8  9 12 13
///     12 13 14 15     10 11 14 15     10 11 14 15
///
/// (Morton differs from tiles of 2 x 2 from 8 x 8 on.) Tiles and the Morton curve keep neighbours
/// of the image close in the sequence, so that more blocks of a local mask are empty.
///
/// G. M. Morton, "A Computer Oriented Geodetic Data Base", 1966: x and y are the even and the odd
/// bits of the position.
struct GridOrder {
  enum class Kind { row_major, tiled, morton };  ///< as drawn above
  Kind kind = Kind::row_major;                   ///< which of them
  std::int32_t width = 1, height = 1;            ///< of the image, in tokens
  std::int32_t tile_width = 1, tile_height = 1;  ///< of Kind::tiled

  /// The column of position n.
  template <class Index>
  ATTN_HOST_DEVICE Index x(const Index& n) const {
    if (kind == Kind::row_major) return attn::floor_mod(n, width);
    if (kind == Kind::morton) return every_second_bit(n);
    const Index tile = attn::floor_div(n, tile_width * tile_height);
    const Index inside = attn::floor_mod(n, tile_width * tile_height);
    return attn::floor_mod(tile, width / tile_width) * tile_width +
           attn::floor_mod(inside, tile_width);
  }
  /// The row of position n.
  template <class Index>
  ATTN_HOST_DEVICE Index y(const Index& n) const {
    if (kind == Kind::row_major) return attn::floor_div(n, width);
    if (kind == Kind::morton) return every_second_bit(attn::floor_div(n, 2));
    const Index tile = attn::floor_div(n, tile_width * tile_height);
    const Index inside = attn::floor_mod(n, tile_width * tile_height);
    return attn::floor_div(tile, width / tile_width) * tile_height +
           attn::floor_div(inside, tile_width);
  }

  /// @throws std::invalid_argument if a side is below 1, tiles do not divide the image, or an image
  ///     in Morton order is not a square of a power of two.
  void check(const char* of) const {
    check_at_least(of, "width", width, 1);
    check_at_least(of, "height", height, 1);
    check_at_least(of, "tile_width", tile_width, 1);
    check_at_least(of, "tile_height", tile_height, 1);
    if (kind == Kind::tiled && (width % tile_width != 0 || height % tile_height != 0))
      throw std::invalid_argument(std::string(of) + ": tiles of " + side(tile_width, tile_height) +
                                  ", expected sides that divide the image, " + side(width, height));
    if (kind == Kind::morton && (width != height || (width & (width - 1)) != 0))
      throw std::invalid_argument(std::string(of) + ": image of " + side(width, height) +
                                  ", expected a square of a power of two for Morton order");
  }

 private:
  /// Bits 0, 2, 4, ... of n, moved together.
  template <class Index>
  ATTN_HOST_DEVICE Index every_second_bit(Index n) const {
    Index sum = n * 0;
    for (std::int32_t bit = 1; bit < width; bit *= 2) {
      sum = sum + attn::floor_mod(n, 2) * bit;
      n = attn::floor_div(n, 4);
    }
    return sum;
  }
  static std::string side(std::int32_t w, std::int32_t h) {
    return std::to_string(w) + " x " + std::to_string(h);
  }
};

/// Row after row, `width` tokens each.
/// @throws std::invalid_argument if a side is below 1.
inline GridOrder row_major(std::int32_t width, std::int32_t height) {
  const GridOrder order{GridOrder::Kind::row_major, width, height, 1, 1};
  order.check("row_major");
  return order;
}
/// Tile after tile, row-major inside and out.
/// @throws std::invalid_argument if a side is below 1 or the tiles do not divide the image.
inline GridOrder tiled(std::int32_t width, std::int32_t height, std::int32_t tile_width,
                       std::int32_t tile_height) {
  const GridOrder order{GridOrder::Kind::tiled, width, height, tile_width, tile_height};
  order.check("tiled");
  return order;
}
/// Along the Morton curve. @throws std::invalid_argument if `side` is not a power of two.
inline GridOrder morton(std::int32_t side) {
  const GridOrder order{GridOrder::Kind::morton, side, side, 1, 1};
  order.check("morton");
  return order;
}

}  // namespace attn
