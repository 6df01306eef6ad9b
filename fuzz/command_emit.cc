#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <stdexcept>

#include "fuzz/commands.h"
#include "fuzz/fill_context.h"
#include "fuzz/inputs.h"
#include "fuzz/safetensors.h"
#include "mods/lang/parse.h"
#include "mods/lang/tree_functor.h"

namespace attn::fuzz {
namespace {

namespace fs = std::filesystem;

using Shape = std::vector<std::int64_t>;

/// The score plus something that does not depend on it.
bool is_additive(const Expression& mod) {
  if (mod->op == Op::score) return true;
  const auto free = [](const Expression& e) { return !uses(e, Op::score); };
  if (mod->op == Op::add)
    return (free(mod->args[1]) && is_additive(mod->args[0])) ||
           (free(mod->args[0]) && is_additive(mod->args[1]));
  return mod->op == Op::subtract && free(mod->args[1]) && is_additive(mod->args[0]);
}

template <class T>
void append(std::vector<std::byte>& bytes, T x) {
  const auto* first = reinterpret_cast<const std::byte*>(&x);
  bytes.insert(bytes.end(), first, first + sizeof x);
}

NewArray array_of(const std::string& name, DType t, const Shape& shape,
                  const std::vector<double>& values) {
  NewArray array{name, file_name_of(t), shape, {}};
  for (const double x : values) switch (t) {
      case DType::f64:
        append(array.bytes, x);
        break;
      case DType::f32:
        append(array.bytes, static_cast<float>(x));
        break;
      case DType::f16:
        append(array.bytes, from_float<half>(static_cast<float>(x)).bits);
        break;
      case DType::bf16:
        append(array.bytes, from_float<bfloat16>(static_cast<float>(x)).bits);
        break;
    }
  return array;
}
template <int Rank>
NewArray array_of(const std::string& name, DType t, const Tensor<double, Rank>& x) {
  return array_of(name, t, Shape(x.extents().begin(), x.extents().end()), x.values());
}

NewArray array_of(const Table& table) {
  const char* dtype = table.type == ValueType::real    ? "F32"
                      : table.type == ValueType::index ? "I32"
                                                       : "BOOL";
  NewArray array{table.name, dtype, {}, {}};
  std::int64_t size = table.type == ValueType::condition ? 1 : 4;
  for (int axis = 0; axis < table.rank; ++axis) {
    array.shape.push_back(table.extents[axis]);
    size *= table.extents[axis];
  }
  const auto* first = static_cast<const std::byte*>(table.data);
  array.bytes.assign(first, first + size);
  return array;
}

/// What one case becomes: the tensors of its file, and what it says of itself.
struct Emitted {
  std::vector<NewArray> arrays;
  std::map<std::string, std::string> metadata;
};

/// The mask and, where the mod only adds to the score, what it adds, for every pair. Nothing if
/// that is no finite fp32 number.
std::optional<Emitted> materialised(const FillContext& f) {
  const Case& c = f.c;
  const Shape shape{c.b, c.hq, c.sq, c.skv};
  NewArray mask{mask_table, "U8", shape, {}}, bias{bias_table, "F32", shape, {}};
  const bool adds = is_additive(c.mod) && c.mod->op != Op::score;
  for (int b = 0; b < c.b; ++b)
    for (int h = 0; h < c.hq; ++h)
      for (int i = 0; i < c.sq; ++i)
        for (int j = 0; j < c.skv; ++j) {
          mask.bytes.push_back(static_cast<std::byte>(f.attends(b, h, i, j)));
          if (!adds) continue;
          const auto x = static_cast<float>(f.mod_at_zero(b, h, i, j));
          if (!std::isfinite(x)) return {};
          append(bias.bytes, x);
        }
  Emitted out{{mask}, {}};
  out.metadata["mod"] = adds ? fmt::format("score + {}[b, h, q, kv]", bias_table) : to_text(c.mod);
  out.metadata["mask"] = fmt::format("{}[b, h, q, kv]", mask_table);
  if (adds) out.arrays.push_back(bias);
  return out;
}

/// The file of a case; nothing if it cannot be said in a file.
std::optional<Emitted> emitted(const Case& c) {
  const TableStore store(c.tables, c.sizes(), c.seed);
  const TreeMod mod(c.mod, store.tables());
  const TreeMask mask(c.mask, store.tables());
  PassInputs in = make_inputs(c, mod, mask);
  std::optional<Emitted> out = materialised({c, QuestionsAbout<TreeMod, TreeMask>(mod, mask), in});
  if (!out) return {};
  const bool backward = implementation_named(c.implementation).pass == Pass::backward;
  const auto add = [&](NewArray array) { out->arrays.push_back(std::move(array)); };
  add(array_of("q", c.dtype, in.q));
  add(array_of("k", c.dtype, in.k));
  add(array_of("v", c.dtype, in.v));
  if (c.sink)
    add(array_of("sink", DType::f32, {c.hq}, std::vector<double>(in.sink.begin(), in.sink.end())));
  if (backward) {
    const StoredForwardResult forward = stored_forward_result(in, mod, mask, c.dtype);
    add(array_of("o", c.dtype, forward.o));
    add(array_of("lse", DType::f32, forward.lse));
    add(array_of("d_o", c.dtype, in.d_o));
    if (c.d_lse) add(array_of("d_lse", DType::f32, in.d_lse));
  }
  if (!is_additive(c.mod))
    for (const TableDeclaration& read : tables_read(c.mod)) {
      if (is_tensor_name(read.name) || read.name == mask_table || read.name == bias_table)
        return {};
      add(array_of(*store.tables().find(read.name)));
    }
  out->metadata[file_version_key] = file_version;
  out->metadata["case"] = to_text(c);
  out->metadata["pass"] = backward ? "backward" : "forward";
  out->metadata["scale"] = fmt::format("{}", in.scale);
  return out;
}

/// The rows whose problems another program can be asked to solve: dense tensors.
std::vector<std::string> rows_of_table(const EmitArguments& a) {
  std::vector<std::string> names;
  for (const std::string& name : a.implementations) {
    const Implementation& row = implementation_named(name);
    if (row.sequences != Sequences::dense || row.block_sparse)
      throw std::invalid_argument(
          fmt::format("--impl: '{}', expected one of plain tensors, such as flash_forward", name));
    names.emplace_back(row.name);
  }
  if (!names.empty()) return names;
  return {"flash_forward", "flash_backward", "flash_forward_fp32"};
}

/// The case, without what belongs to our own kernels; nothing if other programs cannot be asked it:
/// dropout is a matter of the random numbers, how far a NaN of K reaches, of the tiles, and many
/// machines flush numbers below the normal ones of fp32 to zero.
std::optional<Case> askable(Case c, bool all_mods) {
  const bool below_normal = c.fill == Fill::denormal && c.dtype != DType::f16;
  if (c.dropout != 0 || c.fill == Fill::nan_keys || below_normal) return {};
  if (!all_mods && !is_additive(c.mod)) return {};
  c.layout = Layout::bhsd;
  c.small_tile = true;
  c.row_max = false;
  return c;
}

}  // namespace

std::vector<std::string> required_outputs(bool backward) {
  if (backward) return {"dq", "dk", "dv"};
  return {"o", "lse"};
}

int emit_command(const EmitArguments& a) {
  Fixed fixed;
  fixed.implementations = rows_of_table(a);
  if (!a.dtype.empty()) fixed.dtype = parse_dtype(a.dtype);
  std::error_code error;
  fs::create_directories(a.directory, error);
  if (error || !fs::is_directory(a.directory) || !fs::is_empty(a.directory, error) || error)
    throw std::invalid_argument(
        fmt::format("'{}': expected an empty folder, or one that can be made", a.directory));

  nlohmann::json list = nlohmann::json::array();
  const std::uint64_t most_draws = 1000 * a.cases + 10000;
  for (std::uint64_t index = 0; list.size() < a.cases; ++index) {
    if (index == most_draws)
      throw std::runtime_error(
          fmt::format("only {} of {} cases after {} draws", list.size(), a.cases, most_draws));
    const std::optional<Case> c = askable(drawn_case(fixed, a.seed, index).value(), a.all_mods);
    if (!c) continue;
    std::optional<Emitted> out;
    try {
      out = emitted(*c);
    } catch (const std::invalid_argument&) {
      continue;  // a case that the contract refuses
    }
    if (!out) continue;
    const std::string name = fmt::format("case_{:05}", list.size());
    const fs::path path = fs::path(a.directory) / name;
    write_safetensors(path.string() + ".safetensors", out->arrays, out->metadata);
    const bool backward = out->metadata["pass"] == "backward";
    nlohmann::json entry = {{"inputs", name + ".safetensors"},
                            {"outputs", name + ".out.safetensors"},
                            {"required", required_outputs(backward)},
                            {"optional", {"row_max"}}};
    if (backward) entry["optional"] = {"o", "lse", "row_max"};
    for (const auto& [key, value] : out->metadata) entry[key] = value;
    list.push_back(entry);
  }
  write_file(
      (fs::path(a.directory) / "manifest.json").string(),
      nlohmann::json{{file_version_key, file_version}, {"seed", a.seed}, {"cases", list}}.dump(2) +
          "\n");
  fmt::print("{} cases in {}: manifest.json says what is to be written for each\n", list.size(),
             a.directory);
  return 0;
}

}  // namespace attn::fuzz
