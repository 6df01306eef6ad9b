#include "fuzz/report_html.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "fuzz/text.h"

namespace attn::fuzz {
namespace {

constexpr int most_cells = 96;  // along a side
constexpr int levels = 5;       // of what is within its bound
constexpr std::size_t most_bytes = 900'000;

constexpr const char* head = R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{0}</title>
<style>
:root {{ color-scheme: light dark; --ink: #1c2126; --paper: #fff; --quiet: #5a646e; --in: #2166ac;
  --out: #e0640a; --far: #a5123a; --none: #dfe3e7; }}
@media (prefers-color-scheme: dark) {{ :root {{ --ink: #e6e9ec; --paper: #14181c; --quiet: #9aa5b0;
  --in: #6cb2f7; --out: #ff9440; --far: #ff5c85; --none: #333b43; }} }}
body {{ margin: 0 auto; padding: 1em; max-width: 60em; box-sizing: border-box;
  font: 16px/1.45 sans-serif; color: var(--ink); background: var(--paper); overflow-wrap: anywhere; }}
h1 {{ font-size: 1.35em; }} h2 {{ font-size: 1.1em; margin-bottom: .3em; }}
pre {{ white-space: pre-wrap; margin: 0; font-size: .85em; }}
.maps {{ display: flex; flex-wrap: wrap; gap: 1.5em; }}
figure {{ margin: 0; max-width: 100%; }} figcaption {{ max-width: 30em; font-size: .85em; }}
p {{ color: var(--quiet); }}
svg {{ display: block; max-width: 100%; height: auto; margin: .4em 0; background: var(--paper); }}
svg * {{ vector-effect: non-scaling-stroke; }}
.in {{ fill: var(--in); }} .out {{ fill: var(--out); }} .far {{ fill: var(--far); }}
.none {{ fill: var(--none); }}
.frame, .tile {{ fill: none; stroke: var(--quiet); }} .tile {{ stroke-dasharray: 3 2; }}
.worst, .key {{ fill: none; stroke: var(--ink); stroke-width: 3; }} .key {{ stroke-width: 1.5; }}
.legend span {{ display: inline-block; margin-right: 1em; }}
.legend svg {{ display: inline-block; margin: 0 .3em 0 0; vertical-align: -2px; }}
</style></head><body>
<h1>{0}</h1>
)";

/// The colour class of one cell, 0 to 4 within the bound, then outside.
struct Shade {
  const char* kind;
  double opacity;
  const char* says;
};
constexpr std::array<Shade, levels + 3> shades{{{"in", 0.08, "to 0.2"},
                                                {"in", 0.27, "to 0.4"},
                                                {"in", 0.46, "to 0.6"},
                                                {"in", 0.65, "to 0.8"},
                                                {"in", 0.9, "to 1: within the bound"},
                                                {"out", 1, "to 10: outside"},
                                                {"far", 1, "more, infinite or NaN: outside"},
                                                {"none", 1, "does not attend"}}};

std::size_t shade_of(double cell) {
  if (cell == nothing_here) return levels + 2;
  if (!(cell <= 10)) return levels + 1;  // a NaN too
  if (cell > 1) return levels;
  return static_cast<std::size_t>(std::clamp(std::ceil(cell * levels) - 1, 0.0, levels - 1.0));
}

/// The plane with at most 96 rows and columns: each cell the worst of `by` x `across` elements.
struct Reduced {
  int by, across;
  HeatMap map;

  explicit Reduced(const HeatMap& full)
      : by((full.rows + most_cells - 1) / most_cells),
        across((full.columns + most_cells - 1) / most_cells) {
    map.rows = (full.rows + by - 1) / by, map.columns = (full.columns + across - 1) / across;
    map.cells.assign(static_cast<std::size_t>(map.rows) * map.columns, nothing_here);
    for (int i = 0; i < full.rows; ++i)
      for (int j = 0; j < full.columns; ++j) {
        double& cell = map.cells[static_cast<std::size_t>(i / by) * map.columns + j / across];
        cell = std::max(cell, badness(full.at(i, j)));
      }
  }
};

/// A path for each shade: cells of a row side by side are one rectangle.
std::string cells_svg(const HeatMap& map) {
  std::array<std::string, shades.size()> paths;
  for (int i = 0; i < map.rows; ++i)
    for (int j = 0, end = 0; j < map.columns; j = end) {
      const std::size_t shade = shade_of(map.at(i, j));
      for (end = j + 1; end < map.columns && shade_of(map.at(i, end)) == shade;) ++end;
      paths[shade] += fmt::format("M{} {}h{}v1h-{}z", j, i, end - j, end - j);
    }
  std::string text;
  for (std::size_t n = 0; n < shades.size(); ++n)
    if (!paths[n].empty())
      text += fmt::format("<path class=\"{}\" fill-opacity=\"{}\" d=\"{}\"/>\n", shades[n].kind,
                          shades[n].opacity, paths[n]);
  return text;
}

/// Where the lines between tiles are, in cells.
std::string tiles_svg(const HeatMap& full, const Reduced& reduced) {
  std::string lines;
  for (int i = full.tile_rows; i > 0 && i < full.rows; i += full.tile_rows)
    lines += fmt::format("M0 {:.4g}h{}", static_cast<double>(i) / reduced.by, reduced.map.columns);
  for (int j = full.tile_columns; j > 0 && j < full.columns; j += full.tile_columns)
    lines += fmt::format("M{:.4g} 0v{}", static_cast<double>(j) / reduced.across, reduced.map.rows);
  return lines.empty() ? "" : fmt::format("<path class=\"tile\" d=\"{}\"/>\n", lines);
}

std::string figure(const HeatMap& full) {
  const auto at = std::max_element(full.cells.begin(), full.cells.end(),
                                   [](double a, double b) { return badness(a) < badness(b); }) -
                  full.cells.begin();
  const int row = static_cast<int>(at / full.columns), column = static_cast<int>(at % full.columns);
  const auto outside =
      std::count_if(full.cells.begin(), full.cells.end(), [](double cell) { return !(cell <= 1); });
  const std::string worst =
      full.at(row, column) == nothing_here
          ? "no pair attends"
          : fmt::format("worst {:.3g} at {} {}, {} {}; {} of {} cells outside",
                        full.at(row, column), full.down, row, full.right, column, outside,
                        full.cells.size());
  const Reduced reduced(full);
  const auto& [by, across, map] = reduced;
  std::string text = fmt::format(
      "<figure class=\"heatmap\"><h2>{0}</h2>\n<svg role=\"img\" aria-label=\"{0}, error over "
      "bound, "
      "{1} rows of {2} by {3} columns of {4}: {5}\" viewBox=\"0 0 {6} {7}\" width=\"{8}\" "
      "height=\"{9}\" overflow=\"visible\" shape-rendering=\"crispEdges\">\n",
      escaped_markup(full.title), full.rows, full.down, full.columns, full.right, worst,
      map.columns, map.rows, map.columns * std::clamp(480 / std::max(map.rows, map.columns), 4, 16),
      map.rows * std::clamp(480 / std::max(map.rows, map.columns), 4, 16));
  const auto rect = [&text](const char* kind, int x, int y, int w, int h) {
    text += fmt::format("<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n", kind,
                        x, y, w, h);
  };
  text += cells_svg(map) + tiles_svg(full, reduced);
  rect("frame", 0, 0, map.columns, map.rows);
  if (full.marked_column >= 0) rect("key", full.marked_column / across, 0, 1, map.rows);
  if (full.at(row, column) != nothing_here) rect("worst", column / across, row / by, 1, 1);
  text += fmt::format("</svg>\n<figcaption>Down: {} 0 to {}. Right: {} 0 to {}. {} {}.", full.down,
                      full.rows - 1, full.right, full.columns - 1, escaped_markup(full.meaning),
                      "Thick outline: " + worst);
  if (by > 1 || across > 1)
    text += fmt::format(" Drawn: the largest of each {} x {} cells.", by, across);
  for (const auto& [tile, axis] :
       {std::pair{full.tile_rows, full.down}, std::pair{full.tile_columns, full.right}})
    if (tile > 0) text += fmt::format(" Dashed: tiles of {} {}.", tile, axis);
  return text + "</figcaption></figure>\n";
}

std::string legend() {
  std::string text = "<p class=\"legend\">Error over bound: ";
  for (const Shade& s : shades)
    text += fmt::format(
        "<span><svg width=\"14\" height=\"14\" aria-hidden=\"true\"><rect class=\"{}\" "
        "fill-opacity=\"{}\" width=\"14\" height=\"14\"/></svg>{}</span> ",
        s.kind, s.opacity, s.says);
  return text + "</p>\n";
}

}  // namespace

std::string to_html(const ReportPage& page) {
  std::string text = fmt::format(head, escaped_markup(page.title));
  for (const auto& [heading, body] : page.texts)
    text +=
        fmt::format("<h2>{}</h2>\n<pre>{}</pre>\n", escaped_markup(heading), escaped_markup(body));
  if (!page.maps.empty()) text += legend() + "<div class=\"maps\">\n";
  std::size_t drawn = 0;
  for (; drawn < page.maps.size(); ++drawn) {
    const std::string next = figure(page.maps[drawn]);
    if (text.size() + next.size() > most_bytes) break;
    text += next;
  }
  if (!page.maps.empty()) text += "</div>\n";
  if (drawn < page.maps.size())
    text += fmt::format("<p>{} more planes, none worse than these, are not drawn.</p>\n",
                        page.maps.size() - drawn);
  return text + "</body></html>\n";
}

}  // namespace attn::fuzz
