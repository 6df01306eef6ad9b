#include "fuzz/row_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "fuzz/text.h"
#include "mods/lang/parse.h"

namespace attn::fuzz {
namespace {

constexpr int likely_heads[] = {1,  7,  8,  16, 20,  24,  32,  33,  40,  48,  59,  63,
                                64, 72, 80, 96, 112, 120, 128, 136, 160, 192, 224, 256};

/// Of one head, as many queries as keys.
Problem square_problem(int length, int d, int dv, DType dtype) {
  Problem p;
  p.b = p.hq = p.hkv = 1;
  p.sq = p.skv = length;
  p.d = d, p.dv = dv, p.dtype = dtype;
  p.scale = 1 / std::sqrt(static_cast<double>(d));
  return p;
}

/// Some length, a tile's or not, is taken with these head sizes.
bool takes_heads(const Implementation& row, DType dtype, int d, int dv) {
  for (const int length : {1, row.small.q, row.small.kv, row.production.q, row.production.kv,
                           std::max(row.production.q, row.production.kv), 128, 256})
    if (!row.refusal(square_problem(length, d, dv, dtype))) return true;
  return false;
}

void check_expression(const Expression& given, const Expression& only, const char* part,
                      const Implementation& row) {
  if (!same_tree(given, only))
    throw std::invalid_argument(
        fmt::format("{}: '{}', expected '{}', the only one that {} computes", part, to_text(given),
                    to_text(only), row.name));
}

}  // namespace

void check_limits(const Case& c, const Implementation& row) {
  const auto refuse = [&](bool given, const char* part) {
    if (given)
      throw std::invalid_argument(fmt::format("{}: given, but {} has none", part, row.name));
  };
  if (!row.mod.empty()) check_expression(c.mod, parse_mod(row.mod), "mod", row);
  if (!row.mask.empty()) check_expression(c.mask, parse_mask(row.mask), "mask", row);
  refuse(c.sink && !row.sink, "sink");
  refuse(c.dropout != 0 && !row.dropout, "dropout");
  refuse(c.row_max && !row.row_max, "rowmax");
  if (c.layout != Layout::bhsd && !row.strides)
    throw std::invalid_argument(fmt::format("layout: {}, expected bhsd, the only one that {} takes",
                                            name_of(c.layout), row.name));
}

void keep_to_limits(Case& c, const Implementation& row) {
  c.sink = c.sink && row.sink;
  if (!row.dropout) c.dropout = 0;
  c.row_max = c.row_max && row.row_max;
  if (!row.strides) c.layout = Layout::bhsd;
}

Problem problem_of(const Case& c) {
  Problem p;
  p.b = c.b, p.hq = c.hq, p.hkv = c.hkv, p.sq = c.sq, p.skv = c.skv, p.d = c.d, p.dv = c.dv;
  p.scale = c.scale.value_or(1 / std::sqrt(static_cast<double>(c.d)));
  p.dtype = c.dtype;
  return p;
}

bool takes(const Implementation& row, DType dtype, std::optional<int> d, std::optional<int> dv) {
  if (!d && !dv) return !head_sizes(row, dtype).empty();
  return takes_heads(row, dtype, d ? *d : *dv, dv ? *dv : *d);
}

const std::vector<int>& head_sizes(const Implementation& row, DType dtype) {
  // asked for each case that is drawn, and always the same
  thread_local std::map<std::pair<std::string, DType>, std::vector<int>> known;
  const auto [entry, is_new] = known.try_emplace({std::string(row.name), dtype});
  std::vector<int>& taken = entry->second;
  if (!is_new) return taken;
  for (const int d : likely_heads)
    if (takes_heads(row, dtype, d, d)) taken.push_back(d);
  return taken;
}

std::vector<std::string> names_of(std::span<const Implementation> rows) {
  std::vector<std::string> names;
  for (const Implementation& row : rows) names.emplace_back(row.name);
  return names;
}

std::vector<std::string> rows_to_fuzz(const std::string& text, Engine engine) {
  const std::span<const Implementation> all = implementations(),
                                        added = all.subspan(shipped_implementations().size());
  std::vector<std::string> names;
  if (text == "all") {
    std::vector<Implementation> able;
    std::copy_if(all.begin(), all.end(), std::back_inserter(able),
                 [&](const Implementation& row) { return row.runs_on(engine); });
    return added.empty() ? names : names_of(able);
  }
  if (text.empty()) {
    names = names_of(added);
  } else {
    std::istringstream list(text);
    for (std::string name; std::getline(list, name, ',');) names.emplace_back(trim(name));
  }
  for (const std::string& name : names)
    if (!implementation_named(name).runs_on(engine))
      throw std::invalid_argument(
          fmt::format("--engine: '{}', but {} has no build for it", name_of(engine), name));
  return names;
}

bool has_shipped_row(const std::vector<std::string>& names) {
  const std::vector<std::string> shipped = names_of(shipped_implementations());
  return names.empty() || std::any_of(names.begin(), names.end(), [&](const std::string& name) {
           return std::find(shipped.begin(), shipped.end(), name) != shipped.end();
         });
}

}  // namespace attn::fuzz
