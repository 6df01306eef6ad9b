#pragma once

#include <cstddef>
#include <string>
#include <vector>

/// Pictures of masks and score mods: as characters for the terminal, and as SVG.
namespace attn::fuzz {

/// One head of a mask, row by row.
struct MaskGrid {
  int rows = 0, columns = 0;  ///< queries and keys
  std::vector<char> pairs;    ///< 1 attends, 0 does not

  /// Whether query `row` attends key `column`.
  bool attends(int row, int column) const {
    return pairs[static_cast<std::size_t>(row) * static_cast<std::size_t>(columns) +
                 static_cast<std::size_t>(column)] != 0;
  }
};

/// What a kernel does with a block: computes it without the mask, computes it with the mask, skips.
enum class BlockKind { full, partial, empty };

/// Of the block in block row `row` and block column `column`; blocks at the end may be smaller.
BlockKind block_kind(const MaskGrid& grid, int block, int row, int column);

/// Blocks of each kind.
struct BlockCounts {
  int full = 0, partial = 0, empty = 0;  ///< of the grid's blocks
};
/// Counts blocks of side `block` over the whole grid.
BlockCounts count_blocks(const MaskGrid& grid, int block);

/// A line a row, '#' attends and '.' does not; lines between blocks unless `block` is 0:
///
///     #...|....
///     ##..|....
///     ----+----
///     ####|#...
std::string mask_text(const MaskGrid& grid, int block);

/// The elements, and unless `block` is 0 the blocks over them, coloured by kind. Self-contained.
std::string mask_svg(const MaskGrid& grid, int block, const std::string& title,
                     const std::string& subtitle);

/// The change t - s that a mod makes, row by row.
struct ScoreGrid {
  int rows = 0, columns = 0;    ///< queries and keys
  std::vector<double> changes;  ///< NaN where t is, -inf where it is masked

  /// The change at query `row` and key `column`.
  double at(int row, int column) const {
    return changes[static_cast<std::size_t>(row) * static_cast<std::size_t>(columns) +
                   static_cast<std::size_t>(column)];
  }
};

/// The least and greatest finite change; 0 and 0 if none is finite.
struct ScoreRange {
  double low = 0, high = 0;  ///< low <= high
};
/// Of all cells.
ScoreRange finite_range(const ScoreGrid& grid);

/// Characters from the least change to the greatest; 'x' is -inf, '^' is inf and '?' is NaN.
inline constexpr char score_levels[] = ".:-=+*#%@";
/// A line a row, a character a key: where its change lies between the least and the greatest.
std::string score_text(const ScoreGrid& grid);

/// A heat map: blue below zero, red above, with its scale. Self-contained.
std::string score_svg(const ScoreGrid& grid, const std::string& title, const std::string& subtitle);

/// A number for the eye: four significant digits.
std::string short_number(double value);

}  // namespace attn::fuzz
