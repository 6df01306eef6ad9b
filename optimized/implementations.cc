#include "optimized/implementations.h"

#include <algorithm>
#include <stdexcept>

// The units of each target (optimized/flash_forward_unit.cc) define these in their own namespace.
#define ATTN_DECLARE_TARGET(target)                                 \
  namespace target {                                                \
  std::string_view run_flash_forward(half, const ForwardCall&);     \
  std::string_view run_flash_forward(bfloat16, const ForwardCall&); \
  }
namespace attn {
ATTN_DECLARE_TARGET(warp)
ATTN_DECLARE_TARGET(thread)
ATTN_DECLARE_TARGET(warp_planted)
#undef ATTN_DECLARE_TARGET

namespace {

constexpr int largest_head = 128;

std::optional<std::string> flash_refusal(const Problem& p) {
#if defined(ATTN_FIRST_INSTANCE_ONLY)
  if (p.dtype != DType::f16) return "dtype: this build has the fp16 kernels only";
#endif
  if (p.dtype != DType::f16 && p.dtype != DType::bf16)
    return std::string("dtype: ") + name_of(p.dtype) + ", expected fp16 or bf16";
  if (std::max(p.d, p.dv) > largest_head)
    return "head size: D = " + std::to_string(p.d) + ", Dv = " + std::to_string(p.dv) +
           ", expected at most " + std::to_string(largest_head);
  return std::nullopt;
}

/// Calls `run(half{})` or `run(bfloat16{})`.
template <class Run>
std::string_view with_storage(const ForwardCall& call, Run run) {
  const Problem problem = make_problem(call.q, call.k, call.v, call.options);
  if (const auto refusal = flash_refusal(problem)) throw std::invalid_argument(*refusal);
#if defined(ATTN_FIRST_INSTANCE_ONLY)
  return run(half{});
#else
  return problem.dtype == DType::f16 ? run(half{}) : run(bfloat16{});
#endif
}

std::string_view run_flash(const ForwardCall& call, Engine engine) {
  return with_storage(call, [&](auto storage) {
    return engine == Engine::warp ? warp::run_flash_forward(storage, call)
                                  : thread::run_flash_forward(storage, call);
  });
}

std::string_view run_flash_planted(const ForwardCall& call) {
  return with_storage(call,
                      [&](auto storage) { return warp_planted::run_flash_forward(storage, call); });
}

constexpr Implementation table[] = {
    {.name = "flash_forward",
     .what = "FlashAttention-2 forward on sm_80 tensor cores; fp16 and bf16; any mod and mask",
     .tiles = "128x64, small 64x32",
     .deterministic = true,
     .refusal = flash_refusal,
     .numerics = flash_numerics,
     .run = run_flash,
     .run_planted = run_flash_planted},
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
