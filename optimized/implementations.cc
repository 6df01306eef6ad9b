#include "optimized/implementations.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <stdexcept>
#include <utility>
#include <vector>

#include "mods/lang/parse.h"

// The units of each target (optimized/*_unit.cc) define these in their own namespace.
#define ATTN_DECLARE_TARGET(target)                                                           \
  namespace target {                                                                          \
  std::string_view run_flash_forward(half, const AttentionCall&, const Implementation&);      \
  std::string_view run_flash_forward(bfloat16, const AttentionCall&, const Implementation&);  \
  std::string_view run_flash_backward(half, const AttentionCall&, const Implementation&);     \
  std::string_view run_flash_backward(bfloat16, const AttentionCall&, const Implementation&); \
  std::string_view run_fp32_forward(const AttentionCall&, const Implementation&);             \
  std::string_view run_tf32_forward(const AttentionCall&, const Implementation&);             \
  }
namespace attn {
ATTN_DECLARE_TARGET(warp)
ATTN_DECLARE_TARGET(thread)
ATTN_DECLARE_TARGET(warp_planted)
#undef ATTN_DECLARE_TARGET

namespace {

std::optional<std::string> head_refusal(const Problem& p, int largest) {
  if (std::max(p.d, p.dv) <= largest) return std::nullopt;
  return "head size: D = " + std::to_string(p.d) + ", Dv = " + std::to_string(p.dv) +
         ", expected at most " + std::to_string(largest);
}

std::optional<std::string> flash_refusal(const Problem& p) {
#if defined(ATTN_FIRST_INSTANCE_ONLY)
  if (p.dtype != DType::f16) return "dtype: this build has the fp16 kernels only";
#endif
  if (p.dtype != DType::f16 && p.dtype != DType::bf16)
    return std::string("dtype: ") + name_of(p.dtype) + ", expected fp16 or bf16";
#if defined(ATTN_FIRST_INSTANCE_ONLY)
  return head_refusal(p, 64);
#endif
  return head_refusal(p, 256);
}

std::optional<std::string> fp32_refusal(const Problem& p) {
  if (p.dtype != DType::f32) return std::string("dtype: ") + name_of(p.dtype) + ", expected fp32";
  return head_refusal(p, 256);
}

/// Plain fp32: nothing is rounded but what fp32 rounds.
Numerics fp32_numerics(DType storage) { return {.storage = storage, .tensor_core = false}; }

/// TF32: Q, K, P and V lose 13 bits on their way into a product.
Numerics tf32_numerics(DType storage) {
  return {.storage = storage, .input_rounding = 0x1p-11, .probability_rounding = 0x1p-11};
}

/// Decode is a forward pass that may come in parts.
Numerics decode_numerics(DType storage) {
  Numerics may = flash_numerics(storage);
  may.most_splits = most_splits;
  return may;
}

/// Calls `run(half{})` or `run(bfloat16{})`.
template <class Run>
std::string_view with_storage(const AttentionCall& call, Run run) {
#if !defined(ATTN_FIRST_INSTANCE_ONLY)
  if (call.q.dtype == DType::bf16) return run(bfloat16{});
#endif
  if (call.q.dtype == DType::f16) return run(half{});
  throw std::invalid_argument(std::string("q: ") + name_of(call.q.dtype) +
                              ", expected fp16 or bf16");
}

/// Of one target, as a function of a call and a row.
#define ATTN_TARGET_RUN(target, pass)                                                          \
  [](const AttentionCall& call, const Implementation& row) {                                   \
    return with_storage(call,                                                                  \
                        [&](auto storage) { return target::run_##pass(storage, call, row); }); \
  }
#define ATTN_TARGET_RUN_FP32(target, pass) \
  [](const AttentionCall& call, const Implementation& row) { return target::run_##pass(call, row); }
#define ATTN_RUN(pass)                                                          \
  .warp = ATTN_TARGET_RUN(warp, pass), .thread = ATTN_TARGET_RUN(thread, pass), \
  .warp_planted = ATTN_TARGET_RUN(warp_planted, pass)

#define ATTN_RUN_FLOAT(pass)                                                              \
  .warp = ATTN_TARGET_RUN_FP32(warp, pass), .thread = ATTN_TARGET_RUN_FP32(thread, pass), \
  .warp_planted = ATTN_TARGET_RUN_FP32(warp_planted, pass)

constexpr TileSize small_tile{64, 32}, large_tile{128, 64};

constexpr Implementation table[] = {
    {.name = "flash_forward",
     .what = "FlashAttention-2 forward on sm_80 tensor cores; fp16 and bf16; any mod and mask",
     .pass = Pass::forward,
     .production = large_tile,
     .small = small_tile,
     .refusal = flash_refusal,
     .numerics = flash_numerics,
     ATTN_RUN(flash_forward)},
    {.name = "flash_backward",
     .what = "its gradients: dQ, dK, dV, of captured tensors and of the sink; no atomics on floats",
     .pass = Pass::backward,
     .production = small_tile,
     .small = small_tile,
     .refusal = flash_refusal,
     .numerics = flash_numerics,
     ATTN_RUN(flash_backward)},
    {.name = "block_sparse_forward",
     .what = "flash_forward that visits the blocks of a block mask, and asks in partial ones only",
     .pass = Pass::forward,
     .block_sparse = true,
     .production = large_tile,
     .small = small_tile,
     .refusal = flash_refusal,
     .numerics = flash_numerics,
     ATTN_RUN(flash_forward)},
    {.name = "block_sparse_backward",
     .what = "flash_backward that visits the blocks of a block mask, for dK and dV transposed",
     .pass = Pass::backward,
     .block_sparse = true,
     .production = small_tile,
     .small = small_tile,
     .refusal = flash_refusal,
     .numerics = flash_numerics,
     ATTN_RUN(flash_backward)},
    {.name = "packed_forward",
     .what = "flash_forward of sequences one after another (varlen)",
     .pass = Pass::forward,
     .sequences = Sequences::packed,
     .production = large_tile,
     .small = small_tile,
     .refusal = flash_refusal,
     .numerics = flash_numerics,
     ATTN_RUN(flash_forward)},
    {.name = "packed_backward",
     .what = "flash_backward of sequences one after another (varlen)",
     .pass = Pass::backward,
     .sequences = Sequences::packed,
     .production = small_tile,
     .small = small_tile,
     .refusal = flash_refusal,
     .numerics = flash_numerics,
     ATTN_RUN(flash_backward)},
    {.name = "decode",
     .what = "few queries on a cache: keys split, the heads of a group in one tile, parts merged",
     .pass = Pass::forward,
     .sequences = Sequences::cached,
     .production = large_tile,
     .small = small_tile,
     .refusal = flash_refusal,
     .numerics = decode_numerics,
     ATTN_RUN(flash_forward)},
    {.name = "decode_paged",
     .what = "decode on a cache in pages of any size, in any order",
     .pass = Pass::forward,
     .sequences = Sequences::paged,
     .production = large_tile,
     .small = small_tile,
     .refusal = flash_refusal,
     .numerics = decode_numerics,
     ATTN_RUN(flash_forward)},
    {.name = "flash_forward_fp32",
     .what = "forward in fp32 by plain fused multiply-adds",
     .pass = Pass::forward,
     .production = small_tile,
     .small = small_tile,
     .refusal = fp32_refusal,
     .numerics = fp32_numerics,
     ATTN_RUN_FLOAT(fp32_forward)},
    {.name = "flash_forward_tf32",
     .what = "forward of fp32 tensors on tensor cores, products in TF32",
     .pass = Pass::forward,
     .production = small_tile,
     .small = small_tile,
     .refusal = fp32_refusal,
     .numerics = tf32_numerics,
     ATTN_RUN_FLOAT(tf32_forward)},
};

/// The shipped rows and those that were added.
std::vector<Implementation>& rows() {
  static std::vector<Implementation> rows(std::begin(table), std::end(table));
  return rows;
}

std::string_view run_build(Implementation::Run build, const char* target, const AttentionCall& call,
                           const Implementation& row) {
  if (build == nullptr)
    throw std::invalid_argument("engine: " + std::string(target) + ", but " +
                                std::string(row.name) + " has no build for it");
  return build(call, row);
}

void require(bool given, const Implementation& row, const char* member, const std::string& what) {
  if (!given)
    throw std::invalid_argument("implementation '" + std::string(row.name) + "': " + member + ": " +
                                what);
}

/// One that a case line can name.
bool is_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(),
                                      [](unsigned char c) { return std::isalnum(c) || c == '_'; });
}

std::string text_of(TileSize tile) {
  return std::to_string(tile.q) + "x" + std::to_string(tile.kv);
}

template <class Parse>
void require_expression(std::string_view text, const Implementation& row, const char* member,
                        Parse parse) {
  if (text.empty()) return;
  try {
    parse();
  } catch (const std::invalid_argument& error) {
    require(false, row, member, error.what());
  }
}

}  // namespace

const char* name_of(Engine engine) { return engine == Engine::warp ? "warp" : "thread"; }

std::string_view Implementation::run(const AttentionCall& call, Engine engine) const {
  return run_build(engine == Engine::warp ? warp : thread, name_of(engine), call, *this);
}

std::string_view Implementation::run_planted(const AttentionCall& call) const {
  return run_build(warp_planted, "warp_planted", call, *this);
}

std::span<const Implementation> implementations() { return rows(); }

std::span<const Implementation> shipped_implementations() {
  return implementations().first(std::size(table));
}

void add_implementation(const Implementation& row) {
  require(is_name(row.name), row, "name", "expected letters, digits and underscores");
  for (const Implementation& other : rows()) require(other.name != row.name, row, "name", "taken");
  require(row.numerics, row, "numerics", "none, expected what it may round");
  require(row.refusal, row, "refusal", "none, expected why it does not take a problem");
  require(row.warp || row.thread, row, "run",
          "none, expected a build for the warp or thread engine");
  for (const auto& [tile, member] : {std::pair(row.production, "production"), {row.small, "small"}})
    require(tile.q > 0 && tile.kv > 0, row, member,
            text_of(tile) + ", expected the queries and keys of a tile");
  require_expression(row.mod, row, "mod", [&] { parse_mod(row.mod); });
  require_expression(row.mask, row, "mask", [&] { parse_mask(row.mask); });
  rows().push_back(row);
}

const Implementation& implementation_named(std::string_view name) {
  std::string known;
  for (const Implementation& row : rows()) {
    if (row.name == name) return row;
    known += (known.empty() ? "" : ", ") + std::string(row.name);
  }
  throw std::invalid_argument("implementation: '" + std::string(name) + "', expected one of " +
                              known);
}

}  // namespace attn
