#include "fuzz/case.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <stdexcept>

#include "fuzz/text.h"
#include "mods/lang/parse.h"

namespace attn::fuzz {
namespace {

constexpr std::string_view version = "v1";
constexpr int largest_length = 1 << 20;
/// Of one tensor, its unused pages included: what the memory of a usual machine holds many of.
constexpr double most_elements = 1 << 27;

constexpr const char* fill_names[] = {
    "gaussian",      "large",          "ties",        "cancelling",   "very_negative",
    "very_positive", "large_products", "outlier",     "denormal",     "rising",
    "small_ints",    "marker_v",       "offsets",     "capped",       "nan_keys",
    "exact_code",    "exact_rank",     "exact_count", "exact_powers", "exact_pairs"};
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

template <class T>
T number(std::string_view text, std::string_view what) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size())
    throw std::invalid_argument(
        fmt::format("case: {} is {}, expected a number", what, shown(text)));
  return value;
}

template <class E, std::size_t N>
E named(std::string_view text, const char* const (&names)[N], std::string_view what) {
  for (std::size_t i = 0; i < N; ++i)
    if (text == names[i]) return static_cast<E>(i);
  throw std::invalid_argument(
      fmt::format("case: {} is {}, expected one of {}", what, shown(text), fmt::join(names, ", ")));
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
        fmt::format("case: begins with {}, expected '{}'", shown(first), version));
  for (const Length& length : lengths) {
    const std::string_view word = next_word(section);
    const std::string_view digits = word.substr(std::min(word.size(), length.name.size()));
    if (!word.starts_with(length.name) || digits.empty())
      throw std::invalid_argument(
          fmt::format("case: {}, expected {} and a number", shown(word), length.name));
    c.*length.value = number<int>(digits, length.name);
    if (c.*length.value < length.least || c.*length.value > largest_length)
      throw std::invalid_argument(fmt::format("case: {} is {}, expected {} to {}", length.name,
                                              c.*length.value, length.least, largest_length));
  }
  c.dtype = parse_dtype(next_word(section));
  if (!trim(section).empty())
    throw std::invalid_argument(
        fmt::format("case: {} after the dtype, expected ';'", shown(trim(section))));
}

int whole(std::string_view text, std::string_view what, int least) {
  const int value = number<int>(text, what);
  if (value < least || value > largest_length)
    throw std::invalid_argument(
        fmt::format("case: {} is {}, expected {} to {}", what, value, least, largest_length));
  return value;
}

/// `3,0,17`.
std::vector<int> whole_numbers(std::string_view text, std::string_view what) {
  std::vector<int> values;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    values.push_back(whole(trim(text.substr(at, end - at)), what, 0));
    at = end + 1;
  }
  return values;
}

bool switched_on(std::string_view text, std::string_view what) {
  constexpr const char* states[] = {"off", "on"};
  return named<int>(text, states, what) == 1;
}

double scale_of(std::string_view text) {
  const double scale = number<double>(text, "scale");
  if (!std::isfinite(scale))
    throw std::invalid_argument(fmt::format("case: scale is {}, expected a finite number", scale));
  return scale;
}

double dropout_of(std::string_view text) {
  const double p = number<double>(text, "dropout");
  if (!(p >= 0 && p < 1))
    throw std::invalid_argument(
        fmt::format("case: dropout is {}, expected a probability from 0 to below 1", p));
  return p;
}

/// `64x48`.
BlockSize blocks_of(std::string_view text) {
  const std::size_t cross = text.find('x');
  if (cross == std::string_view::npos)
    throw std::invalid_argument(
        fmt::format("case: blocks is {}, expected rows x keys, such as 64x48", shown(text)));
  return {whole(text.substr(0, cross), "blocks", 1), whole(text.substr(cross + 1), "blocks", 1)};
}

/// Whether there is one of that name is asked when the case is run.
std::string implementation_name(std::string_view text) {
  const auto in_name = [](char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z');
  };
  if (text.empty() || text.size() > 40 || !std::all_of(text.begin(), text.end(), in_name))
    throw std::invalid_argument(
        fmt::format("case: impl is {}, expected a name that 'attnproof impls' lists", shown(text)));
  return std::string(text);
}

/// A case whose expressions are not parsed yet: the tables that they read may follow them.
struct Draft {
  Case c;
  std::string mod = "score", mask = "true";
};

/// The parts after the first section, by their keys.
struct Part {
  std::string_view key;
  void (*set)(Draft&, std::string_view value);
};
constexpr Part parts[] = {
    {"mod", [](Draft& d, std::string_view v) { d.mod = v; }},
    {"mask", [](Draft& d, std::string_view v) { d.mask = v; }},
    {"modtype", [](Draft& d, std::string_view v) { d.c.mod_type = v; }},
    {"masktype", [](Draft& d, std::string_view v) { d.c.mask_type = v; }},
    {"table", [](Draft& d, std::string_view v) { d.c.tables.push_back(parse_table_spec(v)); }},
    {"scale", [](Draft& d, std::string_view v) { d.c.scale = scale_of(v); }},
    {"qlens", [](Draft& d, std::string_view v) { d.c.query_lengths = whole_numbers(v, "qlens"); }},
    {"kvlens", [](Draft& d, std::string_view v) { d.c.key_lengths = whole_numbers(v, "kvlens"); }},
    {"page", [](Draft& d, std::string_view v) { d.c.page_size = whole(v, "page", 1); }},
    {"splits", [](Draft& d, std::string_view v) { d.c.splits = whole(v, "splits", 0); }},
    {"blocks", [](Draft& d, std::string_view v) { d.c.blocks = blocks_of(v); }},
    {"sink", [](Draft& d, std::string_view v) { d.c.sink = switched_on(v, "sink"); }},
    {"dropout", [](Draft& d, std::string_view v) { d.c.dropout = dropout_of(v); }},
    {"dlse", [](Draft& d, std::string_view v) { d.c.d_lse = switched_on(v, "dlse"); }},
    {"rowmax", [](Draft& d, std::string_view v) { d.c.row_max = switched_on(v, "rowmax"); }},
    {"layout",
     [](Draft& d, std::string_view v) { d.c.layout = named<Layout>(v, layout_names, "layout"); }},
    {"tile",
     [](Draft& d, std::string_view v) {
       constexpr const char* tiles[] = {"production", "small"};
       d.c.small_tile = named<int>(v, tiles, "tile") == 1;
     }},
    {"fill", [](Draft& d, std::string_view v) { d.c.fill = named<Fill>(v, fill_names, "fill"); }},
    {"seed", [](Draft& d, std::string_view v) { d.c.seed = number<std::uint64_t>(v, "seed"); }},
    {"impl", [](Draft& d, std::string_view v) { d.c.implementation = implementation_name(v); }},
};

void set_part(Draft& draft, std::string_view section) {
  const std::size_t colon = section.find(':');
  const std::string_view key = trim(section.substr(0, colon));
  const std::string_view value =
      colon == std::string_view::npos ? std::string_view{} : trim(section.substr(colon + 1));
  std::string known;
  for (const Part& part : parts) {
    if (part.key == key) return part.set(draft, value);
    known += fmt::format("{}{}", known.empty() ? "" : ", ", part.key);
  }
  throw std::invalid_argument(
      fmt::format("case: {}, expected one of {}, each with ':'", shown(key), known));
}

void require_text(std::string_view text) {
  if (text.size() > max_case_text)
    throw std::invalid_argument(
        fmt::format("case: a line of {} bytes, expected at most {}", text.size(), max_case_text));
  if (const std::size_t at = first_not_text(text); at != std::string_view::npos)
    throw std::invalid_argument(fmt::format("case: byte {} is {}, expected one line of UTF-8",
                                            at + 1, shown(text.substr(at, 1))));
}

/// Refuses what no memory holds. An extent of 0 counts as 1: loops run over the others.
void require_memory(const Case& c) {
  const int rows = std::max({1, c.sq, c.skv + 3 * c.page_size});
  const double elements = static_cast<double>(std::max(1, c.b)) * std::max({1, c.hq, c.hkv}) *
                          rows * std::max(c.d, c.dv);
  if (elements > most_elements)
    throw std::invalid_argument(
        fmt::format("case: tensors of up to {:.3g} elements, expected at most {:.3g}: fewer "
                    "batches, heads or rows",
                    elements, most_elements));
}

}  // namespace

const char* name_of(Fill fill) { return fill_names[static_cast<int>(fill)]; }
const char* name_of(Layout layout) { return layout_names[static_cast<int>(layout)]; }

DType parse_dtype(std::string_view name) {
  for (const DType t : {DType::f64, DType::f32, DType::f16, DType::bf16})
    if (name == name_of(t)) return t;
  throw std::invalid_argument(
      fmt::format("dtype: {}, expected one of fp64, fp32, fp16, bf16", shown(name)));
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
  text += fmt::format(" {}", name_of(c.dtype));
  text += c.mod_type.empty() ? "; mod: " + to_text(c.mod) : "; modtype: " + c.mod_type;
  text += c.mask_type.empty() ? "; mask: " + to_text(c.mask) : "; masktype: " + c.mask_type;
  for (const TableSpec& table : c.tables) text += "; table: " + to_text(table);
  const auto add = [&text](const char* key, const auto& value) {
    text += fmt::format("; {}: {}", key, value);
  };
  if (c.scale) add("scale", *c.scale);
  if (!c.query_lengths.empty()) add("qlens", fmt::format("{}", fmt::join(c.query_lengths, ",")));
  if (!c.key_lengths.empty()) add("kvlens", fmt::format("{}", fmt::join(c.key_lengths, ",")));
  if (c.page_size) add("page", c.page_size);
  if (c.splits) add("splits", c.splits);
  if (c.blocks) add("blocks", fmt::format("{}x{}", c.blocks->q, c.blocks->kv));
  if (c.sink) add("sink", "on");
  if (c.dropout != 0) add("dropout", c.dropout);
  if (c.d_lse) add("dlse", "on");
  if (c.row_max) add("rowmax", "on");
  if (c.layout != Layout::bhsd) add("layout", name_of(c.layout));
  if (!c.small_tile) add("tile", "production");
  return text +
         fmt::format("; fill: {}; seed: {}; impl: {}", name_of(c.fill), c.seed, c.implementation);
}

Case parse_case(std::string_view text) {
  text = trim(text);
  require_text(text);
  Draft draft;
  bool first = true;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(';', at), text.size());
    const std::string_view section = trim(text.substr(at, end - at));
    at = end + 1;
    if (first)
      parse_lengths(section, draft.c);
    else if (!section.empty())
      set_part(draft, section);
    first = false;
  }
  Case& c = draft.c;
  require_memory(c);
  c.mod = expression("mod", [&] { return parse_mod(draft.mod, c.declarations()); });
  c.mask = expression("mask", [&] { return parse_mask(draft.mask, c.declarations()); });
  return c;
}

}  // namespace attn::fuzz
