#include "optimized/implementations.h"

#include <algorithm>
#include <stdexcept>

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

}  // namespace

const char* name_of(Engine engine) { return engine == Engine::warp ? "warp" : "thread"; }

std::span<const Implementation> implementations() { return table; }

const Implementation& implementation_named(std::string_view name) {
  std::string known;
  for (const Implementation& row : table) {
    if (row.name == name) return row;
    known += (known.empty() ? "" : ", ") + std::string(row.name);
  }
  throw std::invalid_argument("implementation: '" + std::string(name) + "', expected one of " +
                              known);
}

}  // namespace attn
