#include "fuzz/report_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "fuzz/case_sequences.h"
#include "fuzz/tool.h"

namespace attn::fuzz {
namespace {

/// How pages name an axis of an output: "q", "kv", "d"; one that has none: "index".
std::string axis_name(const char* letter) {
  if (!letter || !*letter) return "index";
  return *letter == 'k' ? "kv" : letter;
}

/// "[b0 h1]", of an output that has these axes.
std::string plane_name(const ExpectedOutput& output, int b, int h) {
  std::string index;
  for (const auto& [letter, i] : {std::pair{output.axes[0], b}, {output.axes[1], h}})
    if (letter) index += fmt::format("{}{}{}", index.empty() ? "" : " ", letter, i);
  return index.empty() ? output.name : fmt::format("{}[{}]", output.name, index);
}

/// The last two axes of one output, at one batch entry and head.
HeatMap plane(const ExpectedOutput& output, const Tensor<double, 4>& got, TileSize tile, int b,
              int h) {
  const auto& extents = got.extents();
  HeatMap map;
  map.title = plane_name(output, b, h);
  map.meaning = "A cell is the error of one element over its bound.";
  map.down = axis_name(output.axes[2]), map.right = axis_name(output.axes[3]);
  map.rows = static_cast<int>(extents[2]), map.columns = static_cast<int>(extents[3]);
  for (int row = 0; row < map.rows; ++row)
    for (int column = 0; column < map.columns; ++column)
      map.cells.push_back(error_over_bound(output, got(b, h, row, column), {b, h, row, column}));
  if (map.down == "q") map.tile_rows = tile.q;
  if (map.down == "kv") map.tile_rows = tile.kv;
  return map;
}

/// The pairs of one head, coloured by the rows of `by`, a plane of output `name` whose rows are its
/// queries.
HeatMap pair_plane(const Case& c, const Details& run, const HeatMap& by, const std::string& name,
                   TileSize tile, int b, int h) {
  HeatMap map;
  map.title = fmt::format("pairs[b{} h{}]", b, h);
  map.meaning = fmt::format(
      "A cell is a query and a key that attend by the mask. Its colour is the largest error over "
      "bound in row q of {}, the same for all keys of the row: it shows which keys that row saw, "
      "not "
      "which of them is wrong.",
      name);
  map.down = "q", map.right = "kv";
  map.rows = c.sq, map.columns = c.skv;
  for (int q = 0; q < c.sq; ++q) {
    double row = 0;
    for (int d = 0; d < by.columns; ++d) row = std::max(row, badness(by.at(q, d)));
    for (int kv = 0; kv < c.skv; ++kv)
      map.cells.push_back(run.attends(b, h, q, kv) ? row : nothing_here);
  }
  map.tile_rows = by.tile_rows, map.tile_columns = tile.kv;
  const Discrepancy& found = run.verdict.discrepancy;
  if (found.suspect_key >= 0 && found.at[0] == b && found.at[1] == h) {
    map.marked_column = static_cast<int>(found.suspect_key);
    map.meaning += fmt::format(" Outlined: key {}, which the report suspects.", found.suspect_key);
  }
  return map;
}

}  // namespace

double worst_of(const HeatMap& map) {
  double worst = nothing_here;
  for (const double cell : map.cells) worst = std::max(worst, badness(cell));
  return worst;
}

std::vector<HeatMap> planes_of(const Case& c, const Details& run, TileSize tile) {
  std::vector<HeatMap> maps;
  bool pairs_wanted = !run.attends.values().empty();
  for (std::size_t i = 0; i < run.got.size(); ++i) {
    const ExpectedOutput& output = run.expected.outputs[i];
    const bool with_pairs = pairs_wanted && axis_name(output.axes[2]) == "q";
    pairs_wanted &= !with_pairs;
    const auto& extents = run.got[i].extents();
    for (int b = 0; b < extents[0]; ++b)
      for (int h = 0; h < extents[1]; ++h) {
        maps.push_back(plane(output, run.got[i], tile, b, h));
        if (with_pairs) maps.push_back(pair_plane(c, run, maps.back(), output.name, tile, b, h));
      }
  }
  std::erase_if(maps, [](const HeatMap& map) { return map.cells.empty(); });
  std::stable_sort(maps.begin(), maps.end(),
                   [](const HeatMap& a, const HeatMap& b) { return worst_of(a) > worst_of(b); });
  return maps;
}

ReportPage report_page(const Case& c, const RunOptions& options, const Details& run,
                       const std::string& original) {
  const Verdict& v = run.verdict;
  ReportPage page;
  page.title = fmt::format("{}: {} ({})", name_of(v.outcome), c.implementation, v.target);
  std::string again = fmt::format("{} replay '{}'", tool_name(), to_text(c));
  for (const PlantedFaultInfo& fault : planted_faults)
    if (fault.fault == options.planted) again += fmt::format(" --planted {}", fault.name);
  if (options.engine != Engine::warp) again += fmt::format(" --engine {}", name_of(options.engine));
  page.texts = {{"Report", report(c, v)}, {"Case", to_text(c)}, {"Run it again", again}};
  if (!original.empty()) page.texts.push_back({"Shrunk from", original});
  TileSize tile = tile_of(c);
  if (has_cache(implementation_named(c.implementation))) tile.q = 0;  // rows of a group of heads
  page.maps = planes_of(c, run, tile);
  return page;
}

}  // namespace attn::fuzz
