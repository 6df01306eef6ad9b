#pragma once

#include <cstdint>

#include "masks/algebra.h"
#include "mods/arguments_check.h"

namespace attn {

/// Each tile of queries attends to the k tiles of keys that were chosen for it.
///
///     attend(b, h, i, j) = floor(j / n) is one of chosen[b, h, floor(i / n), 0..k-1]
///                          and  j mod n < valid[floor(j / n)]
///
/// Tiles of 2, k = 2, chosen (0 1), (1 2), (0 2), the last tile holds one token:
///
///       keys j
///     i ####..
///       ####..
///       ..###.
///       ..###.
///       ##..#.
///       ##..#.
///
/// P. Zhang et al., "VSA: Faster Video Diffusion with Trainable Sparse Attention", 2025,
/// section 2.2: a coarse attention over tile averages chooses. A tile may be named twice.
///
/// Elsewhere: the VSA mask of attention-gym. `valid` counts the tokens of a tile that are no
/// padding.
struct TopTiles : MaskBase {
  std::int32_t tile;                 ///< n
  Captured<4, std::int32_t> chosen;  ///< [B or 1, Hq or 1, tiles of queries, k]
  Captured<1, std::int32_t> valid;   ///< [tiles of keys]

  template <class Index>
  ATTN_HOST_DEVICE auto operator()(Index b, Index h, Index q, Index kv) const {
    const Index q_tile = attn::floor_div(q, tile), kv_tile = attn::floor_div(kv, tile);
    auto found = chosen(b, h, q_tile, 0) == kv_tile;
    for (std::int32_t n = 1; n < chosen.tensor.extents[3]; ++n)
      found = found || chosen(b, h, q_tile, n) == kv_tile;
    return found && attn::floor_mod(kv, tile) < valid(kv_tile);
  }
  /// @throws std::invalid_argument if the tile is below 1 or a table does not cover its tiles.
  void check(const Sizes& sizes) const {
    check_at_least("top_tiles", "tile", tile, 1);
    const auto tiles = [this](int length) { return (std::int64_t{length} + tile - 1) / tile; };
    check_table("top_tiles", "chosen", chosen, one_or("B", sizes.b), one_or("Hq", sizes.hq),
                at_least("tiles of queries", tiles(sizes.sq)), at_least("k", 1));
    check_table("top_tiles", "valid", valid, at_least("tiles of keys", tiles(sizes.skv)));
  }
};

/// The memory stays the caller's. @throws std::invalid_argument if the tile is below 1.
inline TopTiles top_tiles(std::int32_t tile, Captured<4, std::int32_t> chosen,
                          Captured<1, std::int32_t> valid) {
  check_at_least("top_tiles", "tile", tile, 1);
  chosen.name = "chosen";
  valid.name = "valid";
  return {{}, tile, chosen, valid};
}

}  // namespace attn
