#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "fuzz/show_render.h"
#include "fuzz/text.h"

namespace attn::fuzz {
namespace {

constexpr double margin = 60, heading = 64, legend_height = 56, longest_side = 640;
constexpr double letter = 7.2;  // about the width of one, in pixels

/// A page with a plane of rows x columns cells under a title, and room for a legend.
class Page {
 public:
  Page(int rows, int columns, const std::string& title, const std::string& subtitle)
      : cell_(std::clamp(longest_side / std::max({rows, columns, 1}), 0.25, 20.0)),
        width_(cell_ * columns),
        height_(cell_ * rows) {
    // Wide enough for the text.
    const double text = letter * static_cast<double>(std::max(title.size(), subtitle.size()));
    const double wide = std::max({2 * margin + width_, 2 * margin + 420, margin + text});
    const double high = heading + 24 + height_ + legend_height;
    out_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
        "width=\"{0:.0f}\" "
        "height=\"{1:.0f}\" font-family=\"sans-serif\" font-size=\"12\" "
        "fill=\"#222\" shape-rendering=\"crispEdges\">\n"
        "<title>{2}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
        wide, high, escaped_markup(title));
    label(margin, 22, title, "font-size=\"16\" font-weight=\"bold\"");
    label(margin, 42, subtitle, "fill=\"#555\"");
    label(margin, top() - 6, "keys", "");
    label(margin + width_, top() - 6, std::to_string(columns), "text-anchor=\"end\"");
    label(margin - 6, top() + 10, "queries", "text-anchor=\"end\"");
    label(margin - 6, top() + height_, std::to_string(rows), "text-anchor=\"end\"");
  }

  double top() const { return heading + 16; }
  double bottom() const { return top() + height_; }

  void label(double x, double y, const std::string& text, const char* style) {
    out_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" {}>{}</text>\n", x, y, style,
                        escaped_markup(text));
  }
  /// Anywhere on the page.
  void box(double x, double y, double w, double h, const std::string& style) {
    out_ += fmt::format("<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" {}/>\n",
                        x, y, w, h, style);
  }
  /// Cells of the plane.
  void cells(int row, int column, int rows, int columns, const std::string& style) {
    box(margin + cell_ * column, top() + cell_ * row, cell_ * columns, cell_ * rows, style);
  }
  std::string finish(int rows, int columns) {
    cells(0, 0, rows, columns, "fill=\"none\" stroke=\"#222\"");
    return out_ + "</svg>\n";
  }

 private:
  double cell_, width_, height_;
  std::string out_;
};

/// Of attended and masked pairs in a block.
struct BlockColours {
  std::string_view attended, masked;
};
BlockColours colours_of(BlockKind kind) {
  if (kind == BlockKind::full) return {"#2a8a4a", "#2a8a4a"};
  if (kind == BlockKind::partial) return {"#d98200", "#fdeccb"};
  return {"#e3e6e9", "#e3e6e9"};
}

/// Blue, white, red for -1, 0, 1.
std::string heat(double share) {
  const double x = std::clamp(share, -1.0, 1.0), rest = 1 - std::abs(x);
  const double end[3] = {x < 0 ? 33.0 : 178.0, x < 0 ? 102.0 : 24.0, x < 0 ? 172.0 : 43.0};
  int rgb[3];
  for (int n = 0; n < 3; ++n)
    rgb[n] = static_cast<int>(std::lround(255 * rest + end[n] * (1 - rest)));
  return fmt::format("#{:02x}{:02x}{:02x}", rgb[0], rgb[1], rgb[2]);
}

/// The colour of one change; `largest` is the greatest magnitude.
std::string colour_of(double change, double largest) {
  if (std::isnan(change)) return "#c800c8";
  if (std::isinf(change)) return change < 0 ? "#333333" : "#ffd400";
  return heat(largest == 0 ? 0 : change / largest);
}

/// The attended pairs of a rectangle, those side by side as one.
void draw_runs(Page& page, const MaskGrid& grid, int row, int column, int rows, int columns,
               std::string_view colour) {
  for (int i = row; i < row + rows; ++i)
    for (int j = column; j < column + columns;) {
      int end = j;
      while (end < column + columns && grid.attends(i, end)) ++end;
      if (end > j) page.cells(i, j, 1, end - j, fmt::format("fill=\"{}\"", colour));
      j = std::max(end, j + 1);
    }
}

}  // namespace

std::string mask_svg(const MaskGrid& grid, int block, const std::string& title,
                     const std::string& subtitle) {
  Page page(grid.rows, grid.columns, title, subtitle);
  const double y = page.bottom() + 20;
  if (block == 0) {
    draw_runs(page, grid, 0, 0, grid.rows, grid.columns, "#3b6ea5");
    page.box(margin, y, 14, 14, "fill=\"#3b6ea5\"");
    page.label(margin + 20, y + 12, "attends", "");
    return page.finish(grid.rows, grid.columns);
  }
  for (int row = 0; row < grid.rows; row += block)
    for (int column = 0; column < grid.columns; column += block) {
      const int rows = std::min(block, grid.rows - row);
      const int columns = std::min(block, grid.columns - column);
      const BlockColours colours = colours_of(block_kind(grid, block, row / block, column / block));
      page.cells(row, column, rows, columns, fmt::format("fill=\"{}\"", colours.masked));
      if (colours.attended != colours.masked)
        draw_runs(page, grid, row, column, rows, columns, colours.attended);
    }
  const std::string outline = "fill=\"none\" stroke=\"#555\"";
  for (int row = 0; row < grid.rows; row += block)  // over the fills of the neighbours
    for (int column = 0; column < grid.columns; column += block)
      page.cells(row, column, std::min(block, grid.rows - row),
                 std::min(block, grid.columns - column), outline);
  const BlockCounts counts = count_blocks(grid, block);
  const std::pair<BlockKind, std::string> kinds[] = {
      {BlockKind::full, fmt::format("{} full", counts.full)},
      {BlockKind::partial, fmt::format("{} partial (dark attends)", counts.partial)},
      {BlockKind::empty, fmt::format("{} empty blocks of {}", counts.empty, block)}};
  double x = margin;
  for (const auto& [kind, text] : kinds) {
    const BlockColours colours = colours_of(kind);
    page.box(x, y, 14, 14, fmt::format("fill=\"{}\"", colours.masked));
    if (colours.attended != colours.masked)
      page.box(x, y, 7, 14, fmt::format("fill=\"{}\"", colours.attended));
    page.box(x, y, 14, 14, outline);
    page.label(x + 20, y + 12, text, "");
    x += 44 + letter * static_cast<double>(text.size());
  }
  return page.finish(grid.rows, grid.columns);
}

std::string score_svg(const ScoreGrid& grid, const std::string& title,
                      const std::string& subtitle) {
  Page page(grid.rows, grid.columns, title, subtitle);
  const ScoreRange range = finite_range(grid);
  const double largest = std::max(std::abs(range.low), std::abs(range.high));
  for (int i = 0; i < grid.rows; ++i)
    for (int j = 0; j < grid.columns;) {
      const std::string colour = colour_of(grid.at(i, j), largest);
      int end = j + 1;
      while (end < grid.columns && colour_of(grid.at(i, end), largest) == colour) ++end;
      page.cells(i, j, 1, end - j, fmt::format("fill=\"{}\"", colour));
      j = end;
    }
  const double y = page.bottom() + 16;
  constexpr int steps = 40;
  for (int n = 0; n < steps; ++n)
    page.box(margin + 5 * n, y, 5, 12, fmt::format("fill=\"{}\"", heat(2.0 * n / (steps - 1) - 1)));
  page.label(margin, y + 26, short_number(-largest), "");
  page.label(margin + 100, y + 26, "0", "text-anchor=\"middle\"");
  page.label(margin + 200, y + 26, short_number(largest), "text-anchor=\"end\"");
  page.box(margin + 230, y, 12, 12, "fill=\"#333333\"");
  page.label(margin + 248, y + 11, "-inf", "");
  page.box(margin + 290, y, 12, 12, "fill=\"#ffd400\"");
  page.label(margin + 308, y + 11, "inf", "");
  page.box(margin + 344, y, 12, 12, "fill=\"#c800c8\"");
  page.label(margin + 362, y + 11, "NaN", "");
  return page.finish(grid.rows, grid.columns);
}

}  // namespace attn::fuzz
