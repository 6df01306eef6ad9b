#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fuzz/show_render.h"

namespace attn::fuzz {

BlockKind block_kind(const MaskGrid& grid, int block, int row, int column) {
  bool some = false, some_not = false;
  for (int i = row * block; i < std::min((row + 1) * block, grid.rows); ++i)
    for (int j = column * block; j < std::min((column + 1) * block, grid.columns); ++j)
      (grid.attends(i, j) ? some : some_not) = true;
  if (some && some_not) return BlockKind::partial;
  return some ? BlockKind::full : BlockKind::empty;
}

BlockCounts count_blocks(const MaskGrid& grid, int block) {
  BlockCounts counts;
  for (int row = 0; row * block < grid.rows; ++row)
    for (int column = 0; column * block < grid.columns; ++column) {
      const BlockKind kind = block_kind(grid, block, row, column);
      ++(kind == BlockKind::full      ? counts.full
         : kind == BlockKind::partial ? counts.partial
                                      : counts.empty);
    }
  return counts;
}

std::string mask_text(const MaskGrid& grid, int block) {
  std::string text;
  const auto border = [block](int at) { return block > 0 && at > 0 && at % block == 0; };
  for (int i = 0; i < grid.rows; ++i) {
    if (border(i)) {
      for (int j = 0; j < grid.columns; ++j) text += border(j) ? "+-" : "-";
      text += '\n';
    }
    for (int j = 0; j < grid.columns; ++j) {
      if (border(j)) text += '|';
      text += grid.attends(i, j) ? '#' : '.';
    }
    text += '\n';
  }
  return text;
}

ScoreRange finite_range(const ScoreGrid& grid) {
  ScoreRange range;
  bool first = true;
  for (const double x : grid.changes) {
    if (!std::isfinite(x)) continue;
    range.low = first ? x : std::min(range.low, x);
    range.high = first ? x : std::max(range.high, x);
    first = false;
  }
  return range;
}

std::string score_text(const ScoreGrid& grid) {
  const ScoreRange range = finite_range(grid);
  constexpr int levels = static_cast<int>(sizeof(score_levels)) - 1;
  const auto level = [&](double x) {
    if (std::isnan(x)) return '?';
    if (std::isinf(x)) return x < 0 ? 'x' : '^';
    if (range.high == range.low) return score_levels[0];
    const double share = (x - range.low) / (range.high - range.low);
    return score_levels[std::min(levels - 1, static_cast<int>(share * levels))];
  };
  std::string text;
  for (int i = 0; i < grid.rows; ++i, text += '\n')
    for (int j = 0; j < grid.columns; ++j) text += level(grid.at(i, j));
  return text;
}

std::string short_number(double value) { return fmt::format("{:.4g}", value); }

}  // namespace attn::fuzz
