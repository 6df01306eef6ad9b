#include "fuzz/table_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "fuzz/random.h"
#include "fuzz/text.h"
#include "mods/alibi.h"

namespace attn::fuzz {
namespace {

using Source = TableSpec::Source;

/// Of all the tables of a case together.
constexpr std::int64_t most_entries = std::int64_t{1} << 28;
constexpr std::int64_t largest_extent = std::numeric_limits<std::int32_t>::max();

struct SourceSyntax {
  Source source;
  std::string_view name;
  int arguments;
};
constexpr SourceSyntax sources[] = {
    {Source::uniform, "uniform", 2},     {Source::dyadic, "dyadic", 2},
    {Source::alibi, "alibi", 0},         {Source::ints, "ints", 2},
    {Source::documents, "documents", 1}, {Source::bits, "bits", 1},
};

[[noreturn]] void refuse(std::string_view text, const std::string& expected) {
  throw std::invalid_argument(fmt::format("table {}: expected {}", shown(text), expected));
}

/// A finite number that stays finite as a float.
double number(std::string_view text, std::string_view whole) {
  text = trim(text);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() ||
      !(std::abs(value) <= std::numeric_limits<float>::max()))
    refuse(whole, fmt::format("a finite number that fp32 holds, not {}", shown(text)));
  return value;
}

std::vector<std::string_view> split(std::string_view text, char by) {
  std::vector<std::string_view> parts;
  for (std::size_t at = 0;;) {
    const std::size_t next = text.find(by, at);
    parts.push_back(trim(text.substr(at, next - at)));
    if (next == std::string_view::npos) return parts;
    at = next + 1;
  }
}

std::int64_t length_named(std::string_view name, const Sizes& sizes, const TableSpec& spec) {
  if (name == "B") return sizes.b;
  if (name == "H" || name == "Hq") return sizes.hq;
  if (name == "Hkv") return sizes.hkv;
  if (name == "Sq") return sizes.sq;
  if (name == "Skv") return sizes.skv;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), value);
  if (name.empty() || error != std::errc{} || end != name.data() + name.size() ||
      value > largest_extent)
    refuse(to_text(spec), fmt::format("extents made of B, H, Hq, Hkv, Sq, Skv and whole numbers, "
                                      "not {}",
                                      shown(name)));
  return value;
}

/// A sum of products, such as 2*Sq-1.
std::int64_t extent(std::string_view dim, const Sizes& sizes, const TableSpec& spec) {
  std::int64_t sum = 0;
  for (std::size_t at = 0; at <= dim.size();) {
    const bool minus = at > 0 && dim[at - 1] == '-';
    const std::size_t end = std::min(dim.find_first_of("+-", at), dim.size());
    std::int64_t product = 1;
    for (const std::string_view factor : split(dim.substr(at, end - at), '*')) {
      product *= length_named(factor, sizes, spec);  // both below 2^31
      if (product > largest_extent)
        refuse(to_text(spec), fmt::format("products below 2^31, not {}", product));
    }
    sum += minus ? -product : product;
    at = end + 1;
  }
  return sum;
}

/// Its entries, an extent of 0 counted as 1.
std::int64_t size_of(const TableSpec& spec, const Sizes& sizes, std::int64_t most) {
  std::int64_t size = 1;
  for (const std::int64_t extent : extents_of(spec, sizes))
    if ((size *= std::max<std::int64_t>(1, extent)) > most)
      refuse(to_text(spec), "at most 2^28 entries of all tables together");
  return size;
}

std::vector<double> numbers_in(const std::string& path) {
  std::error_code error;
  const bool is_file = std::filesystem::is_regular_file(path, error);  // no pipe, no /dev/zero
  std::ifstream file(path);
  if (!is_file || !file)
    throw std::invalid_argument(fmt::format(
        "table file '{}': cannot be read, expected a file of numbers or uniform(low,high), "
        "dyadic(low,high), alibi, ints(low,high), documents(length), bits(share)",
        path));
  std::vector<double> values;
  for (std::string word; file >> word;) {
    values.push_back(number(word, path));
    if (static_cast<std::int64_t>(values.size()) > most_entries)
      refuse(path, "at most 2^28 numbers");
  }
  return values;
}

}  // namespace

ValueType TableSpec::type() const {
  switch (source) {
    case Source::ints:
    case Source::documents:
      return ValueType::index;
    case Source::bits:
      return ValueType::condition;
    case Source::file: {
      const std::vector<double> values = numbers_in(path);
      const bool whole = std::all_of(values.begin(), values.end(), [](double x) {
        return x == std::floor(x) && std::abs(x) < 0x1p31;
      });
      return whole ? ValueType::index : ValueType::real;
    }
    default:
      return ValueType::real;
  }
}

TableSpec parse_table_spec(std::string_view text) {
  if (text.size() > max_table_text || first_not_text(text) != std::string_view::npos)
    refuse(text, fmt::format("one line of at most {} bytes of UTF-8", max_table_text));
  const std::size_t open = text.find('['), close = text.find(']'), equals = text.find('=');
  if (open == std::string_view::npos || close == std::string_view::npos ||
      equals == std::string_view::npos || open > close || close > equals)
    refuse(text, "NAME[DIM,...]=SOURCE, such as slope[Hq]=uniform(0,0.5)");
  TableSpec spec;
  spec.name = trim(text.substr(0, open));
  if (!is_table_name(spec.name))
    refuse(text, fmt::format("a name of letters and digits that the language does not use, not {}",
                             shown(spec.name)));
  for (const std::string_view dim : split(text.substr(open + 1, close - open - 1), ','))
    spec.dims.emplace_back(dim);
  if (spec.dims.size() > max_table_rank)
    refuse(text, fmt::format("1 to {} extents", max_table_rank));
  for (const std::string& dim : spec.dims) extent(dim, Sizes{1, 1, 1, 1, 1}, spec);  // its syntax

  const std::string_view source = trim(text.substr(equals + 1));
  const std::string_view name = source.substr(0, source.find('('));
  const auto known = std::find_if(std::begin(sources), std::end(sources),
                                  [&](const SourceSyntax& s) { return s.name == trim(name); });
  if (known == std::end(sources)) {
    if (source.empty()) refuse(text, "a source after '='");
    spec.source = Source::file;
    spec.path = source;
    return spec;
  }
  spec.source = known->source;
  if (known->arguments == 0 && name.size() == source.size()) return spec;
  if (source.back() != ')') refuse(text, "')' at the end");
  const auto arguments =
      split(source.substr(name.size() + 1, source.size() - name.size() - 2), ',');
  if (static_cast<int>(arguments.size()) != known->arguments)
    refuse(text, fmt::format("{} argument(s) of {}", known->arguments, known->name));
  spec.low = number(arguments[0], text);
  if (known->arguments == 2) spec.high = number(arguments[1], text);
  if (known->arguments == 2 && spec.low > spec.high) refuse(text, "low <= high");
  if (spec.source == Source::ints &&
      (spec.low != std::floor(spec.low) || spec.high != std::floor(spec.high) ||
       std::max(std::abs(spec.low), std::abs(spec.high)) >= 0x1p30))
    refuse(text, "whole numbers below 2^30 in ints(low,high)");
  if (spec.source == Source::documents && !(spec.low >= 1)) refuse(text, "a length of at least 1");
  if (spec.source == Source::bits && !(spec.low >= 0 && spec.low <= 1))
    refuse(text, "a share from 0 to 1");
  return spec;
}

std::string to_text(const TableSpec& spec) {
  std::string text = fmt::format("{}[{}]=", spec.name, fmt::join(spec.dims, ","));
  if (spec.source == Source::file) return text + spec.path;
  for (const SourceSyntax& s : sources)
    if (s.source == spec.source) {
      text += s.name;
      if (s.arguments == 1) text += fmt::format("({})", spec.low);
      if (s.arguments == 2) text += fmt::format("({},{})", spec.low, spec.high);
    }
  return text;
}

std::vector<std::int64_t> extents_of(const TableSpec& spec, const Sizes& sizes) {
  std::vector<std::int64_t> extents;
  for (const std::string& dim : spec.dims) {
    extents.push_back(extent(dim, sizes, spec));
    if (extents.back() < 0)
      refuse(to_text(spec), fmt::format("no extent below zero, not {}", extents.back()));
    if (extents.back() > largest_extent)
      refuse(to_text(spec), fmt::format("extents below 2^31, not {}", extents.back()));
  }
  return extents;
}

TableStore::TableStore(const std::vector<TableSpec>& specs, const Sizes& sizes,
                       std::uint64_t seed) {
  memory_.reserve(specs.size());
  std::int64_t left = most_entries;
  for (const TableSpec& spec : specs) left -= size_of(spec, sizes, left);
  for (const TableSpec& spec : specs) {
    const std::vector<std::int64_t> extents = extents_of(spec, sizes);
    Table table{spec.name, spec.type(), static_cast<int>(extents.size()), nullptr, {}, {}};
    std::int64_t step = 1;
    for (std::size_t axis = extents.size(); axis-- > 0; step *= extents[axis]) {
      table.extents[axis] = extents[axis];
      table.strides[axis] = step;
    }
    fill(spec, extents, seed, memory_.emplace_back());
    table.data = memory_.back().data();
    tables_.add(std::move(table));
  }
}

void TableStore::fill(const TableSpec& spec, const std::vector<std::int64_t>& extents,
                      std::uint64_t seed, std::vector<std::byte>& memory) const {
  const ValueType type = spec.type();
  const std::int64_t count =
      std::accumulate(extents.begin(), extents.end(), std::int64_t{1}, std::multiplies<>());
  const std::size_t bytes = type == ValueType::condition ? 1 : 4;
  memory.resize(std::max<std::size_t>(1, static_cast<std::size_t>(count) * bytes));
  const auto put = [&](std::int64_t at, double value) {
    const auto store = [&](auto entry) {
      std::memcpy(memory.data() + at * sizeof entry, &entry, sizeof entry);
    };
    if (type == ValueType::condition)
      store(value != 0);
    else if (type == ValueType::index)
      store(static_cast<std::int32_t>(value));
    else
      store(static_cast<float>(value));
  };

  if (spec.source == Source::file) {
    const std::vector<double> values = numbers_in(spec.path);
    if (static_cast<std::int64_t>(values.size()) != count)
      refuse(to_text(spec), fmt::format("{} numbers in the file, not {}", count, values.size()));
    for (std::int64_t at = 0; at < count; ++at) put(at, values[at]);
    return;
  }
  std::vector<float> slopes;
  if (spec.source == Source::alibi && count > 0)
    slopes = alibi_slopes(static_cast<int>(extents.back())).values();

  const std::uint64_t stream = hash_of(seed, hash_of_text(spec.name));
  std::vector<std::int64_t> position(extents.size());
  double document = 0;
  for (std::int64_t at = 0; at < count; ++at) {
    std::uint64_t hash = stream;
    for (const std::int64_t p : position) hash = hash_of(hash, p);
    const double uniform = uniform_of(hash);
    switch (spec.source) {
      case Source::uniform:
        put(at, spec.low + (spec.high - spec.low) * uniform);
        break;
      case Source::dyadic:
        put(at, std::floor((spec.low + (spec.high - spec.low) * uniform) * 4) / 4);
        break;
      case Source::alibi:
        put(at, slopes[position.back()]);
        break;
      case Source::ints:
        put(at, spec.low + std::floor((spec.high - spec.low + 1) * uniform));
        break;
      case Source::bits:
        put(at, uniform < spec.low);
        break;
      case Source::documents:  // a new one starts with probability 1 / length
        if (position.back() == 0)
          document = 0;
        else if (uniform * spec.low < 1)
          ++document;
        put(at, document);
        break;
      case Source::file:
        break;
    }
    for (std::size_t axis = position.size(); axis-- > 0;) {
      if (++position[axis] < extents[axis]) break;
      position[axis] = 0;
    }
  }
}

}  // namespace attn::fuzz
