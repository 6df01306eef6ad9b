#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "fuzz/commands.h"
#include "fuzz/show_render.h"

namespace attn::fuzz {
namespace {

MaskGrid causal_grid(int rows, int columns) {
  MaskGrid grid{rows, columns, {}};
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j) grid.pairs.push_back(j <= i);
  return grid;
}

std::string slurp(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// A file that goes away with the test.
struct Scratch {
  std::string path;
  explicit Scratch(const char* name)
      : path((std::filesystem::temp_directory_path() /
              (std::string("attnproof_show_test_") + std::to_string(::getpid()) + name))
                 .string()) {}
  ~Scratch() { std::remove(path.c_str()); }
};

/// What is wrong with the nesting of elements and quotes, or "".
std::string xml_fault(const std::string& text) {
  std::vector<std::string> open;
  for (std::size_t at = text.find('<'); at != std::string::npos; at = text.find('<', at)) {
    const std::size_t end = text.find('>', at);
    if (end == std::string::npos) return "a tag without end";
    const std::string tag = text.substr(at + 1, end - at - 1);
    if (tag.find('<') != std::string::npos) return "'<' in <" + tag;
    if (std::count(tag.begin(), tag.end(), '"') % 2 != 0) return "an open quote in <" + tag;
    const std::string name =
        tag.substr(tag[0] == '/', tag.find_first_of(" />", 1) - (tag[0] == '/'));
    if (tag[0] == '/') {
      if (open.empty() || open.back() != name) return "</" + name + "> closes nothing";
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(name);
    }
    at = end;
  }
  return open.empty() ? "" : "<" + open.back() + "> stays open";
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

TEST(Show, mask_as_text) {
  EXPECT_EQ(mask_text(causal_grid(8, 8), 0),
            "#.......\n"
            "##......\n"
            "###.....\n"
            "####....\n"
            "#####...\n"
            "######..\n"
            "#######.\n"
            "########\n");
}

TEST(Show, mask_as_text_with_blocks) {
  EXPECT_EQ(mask_text(causal_grid(8, 8), 4),
            "#...|....\n"
            "##..|....\n"
            "###.|....\n"
            "####|....\n"
            "----+----\n"
            "####|#...\n"
            "####|##..\n"
            "####|###.\n"
            "####|####\n");
  EXPECT_EQ(mask_text(causal_grid(3, 5), 2),
            "#.|..|.\n"
            "##|..|.\n"
            "--+--+-\n"
            "##|#.|.\n");
}

TEST(Show, kinds_of_blocks) {
  const MaskGrid grid = causal_grid(9, 10);  // the last row of blocks has one row, wholly seen
  EXPECT_EQ(block_kind(grid, 4, 1, 0), BlockKind::full);
  EXPECT_EQ(block_kind(grid, 4, 1, 1), BlockKind::partial);
  EXPECT_EQ(block_kind(grid, 4, 0, 1), BlockKind::empty);
  EXPECT_EQ(block_kind(grid, 4, 2, 1), BlockKind::full);
  const BlockCounts counts = count_blocks(grid, 4);
  EXPECT_EQ(counts.full, 3);
  EXPECT_EQ(counts.partial, 3);
  EXPECT_EQ(counts.empty, 3);
}

TEST(Show, scores_as_text) {
  ScoreGrid grid{2, 9, {}};
  for (int n = 0; n < 9; ++n) grid.changes.push_back(n - 4.0);
  const double inf = std::numeric_limits<double>::infinity();
  grid.changes.insert(grid.changes.end(), {-inf, inf, std::nan(""), -4, 4, 0, 0, 0, 0});
  EXPECT_EQ(score_text(grid), ".:-=+*#%@\nx^?.@++++\n");
  EXPECT_EQ(finite_range(grid).low, -4);
  EXPECT_EQ(finite_range(grid).high, 4);
  EXPECT_EQ(score_text({1, 2, {7, 7}}), "..\n");
  EXPECT_EQ(score_text({1, 2, {-inf, -inf}}), "xx\n");
}

TEST(Show, mask_as_svg) {
  const std::string svg = mask_svg(causal_grid(8, 8), 4, "a < b & \"c\"", "kv <= q");
  EXPECT_EQ(xml_fault(svg), "");
  EXPECT_EQ(count_of(svg, "#2a8a4a"), 1u + 1);      // one full block, and the legend
  EXPECT_EQ(count_of(svg, "#fdeccb"), 2u + 1);      // two partial ones,
  EXPECT_EQ(count_of(svg, "#d98200"), 2u * 4 + 1);  // each with a run a row
  EXPECT_EQ(count_of(svg, "#e3e6e9"), 1u + 1);      // one empty
  EXPECT_EQ(count_of(mask_svg(causal_grid(8, 8), 0, "", ""), "#3b6ea5"), 8u + 1);
  EXPECT_NE(svg.find("a &lt; b &amp; &quot;c&quot;"), std::string::npos);
  EXPECT_EQ(xml_fault(mask_svg({0, 0, {}}, 0, "nothing", "")), "");
}

TEST(Show, scores_as_svg) {
  const double inf = std::numeric_limits<double>::infinity();
  const std::string svg = score_svg({1, 5, {-2, 0, 2, -inf, std::nan("")}}, "mod", "score");
  EXPECT_EQ(xml_fault(svg), "");
  EXPECT_NE(svg.find("#2166ac"), std::string::npos);
  EXPECT_NE(svg.find("#b2182b"), std::string::npos);
  EXPECT_EQ(count_of(svg, "#333333"), 2u);
  EXPECT_EQ(count_of(svg, "#c800c8"), 2u);
}

ShowArguments mask(const std::string& name) {
  ShowArguments a;
  a.what = ShowArguments::What::mask;
  a.name = name;
  return a;
}
ShowArguments mod(const std::string& name) {
  ShowArguments a = mask(name);
  a.what = ShowArguments::What::mod;
  return a;
}
std::string printed(const ShowArguments& a) {
  testing::internal::CaptureStdout();
  EXPECT_EQ(show_command(a), 0);
  std::fflush(stdout);
  return testing::internal::GetCapturedStdout();
}
std::string refusal(const ShowArguments& a) {
  testing::internal::CaptureStdout();
  std::string message;
  try {
    show_command(a);
  } catch (const std::invalid_argument& error) {
    message = error.what();
  }
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  return message;
}

TEST(ShowCommand, a_mask_by_name) {
  ShowArguments a = mask("sliding_window");
  a.size = "4x4";
  a.parameters = {"width=1"};
  a.block = 2;
  EXPECT_EQ(printed(a),
            "sliding_window: 0 <= q - kv <= W\n"
            "expression  0 <= q - kv && q - kv <= 1\n"
            "#.|..\n"
            "##|..\n"
            "--+--\n"
            ".#|#.\n"
            "..|##\n"
            "7 of 16 pairs attend\n"
            "blocks of 2: 0 full, 3 partial, 1 empty\n");
}

TEST(ShowCommand, a_mask_by_expression) {
  ShowArguments a = mask("kv<=q && doc[kv] == 0");
  a.size = "2x3";
  a.tables = {"doc[Skv]=ints(0,0)"};
  EXPECT_EQ(printed(a),
            "mask: kv <= q && doc[kv] == 0\n"
            "tables      doc[3] index\n"
            "#..\n"
            "##.\n"
            "3 of 6 pairs attend\n");
}

TEST(ShowCommand, a_mod_by_name_and_by_expression) {
  ShowArguments a = mod("rel_bias");
  a.size = "3x3";
  EXPECT_EQ(printed(a),
            "rel_bias: s + (q - kv)\n"
            "expression  score + (q - kv)\n"
            "+-.\n"
            "#+-\n"
            "@#+\n"
            "change t - s at s = 1: from -2 (.) to 2 (@); x -inf, ^ inf, ? NaN\n");
  ShowArguments e = mod("score + (q - kv)");
  e.size = "3x3";
  EXPECT_NE(printed(e).find("+-.\n#+-\n@#+\n"), std::string::npos);
}

TEST(ShowCommand, batch_entry_and_head) {
  ShowArguments a = mask("choose_by_head");
  a.size = "4x4";
  a.parameters = {"width=0"};
  EXPECT_NE(printed(a).find("#...\n##..\n###.\n####\n"), std::string::npos);
  a.head = 1;
  EXPECT_NE(printed(a).find("#...\n.#..\n..#.\n...#\n"), std::string::npos);
}

TEST(ShowCommand, files) {
  const Scratch svg("mask.svg"), json("list.json");
  ShowArguments a = mask("causal");
  a.svg = svg.path;
  a.block = 16;
  printed(a);
  EXPECT_EQ(xml_fault(slurp(svg.path)), "");
  ShowArguments list;
  list.json = json.path;
  EXPECT_NE(printed(list).find("!causal(diagonal_offset(-1))"), std::string::npos);
  const auto j = nlohmann::json::parse(slurp(json.path));
  EXPECT_GT(j.at("masks").size(), 60u);
  EXPECT_GT(j.at("mods").size(), 30u);
  for (const auto& entry : j.at("masks")) EXPECT_FALSE(entry.at("formula").empty());
}

TEST(ShowCommand, shows_every_entry) {
  const Scratch json("all.json");
  ShowArguments list;
  list.json = json.path;
  printed(list);
  const auto j = nlohmann::json::parse(slurp(json.path));
  for (const auto& entry : j.at("masks")) printed(mask(entry.at("name")));
  for (const auto& entry : j.at("mods")) printed(mod(entry.at("name")));
}

TEST(ShowCommand, refuses_bad_arguments_in_one_line) {
  ShowArguments a = mask("window");
  a.parameters = {"left=-1"};
  EXPECT_EQ(refusal(a),
            "parameter 'left' = -1: window expects a whole number from 0 to 16777216 "
            "(keys before)");
  a.parameters = {"left"};
  EXPECT_EQ(refusal(a), "--param: 'left', expected NAME=VALUE such as width=8");
  a.parameters = {"left=x"};
  EXPECT_EQ(refusal(a), "--param left: 'x', expected a number");

  a = mask("causal");
  a.block = 0;
  EXPECT_EQ(refusal(a), "--block: 0, expected 1 or more");
  a = mask("causal");
  a.size = "64";
  EXPECT_EQ(refusal(a), "--size: '64', expected QUERIESxKEYS such as 64x64, each 1 to 2048");
  a.size = "0x4";
  EXPECT_EQ(refusal(a), "--size: '0x4', expected QUERIESxKEYS such as 64x64, each 1 to 2048");
  a.size = "4x4";
  a.head = -1;
  EXPECT_EQ(refusal(a), "--head: -1, expected 0 to 63");

  a = mask("document");
  a.tables = {"ids[Skv-1]=documents(4)"};
  EXPECT_EQ(refusal(a),
            "document: q_ids has shape [1, 63], expected [1 or B = 2, at least Sq = 64]");
  a.tables = {"idx[Skv]=documents(4)"};
  EXPECT_EQ(refusal(a), "table 'idx': document: did you mean 'ids'?");
  EXPECT_EQ(refusal(mask("causul")), "no mask is called 'causul': did you mean 'causal'?");
  EXPECT_EQ(refusal(mod("aliby")), "no score mod is called 'aliby': did you mean 'alibi'?");
  a = mask("kv <= q");
  a.parameters = {"width=3"};
  EXPECT_EQ(refusal(a),
            "--param: 'width=3', expected none with an expression: write the number into it");
  EXPECT_NE(refusal(mask("kv <= ")), "");
  a = mod("identity");
  a.score = std::nan("");
  EXPECT_EQ(refusal(a), "--score: nan, expected a finite number");
}

}  // namespace
}  // namespace attn::fuzz
