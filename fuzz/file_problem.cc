#include "fuzz/file_problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <utility>

#include "fuzz/case_sequences.h"
#include "fuzz/table_spec.h"
#include "fuzz/text.h"
#include "masks/registry.h"
#include "mods/lang/parse.h"
#include "mods/lang/tree_functor.h"
#include "mods/registry.h"
#include "reference/problem.h"

namespace attn::fuzz {
namespace {

/// Pairs of all heads that share a key/value head: the bounds keep several numbers of each.
constexpr std::int64_t most_pairs = std::int64_t{1} << 24;
/// Of an output. A file whose inputs hold nothing may speak of any number.
constexpr double most_elements = 1 << 28;

constexpr const char* tensor_names[] = {"q",     "k",  "v",  "o",  "lse",  "row_max", "d_o",
                                        "d_lse", "dq", "dk", "dv", "sink", "d_sink"};

using Extents = std::array<std::int64_t, 4>;

template <class T>
T read(const std::byte* at) {
  T x;
  std::memcpy(&x, at, sizeof x);
  return x;
}

double number_at(const StoredArray& array, std::int64_t n) {
  const std::byte* data = array.bytes.data();
  if (array.dtype == "F32") return read<float>(data + 4 * n);
  if (array.dtype == "F16") return to_float(read<half>(data + 2 * n));
  if (array.dtype == "BF16") return to_float(read<bfloat16>(data + 2 * n));
  if (array.dtype == "I32") return read<std::int32_t>(data + 4 * n);
  if (array.dtype == "I64") return static_cast<double>(read<std::int64_t>(data + 8 * n));
  return read<std::uint8_t>(data + n);  // BOOL, U8
}

std::optional<ValueType> table_type(const std::string& dtype) {
  for (const char* real : {"F32", "F16", "BF16"})
    if (dtype == real) return ValueType::real;
  if (dtype == "I32" || dtype == "I64") return ValueType::index;
  if (dtype == "BOOL" || dtype == "U8") return ValueType::condition;
  return {};
}

/// The array as a table, if it can be one.
void add_table(const Safetensors& file, const StoredArray& array, FileProblem& p) {
  const std::optional<ValueType> type = table_type(array.dtype);
  const auto rank = static_cast<int>(array.shape.size());
  if (!type || rank < 1 || rank > max_table_rank || !is_table_name(array.name)) return;
  Table table{array.name, *type, rank, nullptr, {}, {}};
  std::int64_t step = 1;
  for (int axis = rank; axis-- > 0; step *= array.shape[axis]) {
    table.extents[axis] = array.shape[axis];
    table.strides[axis] = step;
  }
  const std::size_t width = *type == ValueType::condition ? 1 : 4;
  const auto memory =
      std::make_shared<std::vector<std::byte>>(std::max<std::int64_t>(1, step) * width);
  for (std::int64_t n = 0; n < step; ++n) {
    const double x = number_at(array, n);
    const auto put = [&](auto entry) { std::memcpy(memory->data() + n * width, &entry, width); };
    if (*type == ValueType::real) {
      put(static_cast<float>(x));
    } else if (*type == ValueType::condition) {
      put(x != 0);
    } else {
      if (std::abs(x) > std::numeric_limits<std::int32_t>::max())
        throw std::invalid_argument(
            fmt::format("{}: {}: entry {} is {}, expected 32 bits", file.what(), array.name, n, x));
      put(static_cast<std::int32_t>(x));
    }
  }
  table.data = memory->data();
  p.memory.push_back(memory);
  p.tables.add(std::move(table));
}

const StoredArray& required(const Safetensors& file, const char* name) {
  if (const StoredArray* array = file.find(name)) return *array;
  throw std::invalid_argument(
      fmt::format("{}: no tensor '{}', expected q, k and v at least", file.what(), name));
}

DType storage_of(const Safetensors& file, const StoredArray& array) {
  for (const DType t : {DType::f32, DType::f16, DType::bf16})
    if (array.dtype == file_name_of(t)) return t;
  throw std::invalid_argument(
      fmt::format("{}: {} is {}, expected F32, F16 or BF16", file.what(), array.name, array.dtype));
}

TensorInfo info_of(const Safetensors& file, const StoredArray& array, const char* name) {
  if (array.shape.size() != 4)
    throw std::invalid_argument(fmt::format("{}: {} has shape [{}], expected [B, H, S, D]",
                                            file.what(), name, fmt::join(array.shape, ", ")));
  TensorInfo info;
  info.name = name;
  info.data = array.bytes.data();
  info.dtype = storage_of(file, array);
  std::copy(array.shape.begin(), array.shape.end(), info.extents.begin());
  info.strides = contiguous_strides(info.extents);
  return info;
}

/// The shape, checked as the contract says.
Case shape_in(const Safetensors& file, const FileDescription& d) {
  const StoredArray &q = required(file, "q"), &k = required(file, "k"), &v = required(file, "v");
  Options options;
  options.scale = d.scale;
  Problem problem;
  try {
    problem =
        make_problem(info_of(file, q, "q"), info_of(file, k, "k"), info_of(file, v, "v"), options);
  } catch (const std::invalid_argument& refusal) {
    throw std::invalid_argument(fmt::format("{}: {}", file.what(), refusal.what()));
  }
  Case c;
  c.b = problem.b, c.hq = problem.hq, c.hkv = problem.hkv;
  c.sq = problem.sq, c.skv = problem.skv, c.d = problem.d, c.dv = problem.dv;
  c.dtype = problem.dtype;
  c.scale = d.scale;
  c.implementation = file.find("d_o") ? FileProblem::backward_name : "flash_forward";
  const double elements = static_cast<double>(std::max(1, c.b)) * std::max(1, c.hq) *
                          std::max({1, c.sq, c.skv}) * std::max(c.d, c.dv);
  if (elements > most_elements)
    throw std::invalid_argument(
        fmt::format("{}: tensors of up to {:.3g} elements, expected at most {:.3g}", file.what(),
                    elements, most_elements));
  const std::int64_t group = c.hkv > 0 ? c.hq / c.hkv : 1;
  if (group * c.sq * c.skv > most_pairs)
    throw std::invalid_argument(
        fmt::format("{}: {} query heads a key head x {} queries x {} keys, expected at most {} "
                    "pairs: keep fewer heads or rows",
                    file.what(), group, c.sq, c.skv, most_pairs));
  return c;
}

void read_tensors(const Safetensors& file, FileProblem& p) {
  const Case& c = p.c;
  const Extents o{c.b, c.hq, c.sq, c.dv}, rows{c.b, c.hq, c.sq, 1};
  const auto load = [&](const char* name, DType t, const Extents& e, int rank = 4) {
    return numbers_in(file, required(file, name), t, e, rank);
  };
  p.in.sizes = c.sizes();
  p.in.scale = c.scale.value_or(1 / std::sqrt(static_cast<double>(c.d)));
  p.in.sequences = logical_sequences(c);
  p.in.q = load("q", c.dtype, {c.b, c.hq, c.sq, c.d});
  p.in.k = load("k", c.dtype, {c.b, c.hkv, c.skv, c.d});
  p.in.v = load("v", c.dtype, {c.b, c.hkv, c.skv, c.dv});
  if (file.find("sink")) {
    const Tensor<double, 4> sink = load("sink", DType::f32, {c.hq, 1, 1, 1}, 1);
    p.in.sink.assign(sink.values().begin(), sink.values().end());
  }
  p.c.sink = !p.in.sink.empty();
  if (!p.is_backward()) return;
  p.in.d_o = load("d_o", c.dtype, o);
  p.in.d_lse = Tensor<double, 3>({c.b, c.hq, c.sq});
  if (file.find("d_lse")) p.in.d_lse.values() = load("d_lse", DType::f32, rows, 3).values();
  if (!file.find("o") || !file.find("lse")) return;
  Tensor<double, 3> lse({c.b, c.hq, c.sq});
  lse.values() = load("lse", DType::f32, rows, 3).values();
  p.forward_result = StoredForwardResult{load("o", c.dtype, o), std::move(lse)};
}

/// A single word that is none of the language: a name of the registry.
bool is_entry_name(const std::string& text) {
  const auto in_name = [](unsigned char c) { return std::isalnum(c) || c == '_'; };
  return std::all_of(text.begin(), text.end(), in_name) &&
         is_table_name(std::string_view(text).substr(0, max_table_name));
}

ParameterValues parameters_in(const std::vector<std::string>& texts) {
  ParameterValues values;
  for (const std::string& text : texts) {
    const std::size_t equals = std::min(text.find('='), text.size());
    const char *first = text.data() + std::min(equals + 1, text.size()),
               *last = text.data() + text.size();
    double value = 0;
    const auto [end, error] = std::from_chars(first, last, value);
    if (equals == 0 || error != std::errc{} || end != last)
      throw std::invalid_argument(
          fmt::format("--param: '{}', expected NAME=NUMBER such as width=8", text));
    values[text.substr(0, equals)] = value;
  }
  return values;
}

/// Those that the entry takes; they are taken off `left`.
ParameterValues taken_by(const EntryText& entry, const ParameterValues& all,
                         ParameterValues& left) {
  ParameterValues taken;
  for (const Parameter& parameter : entry.parameters)
    if (const auto found = all.find(parameter.name); found != all.end()) {
      taken.insert(*found);
      left.erase(parameter.name);
    }
  return taken;
}

/// The expression of an entry of a registry, over tables of the file.
template <class Entry, class Make, class Parse>
Expression expression_of(const Entry& entry, Make make, Parse parse, const Sizes& sizes,
                         const ParameterValues& values, const Tables& tables) {
  const auto example = make(entry, sizes, values, Tables());  // tells which tables it reads
  Tables given;
  for (const Table& needed : example.tables().all()) {
    const Table* found = tables.find(needed.name);
    if (!found)
      throw std::invalid_argument(fmt::format(
          "{}: reads a table '{}' of {} axes ({}), expected a tensor of that name in the file, or "
          "--table '{}[...]=...'",
          entry.name, needed.name, needed.rank, name_of(needed.type), needed.name));
    given.add(*found);
  }
  return parse(make(entry, sizes, values, given).expression(), given.declarations());
}

void read_functors(const FileDescription& d, FileProblem& p) {
  const ParameterValues all = parameters_in(d.parameters);
  ParameterValues left = all;
  const Sizes sizes = p.c.sizes();
  const auto declared = p.tables.declarations();
  if (is_entry_name(d.mod)) {
    const ModEntry& entry = mod_named(d.mod);
    p.mod = expression_of(entry, make_mod, parse_mod, sizes, taken_by(entry, all, left), p.tables);
  } else {
    p.mod = parse_mod(d.mod, declared);
  }
  if (is_entry_name(d.mask)) {
    const MaskEntry& entry = mask_named(d.mask);
    p.mask =
        expression_of(entry, make_mask, parse_mask, sizes, taken_by(entry, all, left), p.tables);
  } else {
    p.mask = parse_mask(d.mask, declared);
  }
  if (!left.empty())
    throw std::invalid_argument(
        fmt::format("--param: '{}', expected a parameter of the mask or the mod, which are '{}' "
                    "and '{}'",
                    left.begin()->first, d.mask, d.mod));
  p.c.mod = p.mod, p.c.mask = p.mask;
  check_functors(TreeMod(p.mod, p.tables), TreeMask(p.mask, p.tables), p.in.sequences);
}

}  // namespace

const char* file_name_of(DType t) {
  switch (t) {
    case DType::f64:
      return "F64";
    case DType::f32:
      return "F32";
    case DType::f16:
      return "F16";
    case DType::bf16:
      return "BF16";
  }
  return "?";
}

bool is_tensor_name(const std::string& name) {
  return std::find(std::begin(tensor_names), std::end(tensor_names), name) !=
         std::end(tensor_names);
}

Tensor<double, 4> numbers_in(const Safetensors& file, const StoredArray& array, DType expected,
                             const Extents& extents, int rank) {
  const std::vector<std::int64_t> shape(extents.begin(), extents.begin() + rank);
  if (array.dtype != file_name_of(expected) || array.shape != shape)
    throw std::invalid_argument(fmt::format("{}: {} is {} [{}], expected {} [{}]", file.what(),
                                            array.name, array.dtype, fmt::join(array.shape, ", "),
                                            file_name_of(expected), fmt::join(shape, ", ")));
  Tensor<double, 4> x(extents);
  for (std::size_t n = 0; n < x.values().size(); ++n)
    x.values()[n] = number_at(array, static_cast<std::int64_t>(n));
  return x;
}

FileProblem read_problem(const Safetensors& file, const FileDescription& description) {
  FileProblem p;
  p.c = shape_in(file, description);
  read_tensors(file, p);
  std::vector<TableSpec> specs;
  for (const std::string& text : description.tables) specs.push_back(parse_table_spec(text));
  const auto made = std::make_shared<const TableStore>(specs, p.c.sizes(), 0);
  p.memory.push_back(made);
  for (const Table& table : made->tables().all()) p.tables.add(table);
  for (const StoredArray& array : file.arrays())
    if (!is_tensor_name(array.name)) add_table(file, array, p);
  read_functors(description, p);
  return p;
}

FileDescription described_by(const Safetensors& file) {
  const std::string& version = file.metadata(file_version_key);
  if (version != file_version)
    throw std::invalid_argument(
        fmt::format("{}: of version {}, expected '{}'", file.what(), shown(version), file_version));
  FileDescription d;
  d.mod = file.metadata("mod");
  d.mask = file.metadata("mask");
  const std::string& text = file.metadata("scale");
  double scale = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), scale);
  if (error != std::errc{} || end != text.data() + text.size())
    throw std::invalid_argument(
        fmt::format("{}: scale {}, expected a number", file.what(), shown(text)));
  d.scale = scale;
  return d;
}

}  // namespace attn::fuzz
