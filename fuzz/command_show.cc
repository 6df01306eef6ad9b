#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <utility>

#include "fuzz/commands.h"
#include "fuzz/show_render.h"
#include "fuzz/table_spec.h"
#include "masks/registry.h"
#include "mods/dense_construction.h"
#include "mods/lang/parse.h"
#include "mods/lang/tree_functor.h"
#include "mods/registry.h"

namespace attn::fuzz {
namespace {

constexpr int largest_size = 2048;
constexpr std::uint64_t table_seed = 1;

/// The number that is all of `text`; nothing else.
template <class T>
std::optional<T> number(const std::string& text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return {};
  return value;
}

/// The problem that is shown: `--size 64x48`, with enough batch entries and heads to tell apart.
Sizes sizes_of(const ShowArguments& a) {
  const std::size_t cross = std::min(a.size.find('x'), a.size.size());
  const std::optional<int> rows = number<int>(a.size.substr(0, cross));
  const std::optional<int> columns =
      number<int>(cross < a.size.size() ? a.size.substr(cross + 1) : "");
  if (!rows || !columns || std::min(*rows, *columns) < 1 ||
      std::max(*rows, *columns) > largest_size)
    throw std::invalid_argument(fmt::format(
        "--size: '{}', expected QUERIESxKEYS such as 64x64, each 1 to {}", a.size, largest_size));
  Sizes sizes;
  sizes.sq = *rows;
  sizes.skv = *columns;
  for (const auto& [option, index] : {std::pair{"--batch", a.batch}, {"--head", a.head}})
    if (index < 0 || index > 63)
      throw std::invalid_argument(fmt::format("{}: {}, expected 0 to 63", option, index));
  sizes.b = std::max(2, a.batch + 1);
  sizes.hq = sizes.hkv = std::max(4, a.head + 1);
  return sizes;
}

int block_of(const ShowArguments& a) {
  if (a.block && *a.block < 1)
    throw std::invalid_argument(fmt::format("--block: {}, expected 1 or more", *a.block));
  return a.block.value_or(0);
}

ParameterValues parameters_of(const ShowArguments& a) {
  ParameterValues values;
  for (const std::string& text : a.parameters) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      throw std::invalid_argument(
          fmt::format("--param: '{}', expected NAME=VALUE such as width=8", text));
    const std::string name = text.substr(0, equals), digits = text.substr(equals + 1);
    const std::optional<double> value = number<double>(digits);
    if (!value)
      throw std::invalid_argument(fmt::format("--param {}: '{}', expected a number", name, digits));
    values[name] = *value;
  }
  return values;
}

std::vector<TableSpec> specs_of(const ShowArguments& a) {
  std::vector<TableSpec> specs;
  for (const std::string& text : a.tables) specs.push_back(parse_table_spec(text));
  return specs;
}

/// A word that the language of expressions does not use is a name of the registry.
bool is_name(const std::string& text) {
  const bool word = std::all_of(text.begin(), text.end(),
                                [](unsigned char c) { return std::isalnum(c) || c == '_'; });
  return word && (is_table_name(text) || text.size() > max_table_name);
}

void refuse_parameters_of_expression(const ShowArguments& a) {
  if (!a.parameters.empty())
    throw std::invalid_argument(
        fmt::format("--param: '{}', expected none with an expression: write the number into it",
                    a.parameters.front()));
}

std::string shapes_of(const Tables& tables) {
  std::string text;
  for (const Table& t : tables.all()) {
    text += fmt::format("{}{}[", text.empty() ? "" : ", ", t.name);
    for (int axis = 0; axis < t.rank; ++axis)
      text += fmt::format("{}{}", axis ? ", " : "", t.extents[static_cast<std::size_t>(axis)]);
    text += fmt::format("] {}", name_of(t.type));
  }
  return text;
}

/// What is written over a picture.
struct Heading {
  std::string title, subtitle, expression, tables;
};
void print(const Heading& heading) {
  fmt::print("{}: {}\n", heading.title, heading.subtitle);
  if (heading.expression != heading.subtitle) fmt::print("expression  {}\n", heading.expression);
  if (!heading.tables.empty()) fmt::print("tables      {}\n", heading.tables);
}

void show(const ShowArguments& a, const Heading& heading, const MaskGrid& grid) {
  const int block = block_of(a);
  print(heading);
  fmt::print("{}", mask_text(grid, block));
  std::int64_t attended = 0;
  for (const char pair : grid.pairs) attended += pair;
  fmt::print("{} of {} pairs attend\n", attended, grid.pairs.size());
  if (block > 0) {
    const BlockCounts counts = count_blocks(grid, block);
    fmt::print("blocks of {}: {} full, {} partial, {} empty\n", block, counts.full, counts.partial,
               counts.empty);
  }
  if (!a.svg.empty()) write_file(a.svg, mask_svg(grid, block, heading.title, heading.subtitle));
}

void show(const ShowArguments& a, const Heading& heading, const ScoreGrid& grid) {
  print(heading);
  fmt::print("{}", score_text(grid));
  const ScoreRange range = finite_range(grid);
  fmt::print("change t - s at s = {}: from {} ({}) to {} ({}); x -inf, ^ inf, ? NaN\n",
             short_number(a.score), short_number(range.low), score_levels[0],
             short_number(range.high),
             range.low == range.high ? score_levels[0] : score_levels[sizeof(score_levels) - 2]);
  if (!a.svg.empty()) write_file(a.svg, score_svg(grid, heading.title, heading.subtitle));
}

template <class Attends>
MaskGrid mask_grid(const Sizes& sizes, const Attends& attends) {
  MaskGrid grid{sizes.sq, sizes.skv, {}};
  for (int i = 0; i < sizes.sq; ++i)
    for (int j = 0; j < sizes.skv; ++j) grid.pairs.push_back(attends(i, j));
  return grid;
}
template <class Change>
ScoreGrid score_grid(const Sizes& sizes, const Change& change) {
  ScoreGrid grid{sizes.sq, sizes.skv, {}};
  for (int i = 0; i < sizes.sq; ++i)
    for (int j = 0; j < sizes.skv; ++j) grid.changes.push_back(change(i, j));
  return grid;
}

void show_mask(const ShowArguments& a) {
  const Sizes sizes = sizes_of(a);
  block_of(a);
  const ParameterValues parameters = parameters_of(a);
  if (is_name(a.name)) {
    const MaskEntry& entry = mask_named(a.name);
    const TableStore store(specs_of(a), sizes, table_seed);
    const NamedMask mask = make_mask(entry, sizes, parameters, store.tables());
    show(a, {entry.name, entry.formula, mask.expression(), shapes_of(mask.tables())},
         mask_grid(sizes, [&](int i, int j) { return mask.attends(a.batch, a.head, i, j); }));
    return;
  }
  refuse_parameters_of_expression(a);
  const TableStore store(specs_of(a), sizes, table_seed);
  const Expression tree = parse_mask(a.name, store.tables().declarations());
  const TreeMask mask(tree, store.tables());
  const std::string text = to_text(tree);
  show(a, {"mask", text, text, shapes_of(store.tables())}, mask_grid(sizes, [&](int i, int j) {
         return attends<ExactEnv>(mask, sizes, a.batch, a.head, i, j);
       }));
}

void show_mod(const ShowArguments& a) {
  const Sizes sizes = sizes_of(a);
  const ParameterValues parameters = parameters_of(a);
  if (!std::isfinite(a.score))
    throw std::invalid_argument(fmt::format("--score: {}, expected a finite number", a.score));
  if (is_name(a.name)) {
    const ModEntry& entry = mod_named(a.name);
    const TableStore store(specs_of(a), sizes, table_seed);
    const NamedMod mod = make_mod(entry, sizes, parameters, store.tables());
    show(a, {entry.name, entry.formula, mod.expression(), shapes_of(mod.tables())},
         score_grid(sizes, [&](int i, int j) {
           return mod.score(a.score, a.batch, a.head, i, j) - a.score;
         }));
    return;
  }
  refuse_parameters_of_expression(a);
  const TableStore store(specs_of(a), sizes, table_seed);
  const Expression tree = parse_mod(a.name, store.tables().declarations());
  const TreeMod mod(tree, store.tables());
  const std::string text = to_text(tree);
  ExactEnv env{sizes};
  show(a, {"mod", text, text, shapes_of(store.tables())}, score_grid(sizes, [&](int i, int j) {
         return modified(mod, env, a.score, a.batch, a.head, i, j) - a.score;
       }));
}

nlohmann::json to_json(const EntryText& entry) {
  nlohmann::json parameters = nlohmann::json::array();
  for (const Parameter& p : entry.parameters)
    parameters.push_back({{"name", p.name},
                          {"whole", p.kind == Parameter::Kind::whole},
                          {"default", p.value},
                          {"least", p.least},
                          {"most", p.most},
                          {"what", p.what}});
  return {{"name", entry.name},      {"line", entry.line}, {"formula", entry.formula},
          {"header", entry.header},  {"code", entry.code}, {"expression", entry.expression},
          {"parameters", parameters}};
}

/// Those with a file of their own, with the formula; then those made of them, with the code.
template <class Entry>
nlohmann::json list(const std::vector<Entry>& entries, const char* kind) {
  nlohmann::json all = nlohmann::json::array();
  for (const bool own : {true, false}) {
    fmt::print("{}{}\n", kind, own ? "" : " made of these");
    for (const Entry& entry : entries) {
      if (entry.header.empty() == own) continue;
      fmt::print("  {:<44} {}\n  {:<44} {}", entry.name, own ? entry.formula : entry.code, "",
                 entry.line);
      std::string parameters;
      for (const Parameter& p : entry.parameters)
        parameters += fmt::format("{}{}={}", parameters.empty() ? "" : " ", p.name, p.value);
      fmt::print("{}{}\n", parameters.empty() ? "" : "; ", parameters);
    }
  }
  for (const Entry& entry : entries) all.push_back(to_json(entry));
  return all;
}

void show_list(const ShowArguments& a) {
  nlohmann::json j;
  j["masks"] = list(mask_registry(), "masks");
  j["mods"] = list(mod_registry(), "score mods");
  j["excluded"] = nlohmann::json::array();
  fmt::print("no score mods\n");
  for (const Excluded& e : excluded_mods()) {
    fmt::print("  {}\n    {}\n", e.name, e.reason);
    j["excluded"].push_back({{"name", e.name}, {"reason", e.reason}});
  }
  if (!a.json.empty()) write_file(a.json, j.dump(2) + "\n");
}

}  // namespace

int show_command(const ShowArguments& a) {
  switch (a.what) {
    case ShowArguments::What::list:
      show_list(a);
      break;
    case ShowArguments::What::mask:
      show_mask(a);
      break;
    case ShowArguments::What::mod:
      show_mod(a);
      break;
  }
  return 0;
}

}  // namespace attn::fuzz
