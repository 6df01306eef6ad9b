#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include "masks/causal.h"
#include "masks/document.h"
#include "masks/full.h"
#include "masks/window.h"
#include "mods/alibi.h"
#include "mods/checkerboard.h"
#include "mods/compose.h"
#include "mods/identity.h"
#include "mods/soft_cap.h"
#include "optimized/attention_call.h"
#include "optimized/gpu_timing.h"

/// Kernels with mods and masks known at compile time, for GPUs: what a user who writes a functor
/// gets. They are what the shapes of optimized/gpu_timing.h run. Those of typed_forward.cu and
/// typed_backward.cu are compiled by every build that has nvcc, and held to
/// optimized/cuda_budget.txt; those of timed_forward.cu and timed_backward.cu are compiled only
/// into attnproof_gpu.
namespace attn {

/// What the variants capture, in memory that the reader can reach.
struct GpuBenchTables {
  Captured<1> slope;                    ///< [Hq], of ALiBi
  Captured<1, std::int32_t> documents;  ///< [Skv], ids
};

/// The mod and the mask of a variant, as a pair.
template <GpuVariant variant>
auto functors_of([[maybe_unused]] const GpuBenchTables& tables) {
  if constexpr (variant == GpuVariant::full)
    return std::pair(identity(), full());
  else if constexpr (variant == GpuVariant::causal)
    return std::pair(identity(), causal());
  else if constexpr (variant == GpuVariant::soft_cap_alibi)
    return std::pair(then(alibi(tables.slope), soft_cap(gpu_bench_soft_cap)), causal());
  else if constexpr (variant == GpuVariant::window)
    return std::pair(identity(), window(gpu_bench_window - 1, 0));
  else if constexpr (variant == GpuVariant::documents)
    return std::pair(identity(), causal() && document(tables.documents));
  else
    return std::pair(checkerboard(), full());
}

/// Calls with(std::integral_constant<GpuVariant, variant>{}).
template <class With>
void with_variant(GpuVariant variant, With with) {
  using enum GpuVariant;
  switch (variant) {
    case full:
      return with(std::integral_constant<GpuVariant, full>{});
    case causal:
      return with(std::integral_constant<GpuVariant, causal>{});
    case soft_cap_alibi:
      return with(std::integral_constant<GpuVariant, soft_cap_alibi>{});
    case window:
      return with(std::integral_constant<GpuVariant, window>{});
    case documents:
      return with(std::integral_constant<GpuVariant, documents>{});
    case checkerboard:
      return with(std::integral_constant<GpuVariant, checkerboard>{});
  }
}

namespace cuda {

/// Queues one pass of a shape of this variant; the arguments are those of the row's own pass.
/// @throws std::invalid_argument if an argument does not fit, or no kernel of the shape's storage
///     type and head size was compiled.
template <GpuVariant variant>
void run_typed_forward(const GpuBench& shape, const GpuBenchTables& tables,
                       const AttentionArguments& call, const Implementation& row);
template <GpuVariant variant>
void run_typed_backward(const GpuBench& shape, const GpuBenchTables& tables,
                        const AttentionArguments& call, const Implementation& row);

}  // namespace cuda
}  // namespace attn
