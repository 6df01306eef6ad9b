#pragma once

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "fuzz/run.h"

/// What a page about one run holds: the report, and where the errors lie.
namespace attn::fuzz {

/// What a cell of a plane holds where there is nothing to judge: a pair that does not attend.
inline constexpr double nothing_here = -1;

/// One plane of cells, each an error over its bound: up to 1 right, above or NaN outside.
struct HeatMap {
  std::string title;                    ///< "O[b0 h1]"
  std::string meaning;                  ///< a sentence: what one cell is
  std::string down, right;              ///< what the rows and the columns are: "q", "d"
  int rows = 0, columns = 0;            ///< cells down and right
  std::vector<double> cells;            ///< row by row
  int tile_rows = 0, tile_columns = 0;  ///< tile borders; 0: none
  int marked_column = -1;               ///< outlined: a suspect key

  /// The cell of one row and column.
  double at(int row, int column) const {
    return cells[static_cast<std::size_t>(row) * static_cast<std::size_t>(columns) +
                 static_cast<std::size_t>(column)];
  }
};

/// A cell as a number to compare: a NaN is the worst of all.
inline double badness(double cell) {
  return std::isnan(cell) ? std::numeric_limits<double>::infinity() : cell;
}

/// The largest of its cells, NaN as infinity; `nothing_here` if it has none.
double worst_of(const HeatMap& map);

/// The page, independent of how it is drawn.
struct ReportPage {
  std::string title;                                       ///< in a few words: what failed
  std::vector<std::pair<std::string, std::string>> texts;  ///< heading and text, in order
  std::vector<HeatMap> maps;                               ///< the worst first
};

/// The planes of every output by batch and head, worst first, and beside the first output that has
/// a row a query the pairs of each head, where `run.attends` tells them. `tile`: whose borders are
/// drawn; 0: none.
std::vector<HeatMap> planes_of(const Case& c, const Details& run, TileSize tile);
/// The page of a case that ran with `options`, with its planes. `original`: the line that it was
/// shrunk from, if it was.
ReportPage report_page(const Case& c, const RunOptions& options, const Details& run,
                       const std::string& original = {});

}  // namespace attn::fuzz
