#include "fuzz/case.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <stdexcept>

#include "mods/lang/parse.h"

namespace attn::fuzz {
namespace {

constexpr std::string_view version = "v1";
constexpr int largest_length = 1 << 20;

constexpr const char* fill_names[] = {
    "gaussian",       "large",    "ties",       "cancelling", "very_negative", "very_positive",
    "large_products", "outlier",  "denormal",   "rising",     "small_ints",    "marker_v",
    "offsets",        "nan_keys", "exact_code", "exact_rank", "exact_count",   "exact_powers"};
static_assert(std::size(fill_names) == fill_count);
constexpr const char* layout_names[] = {"bhsd",  "bshd",      "padded", "unaligned",
                                        "fused", "shared_kv", "spread"};
static_assert(std::size(layout_names) == layout_count);

/// The parts of the first section, in order.
struct Length {
  std::string_view name;
  int Case::*value;
  int least;
};
constexpr Length lengths[] = {{"B", &Case::b, 0},   {"Hq", &Case::hq, 0},   {"Hkv", &Case::hkv, 0},
                              {"Sq", &Case::sq, 0}, {"Skv", &Case::skv, 0}, {"D", &Case::d, 1},
                              {"Dv", &Case::dv, 0}};

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

template <class T>
T number(std::string_view text, std::string_view what) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size())
    throw std::invalid_argument(fmt::format("case: {} is '{}', expected a number", what, text));
  return value;
}

template <class E, std::size_t N>
E named(std::string_view text, const char* const (&names)[N], std::string_view what) {
  for (std::size_t i = 0; i < N; ++i)
    if (text == names[i]) return static_cast<E>(i);
  throw std::invalid_argument(
      fmt::format("case: {} is '{}', expected one of {}", what, text, fmt::join(names, ", ")));
}

/// What `parse` returns; a refusal names the part.
template <class Parse>
Expression expression(std::string_view what, Parse parse) {
  try {
    return parse();
  } catch (const std::invalid_argument& refusal) {
    throw std::invalid_argument(fmt::format("case: {}: {}", what, refusal.what()));
  }
}

/// Takes the next word off the front of `text`.
std::string_view next_word(std::string_view& text) {
  text = trim(text);
  const std::string_view word = text.substr(0, text.find_first_of(" \t"));
  text.remove_prefix(word.size());
  return word;
}

void parse_lengths(std::string_view section, Case& c) {
  const std::string_view first = next_word(section);
  if (first != version)
    throw std::invalid_argument(
        fmt::format("case: begins with '{}', expected '{}'", first, version));
  for (const Length& length : lengths) {
    const std::string_view word = next_word(section);
    const std::string_view digits = word.substr(std::min(word.size(), length.name.size()));
    if (!word.starts_with(length.name) || digits.empty())
      throw std::invalid_argument(
          fmt::format("case: '{}', expected {} and a number", word, length.name));
    c.*length.value = number<int>(digits, length.name);
    if (c.*length.value < length.least || c.*length.value > largest_length)
      throw std::invalid_argument(fmt::format("case: {} is {}, expected {} to {}", length.name,
                                              c.*length.value, length.least, largest_length));
  }
  c.dtype = parse_dtype(next_word(section));
  if (!trim(section).empty())
    throw std::invalid_argument(
        fmt::format("case: '{}' after the dtype, expected ';'", trim(section)));
}

}  // namespace

const char* name_of(Fill fill) { return fill_names[static_cast<int>(fill)]; }
const char* name_of(Layout layout) { return layout_names[static_cast<int>(layout)]; }

DType parse_dtype(std::string_view name) {
  for (const DType t : {DType::f64, DType::f32, DType::f16, DType::bf16})
    if (name == name_of(t)) return t;
  throw std::invalid_argument(
      fmt::format("dtype: '{}', expected one of fp64, fp32, fp16, bf16", name));
}

Case::Case() : mod(variable(Op::score)), mask(condition_constant(true)) {}

std::vector<TableDeclaration> Case::declarations() const {
  std::vector<TableDeclaration> declared;
  for (const TableSpec& t : tables)
    declared.push_back({t.name, static_cast<int>(t.dims.size()), t.type()});
  return declared;
}

std::string to_text(const Case& c) {
  std::string text(version);
  for (const Length& length : lengths) text += fmt::format(" {}{}", length.name, c.*length.value);
  text += fmt::format(" {}; mod: {}; mask: {}", name_of(c.dtype), to_text(c.mod), to_text(c.mask));
  for (const TableSpec& table : c.tables) text += "; table: " + to_text(table);
  if (c.scale) text += fmt::format("; scale: {}", *c.scale);
  if (c.layout != Layout::bhsd) text += fmt::format("; layout: {}", name_of(c.layout));
  if (!c.small_tile) text += "; tile: production";
  return text +
         fmt::format("; fill: {}; seed: {}; impl: {}", name_of(c.fill), c.seed, c.implementation);
}

Case parse_case(std::string_view text) {
  Case c;
  std::string mod = "score", mask = "true";
  bool first = true;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(';', at), text.size());
    const std::string_view section = trim(text.substr(at, end - at));
    at = end + 1;
    if (first) {
      parse_lengths(section, c);
      first = false;
      continue;
    }
    if (section.empty()) continue;
    const std::size_t colon = section.find(':');
    const std::string_view key = trim(section.substr(0, colon));
    const std::string_view value =
        colon == std::string_view::npos ? std::string_view{} : trim(section.substr(colon + 1));
    if (key == "mod") {
      mod = value;
    } else if (key == "mask") {
      mask = value;
    } else if (key == "table") {
      c.tables.push_back(parse_table_spec(value));
    } else if (key == "scale") {
      c.scale = number<double>(value, key);
      if (!std::isfinite(*c.scale))
        throw std::invalid_argument(
            fmt::format("case: scale is {}, expected a finite number", value));
    } else if (key == "layout") {
      c.layout = named<Layout>(value, layout_names, key);
    } else if (key == "tile") {
      constexpr const char* tiles[] = {"production", "small"};
      c.small_tile = named<int>(value, tiles, key) == 1;
    } else if (key == "fill") {
      c.fill = named<Fill>(value, fill_names, key);
    } else if (key == "seed") {
      c.seed = number<std::uint64_t>(value, key);
    } else if (key == "impl") {
      c.implementation = value;
    } else {
      throw std::invalid_argument(
          fmt::format("case: '{}', expected one of mod, mask, table, scale, layout, tile, fill, "
                      "seed, impl, each with ':'",
                      key));
    }
  }
  c.mod = expression("mod", [&] { return parse_mod(mod, c.declarations()); });
  c.mask = expression("mask", [&] { return parse_mask(mask, c.declarations()); });
  return c;
}

}  // namespace attn::fuzz
