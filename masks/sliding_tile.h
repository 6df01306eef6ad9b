#pragma once

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "masks/algebra.h"
#include "mods/arguments_check.h"

namespace attn {

/// Video or image tokens in tiles: a tile attends to the tiles around it, in time, height and
/// width; text tokens follow the vision tokens and see, and are seen by, everything.
///
///     tile n = floor(i / tokens) has coordinates (t, y, x) in a box of tiles
///     attend(b, h, i, j) = i text  or  j text
///                          or  |clamp(t(i), r, T - 1 - r) - t(j)| <= r  and the same in y and x,
///                              r = floor(kernel / 2) of that axis
///
/// with j below vision + text: keys past the text are padding. Three tiles of two tokens in a row,
/// kernel 1, one text token:
///
///       keys j
///     i ##....#
///       ##....#
///       ..##..#
///       ..##..#
///       ....###
///       ....###
///       #######
///
/// P. Zhang et al., "Fast Video Generation with Sliding Tile Attention", 2025, section 3.2. The
/// sequence is ordered tile after tile, so a tile pair is a full block or an empty one.
///
/// Elsewhere: `generate_sta_mask_mod_2d` and `_3d` (attention-gym). 2-D: one tile in time.
struct SlidingTile : MaskBase {
  std::array<std::int32_t, 3> tiles;   ///< in time, height, width
  std::array<std::int32_t, 3> kernel;  ///< in tiles
  std::int32_t tokens;                 ///< of a tile
  std::int32_t text = 0;               ///< tokens after the vision tokens

  template <class Index>
  ATTN_HOST_DEVICE auto operator()(Index, Index, Index q, Index kv) const {
    const std::int32_t plane = tiles[1] * tiles[2], end = tiles[0] * plane * tokens;
    const Index a = attn::floor_div(q, tokens), c = attn::floor_div(kv, tokens);
    const auto near_in_time = near(attn::floor_div(a, plane), attn::floor_div(c, plane), 0);
    const auto near_in_height = near(attn::floor_mod(attn::floor_div(a, tiles[2]), tiles[1]),
                                     attn::floor_mod(attn::floor_div(c, tiles[2]), tiles[1]), 1);
    const auto near_in_width = near(attn::floor_mod(a, tiles[2]), attn::floor_mod(c, tiles[2]), 2);
    const auto inside = near_in_time && near_in_height && near_in_width;
    return kv < end + text && (q >= end || kv >= end || inside);
  }

  /// @throws std::invalid_argument if a number of tiles or tokens is below 1, a kernel does not fit
  ///     its axis, or the vision tokens leave 32 bits.
  void check(const Sizes&) const {
    const char* names[] = {"in time", "in height", "in width"};
    std::int64_t count = tokens;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      check_at_least("sliding_tile", (std::string("tiles ") + names[axis]).c_str(), tiles[axis], 1);
      if (kernel[axis] < 1 || 2 * (kernel[axis] / 2) + 1 > tiles[axis])
        throw std::invalid_argument("sliding_tile: kernel " + std::string(names[axis]) + " = " +
                                    std::to_string(kernel[axis]) + ", expected 1 to the " +
                                    std::to_string(tiles[axis]) + " tiles of that axis, odd");
      count *= tiles[axis];
    }
    check_at_least("sliding_tile", "tokens", tokens, 1);
    check_at_least("sliding_tile", "text", text, 0);
    if (count + text > std::int64_t{1} << 30)
      throw std::invalid_argument("sliding_tile: " + std::to_string(count) +
                                  " vision tokens, expected at most 2^30 with the text");
  }

 private:
  template <class Index>
  ATTN_HOST_DEVICE auto near(const Index& query, const Index& key, int axis) const {
    const std::int32_t r = kernel[axis] / 2;
    return attn::abs(attn::clamp(query, r, tiles[axis] - 1 - r) - key) <= r;
  }
};

/// `tiles` and `kernel` in time, height and width, counted in tiles of `tokens` tokens.
/// @throws std::invalid_argument if a number is below 1 or a kernel does not fit its axis.
inline SlidingTile sliding_tile(const std::array<std::int32_t, 3>& tiles,
                                const std::array<std::int32_t, 3>& kernel, std::int32_t tokens,
                                std::int32_t text = 0) {
  const SlidingTile mask{{}, tiles, kernel, tokens, text};
  mask.check({});
  return mask;
}
/// An image: `tiles` and `kernel` in height and width.
inline SlidingTile sliding_tile_2d(const std::array<std::int32_t, 2>& tiles,
                                   const std::array<std::int32_t, 2>& kernel, std::int32_t tokens,
                                   std::int32_t text = 0) {
  return sliding_tile({1, tiles[0], tiles[1]}, {1, kernel[0], kernel[1]}, tokens, text);
}

}  // namespace attn
