// The page of a run: what it shows, what it says of it, and that nothing in it is taken for markup.
#include "fuzz/report_html.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace attn::fuzz {
namespace {

bool has(const std::string& page, const std::string& text) {
  return page.find(text) != std::string::npos;
}

HeatMap map_of(int rows, int columns, double cell) {
  HeatMap map;
  map.title = "O[b0 h0]", map.meaning = "A cell is an element.";
  map.down = "q", map.right = "d";
  map.rows = rows, map.columns = columns;
  map.cells.assign(static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns), cell);
  return map;
}
std::string html_of(const HeatMap& map) { return to_html({"title", {}, {map}}); }

TEST(ReportHtml, EscapesAllText) {
  HeatMap map = map_of(1, 1, 0);
  map.title = "d <a>", map.meaning = "1 < 2";
  const std::string page = to_html({"<b>&", {{"<i>", "'\"</pre><script>"}}, {map}});
  for (const char* text : {"<title>&lt;b&gt;&amp;</title>", "&lt;i&gt;",
                           "&#39;&quot;&lt;/pre&gt;&lt;script&gt;", "d &lt;a&gt;", "1 &lt; 2"})
    EXPECT_TRUE(has(page, text)) << text;
  for (const char* text : {"<script", "http", "<b>", "<i>", "<a>"})
    EXPECT_FALSE(has(page, text)) << text;
}

TEST(ReportHtml, ShadesCellsAndOutlinesTheWorst) {
  HeatMap map = map_of(2, 3, 0.1);
  map.cells = {0.1, 0.5, nothing_here, 1, 1.5, 11};
  map.tile_rows = 1, map.tile_columns = 2, map.marked_column = 1;
  const std::string page = html_of(map);
  for (const char* text :
       {R"(class="in" fill-opacity="0.08" d="M0 0h1v1h-1z")",
        R"(class="in" fill-opacity="0.46" d="M1 0h1v1h-1z")",
        R"(class="none" fill-opacity="1" d="M2 0h1v1h-1z")",
        R"(class="in" fill-opacity="0.9" d="M0 1h1v1h-1z")",
        R"(class="out" fill-opacity="1" d="M1 1h1v1h-1z")",
        R"(class="far" fill-opacity="1" d="M2 1h1v1h-1z")", R"(class="tile" d="M0 1h3M2 0v2")",
        R"(class="key" x="1" y="0" width="1" height="2")",
        R"(class="worst" x="2" y="1" width="1" height="1")", R"(viewBox="0 0 3 2")",
        "aria-label=\"O[b0 h0], error over bound, 2 rows of q by 3 columns of d: worst 11 at q 1, "
        "d 2; 2 of 6 cells outside\""})
    EXPECT_TRUE(has(page, text)) << text;
}

TEST(ReportHtml, SaysWhatAPlaneIs) {
  HeatMap map = map_of(4, 6, 0.25);
  const std::string plain = html_of(map);
  EXPECT_TRUE(
      has(plain,
          "<figcaption>Down: q 0 to 3. Right: d 0 to 5. A cell is an element. Thick outline: "
          "worst 0.25 at q 0, d 0; 0 of 24 cells outside.</figcaption>"));
  EXPECT_TRUE(has(plain, R"(viewBox="0 0 6 4" width="96" height="64")"));
  EXPECT_TRUE(has(plain, R"(class="frame" x="0" y="0" width="6" height="4")"));
  for (const char* text : {"Dashed", "Drawn", R"(class="key")", R"(class="tile")"})
    EXPECT_FALSE(has(plain, text)) << text;
  map.tile_rows = 2, map.tile_columns = 3;
  EXPECT_TRUE(has(html_of(map), " Dashed: tiles of 2 q. Dashed: tiles of 3 d.</figcaption>"));
  const HeatMap none = map_of(2, 2, nothing_here);
  EXPECT_TRUE(has(html_of(none), "Thick outline: no pair attends."));
  EXPECT_FALSE(has(html_of(none), R"(class="worst")"));
}

TEST(ReportHtml, ExplainsItsColoursWhereThereAreAny) {
  const std::string page = html_of(map_of(1, 1, 0));
  std::size_t at = 0;
  for (const char* shade :
       {"to 0.2<", "to 0.4<", "to 0.6<", "to 0.8<", "to 1: within the bound<", "to 10: outside<",
        "more, infinite or NaN: outside<", "does not attend<"}) {
    at = page.find(shade, at);
    EXPECT_NE(at, std::string::npos) << shade;
  }
  EXPECT_FALSE(has(to_html({"title", {{"heading", "text"}}, {}}), "Error over bound"));
  EXPECT_TRUE(has(to_html({"title", {{"heading", "text"}}, {}}),
                  "<h1>title</h1>\n<h2>heading</h2>\n<pre>text</pre>\n</body></html>\n"));
}

TEST(ReportHtml, HasAShadeForEachFifthOfTheBound) {
  HeatMap map = map_of(1, 9, 0);
  map.cells = {0, 0.2, 0.21, 0.4, 0.6, 0.8, 1, 1.001, 10};
  const std::string page = html_of(map);
  for (const char* text :
       {R"(class="in" fill-opacity="0.08" d="M0 0h2v1h-2z")",
        R"(class="in" fill-opacity="0.27" d="M2 0h2v1h-2z")",
        R"(class="in" fill-opacity="0.46" d="M4 0h1v1h-1z")",
        R"(class="in" fill-opacity="0.65" d="M5 0h1v1h-1z")",
        R"(class="in" fill-opacity="0.9" d="M6 0h1v1h-1z")",
        R"(class="out" fill-opacity="1" d="M7 0h2v1h-2z")", "; 2 of 9 cells outside"})
    EXPECT_TRUE(has(page, text)) << text;
}

TEST(ReportHtml, ShowsANanAsOutside) {
  HeatMap map = map_of(1, 3, 0.5);
  map.cells[1] = std::numeric_limits<double>::quiet_NaN();
  map.cells[2] = 1000;
  const std::string page = html_of(map);
  EXPECT_TRUE(has(page, R"(class="far" fill-opacity="1" d="M1 0h2v1h-2z")"));
  EXPECT_TRUE(has(page, R"(class="worst" x="1" y="0")"));
  EXPECT_TRUE(has(page, "worst nan at q 0, d 1; 2 of 3 cells outside"));
}

TEST(ReportHtml, TakesANanForTheWorstCell) {
  HeatMap map = map_of(1, 3, 0.5);
  EXPECT_EQ(worst_of(map), 0.5);
  map.cells[1] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(std::isinf(worst_of(map)));
  EXPECT_EQ(worst_of(map_of(0, 0, 0)), nothing_here);
}

TEST(ReportHtml, ReducesLargePlanesByMaximum) {
  HeatMap map = map_of(200, 97, 0.1);
  map.cells[97 * 198 + 4] = 7;
  map.tile_rows = 96, map.marked_column = 96;
  const std::string page = html_of(map);
  EXPECT_TRUE(has(page, R"(viewBox="0 0 49 67" width="343" height="469")"));  // 3 x 2 a cell
  EXPECT_TRUE(has(page, R"(class="out" fill-opacity="1" d="M2 66h1v1h-1z")"));
  EXPECT_TRUE(has(page, R"(class="worst" x="2" y="66")"));
  EXPECT_TRUE(has(page, R"(class="key" x="48" y="0" width="1" height="67")"));
  EXPECT_TRUE(has(page, "M0 32h49M0 64h49"));
  EXPECT_TRUE(has(page, "the largest of each 3 x 2 cells"));
  map.cells[97 * 198 + 4] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(has(html_of(map), R"(class="far" fill-opacity="1" d="M2 66h1v1h-1z")"));
}

TEST(ReportHtml, StaysBelowOneMegabyteAndSaysWhatIsNotDrawn) {
  HeatMap checkered = map_of(96, 96, 0.1);
  for (std::size_t n = 0; n < checkered.cells.size(); ++n)
    if ((n + n / 96) % 2) checkered.cells[n] = 0.9;
  const std::string page = to_html({"title", {}, std::vector<HeatMap>(40, checkered)});
  EXPECT_LT(page.size(), 1'000'000u);
  std::size_t drawn = 0;
  for (std::size_t at = 0; (at = page.find("<figure", at)) != std::string::npos; ++at) ++drawn;
  ASSERT_GT(drawn, 3u);
  EXPECT_TRUE(has(page, "<p>" + std::to_string(40 - drawn) + " more planes"));
}

ReportPage page_of(const std::string& line, PlantedFault planted = PlantedFault::none) {
  RunOptions options;
  options.planted = planted;
  const Case c = parse_case(line);
  return report_page(c, options, run_details(c, options), "the original");
}
const HeatMap& map_named(const ReportPage& page, const std::string& title) {
  for (const HeatMap& map : page.maps)
    if (map.title == title) return map;
  throw std::out_of_range(title);
}

TEST(ReportPage, OfAFailureBeginsWithTheWorstPlane) {
  const std::string line = "v1 B1 Hq4 Hkv2 Sq1 Skv33 D8 Dv8 bf16; mask: kv <= 20";
  const ReportPage page = page_of(line, PlantedFault::M26);  // heads 1 and 2 swap their keys
  EXPECT_EQ(page.title, "discrepancy: flash_forward (warp_planted)");
  EXPECT_EQ(page.maps.size(), 12u);  // O, pairs, LSE of four heads
  double worst = 0;
  for (const double cell : page.maps[0].cells) worst = std::max(worst, cell);
  EXPECT_GT(worst, 1);
  for (const int h : {0, 3})
    for (const double cell : map_named(page, "O[b0 h" + std::to_string(h) + "]").cells)
      EXPECT_LE(cell, 1);
  EXPECT_TRUE(has(page.texts[0].second, "O[b0 h"));
  EXPECT_TRUE(has(page.texts[2].second, "--planted M26"));
  EXPECT_EQ(page.texts[3].second, "the original");
}

TEST(ReportPage, ColoursThePairsThatAttendByTheirRow) {
  const ReportPage page = page_of("v1 B1 Hq1 Hkv1 Sq3 Skv40 D8 Dv4 bf16; mask: kv <= q");
  const HeatMap &o = map_named(page, "O[b0 h0]"), &pairs = map_named(page, "pairs[b0 h0]");
  for (int q = 0; q < 3; ++q) {
    double row = 0;
    for (int d = 0; d < 4; ++d) row = std::max(row, o.at(q, d));
    for (int kv = 0; kv < 40; ++kv)
      EXPECT_EQ(pairs.at(q, kv), kv <= q ? row : nothing_here) << q << " " << kv;
  }
  EXPECT_GT(o.tile_rows, 0);
  EXPECT_EQ(pairs.tile_rows, o.tile_rows);
  EXPECT_GT(pairs.tile_columns, 0);
}

/// Heads of a group share a tile there, so that its rows are no queries.
TEST(ReportPage, DrawsNoTilesAlongTheQueriesOfACache) {
  const ReportPage page = page_of("v1 B1 Hq1 Hkv1 Sq2 Skv40 D8 Dv4 bf16; kvlens: 20; impl: decode");
  for (const char* title : {"O[b0 h0]", "pairs[b0 h0]"})
    EXPECT_EQ(map_named(page, title).tile_rows, 0) << title;
  EXPECT_GT(map_named(page, "pairs[b0 h0]").tile_columns, 0);
}

TEST(ReportPage, SaysHowToRunItAgain) {
  const std::string line = "v1 B1 Hq1 Hkv1 Sq1 Skv3 D8 Dv4 bf16";
  const Case c = parse_case(line);
  RunOptions options;
  const auto again = [&] { return report_page(c, options, run_details(c, options)).texts.at(2); };
  const std::string plain = "attnproof replay '" + to_text(c) + "'";
  EXPECT_EQ(again(), std::pair(std::string("Run it again"), plain));
  options.engine = Engine::thread;
  EXPECT_EQ(again().second, plain + " --engine thread");
  EXPECT_EQ(report_page(c, {}, run_details(c)).texts.size(), 3u) << "it was shrunk from nothing";
}

TEST(ReportPage, HasNoPlaneOfWhatIsEmpty) {
  EXPECT_TRUE(page_of("v1 B1 Hq1 Hkv1 Sq0 Skv3 D8 Dv4 bf16").maps.empty());
  const ReportPage keys = page_of("v1 B1 Hq1 Hkv1 Sq2 Skv0 D8 Dv4 bf16");
  EXPECT_EQ(keys.maps.size(), 2u);  // O and LSE, and no pairs
}

TEST(ReportPage, SortsPlanesByTheirWorstCell) {
  const Case c = parse_case("v1 B1 Hq2 Hkv1 Sq2 Skv3 D8 Dv4 bf16");
  Details run = run_details(c);
  run.got[0](0, 1, 1, 2) = std::numeric_limits<double>::quiet_NaN();
  run.got[1](0, 0, 1, 0) = 100;
  const std::vector<HeatMap> maps = planes_of(c, run, {5, 7});
  ASSERT_EQ(maps.size(), 6u);
  EXPECT_EQ(maps[0].title, "O[b0 h1]");
  EXPECT_EQ(maps[1].title, "pairs[b0 h1]");
  EXPECT_EQ(maps[2].title, "LSE[b0 h0]");
  EXPECT_EQ(maps[2].down, "q");
  EXPECT_EQ(maps[2].right, "index");
  EXPECT_TRUE(std::isinf(maps[0].at(1, 2))) << "a NaN is as wrong as can be";
  EXPECT_EQ(maps[0].rows, 2);
  EXPECT_EQ(maps[0].columns, 4);
  EXPECT_EQ(maps[0].tile_rows, 5);
  EXPECT_EQ(maps[0].tile_columns, 0);
  EXPECT_EQ(maps[1].tile_rows, 5);
  EXPECT_EQ(maps[1].tile_columns, 7);
  for (int kv = 0; kv < 3; ++kv) EXPECT_TRUE(std::isinf(maps[1].at(1, kv)));
  EXPECT_TRUE(has(maps[1].meaning, "row q of O,")) << maps[1].meaning;
  for (const HeatMap& map : maps) EXPECT_FALSE(has(map.meaning, "Outlined")) << map.title;
  for (std::size_t n = 1; n < maps.size(); ++n) EXPECT_LE(worst_of(maps[n]), worst_of(maps[n - 1]));
}

TEST(ReportPage, CountsQueriesOfACacheFromItsEnd) {
  const ReportPage page =
      page_of("v1 B1 Hq1 Hkv1 Sq2 Skv40 D8 Dv4 bf16; mask: kv <= q; kvlens: 20; impl: decode");
  const HeatMap& pairs = map_named(page, "pairs[b0 h0]");
  for (int q = 0; q < 2; ++q)
    for (int kv = 0; kv < 40; ++kv)
      EXPECT_EQ(pairs.at(q, kv) != nothing_here, kv <= 18 + q) << q << " " << kv;
}

TEST(ReportPage, OfABackwardPassHasEveryGradient) {
  const ReportPage page = page_of(
      "v1 B1 Hq2 Hkv1 Sq3 Skv5 D8 Dv4 bf16; mod: score + slope[h] * kv; "
      "table: slope[Hq]=uniform(0,1); impl: flash_backward");
  EXPECT_EQ(map_named(page, "dQ[b0 h1]").right, "d");
  EXPECT_EQ(map_named(page, "dK[b0 h0]").down, "kv");
  EXPECT_GT(map_named(page, "dK[b0 h0]").tile_rows, 0);
  EXPECT_EQ(map_named(page, "dV[b0 h0]").rows, 5);
  EXPECT_EQ(map_named(page, "d slope").columns, 2);
  EXPECT_EQ(map_named(page, "d slope").right, "index");
}

TEST(ReportPage, OfAStoppedKernelHasNoPlanes) {
  const ReportPage page =
      page_of("v1 B1 Hq1 Hkv1 Sq9 Skv33 D8 Dv8 bf16", PlantedFault::M20);  // reads past the end
  EXPECT_TRUE(page.maps.empty());
  EXPECT_TRUE(has(to_html(page), "out of bounds"));
}

TEST(ReportPage, MarksTheSuspectedKeyInItsHead) {
  const ReportPage page = page_of("v1 B2 Hq2 Hkv2 Sq1 Skv33 D8 Dv8 bf16", PlantedFault::M21);
  int marked = 0;
  for (const HeatMap& map : page.maps)
    if (map.marked_column >= 0) {
      ++marked;
      EXPECT_EQ(map.marked_column, 32) << page.texts[0].second;
      ASSERT_TRUE(map.title.starts_with("pairs[")) << map.title;
      const std::string head = map.title.substr(5, map.title.size() - 6);  // "[b1 h0"
      EXPECT_TRUE(has(page.texts[0].second, "O" + head + " ")) << page.texts[0].second;
      EXPECT_TRUE(has(map.meaning, "Outlined: key 32"));
    }
  EXPECT_EQ(marked, 1);
}

}  // namespace
}  // namespace attn::fuzz
