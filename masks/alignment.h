#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "mods/lang/captured.h"

namespace attn {

/// Where the diagonal of a causal or windowed mask runs: row i ends on key i + off.
///
///                            off
///     top_left               0             row 0 ends on key 0
///     bottom_right           Skv - Sq      the last row ends on the last key
///     diagonal_offset(n)     n
///     diagonal_offset(t)     t[b]          t captured, [B] or [1]
///
/// Sq = 3, Skv = 5 and Sq = 5, Skv = 3, `causal` of each:
///
///     top_left  bottom_right      top_left  bottom_right
///       #....      ###..            #..         ...
///       ##...      ####.            ##.         ...
///       ###..      #####            ###         #..
///                                   ###         ##.
///                                   ###         ###
///
/// With Sq > Skv, `bottom_right` leaves the first Sq - Skv rows without a key. The lengths are
/// those of the problem that the mask is called for: no mask stores them. In decode, where row i
/// has the index q = i + q_offset, the alignment still counts rows: `bottom_right` lets a step see
/// what the same row of the whole problem would.
struct Alignment {
  enum class Kind { top_left, bottom_right, fixed, per_batch };  ///< as drawn above, or off itself
  /// Which of them.
  Kind kind = Kind::top_left;
  std::int32_t offset = 0;            ///< of Kind::fixed
  Captured<1, std::int32_t> offsets;  ///< of Kind::per_batch, [B] or [1]

  /// The key on which the row of index q ends: row + off, where row = q - q_offset.
  template <class Index>
  ATTN_HOST_DEVICE Index diagonal(Index b, Index q, Index kv) const {
    const Index row = q - sizes(q).q_offset;
    switch (kind) {
      case Kind::bottom_right:
        return row + (sizes(kv).skv - sizes(q).sq);
      case Kind::fixed:
        return row + offset;
      case Kind::per_batch:
        return row + offsets(b);
      case Kind::top_left:
        break;
    }
    return row;
  }

  /// @throws std::invalid_argument if there is not one offset a batch entry (or one for all).
  void check(const Sizes& sizes) const {
    const std::int64_t count = offsets.tensor.extents[0];
    if (kind == Kind::per_batch && count != 1 && count != sizes.b)
      throw std::invalid_argument("diagonal_offset: " + std::to_string(count) +
                                  " offsets, expected 1 or B = " + std::to_string(sizes.b));
  }
};

/// Row 0 ends on key 0.
inline constexpr Alignment top_left{};
/// The last row ends on the last key.
inline constexpr Alignment bottom_right{Alignment::Kind::bottom_right, 0, {}};

/// Row 0 ends on key `offset`.
inline Alignment diagonal_offset(std::int32_t offset) {
  return {Alignment::Kind::fixed, offset, {}};
}
/// One offset a batch entry; the memory stays the caller's.
inline Alignment diagonal_offset(Captured<1, std::int32_t> offsets) {
  offsets.name = "diagonal_offset";
  return {Alignment::Kind::per_batch, 0, offsets};
}

}  // namespace attn
