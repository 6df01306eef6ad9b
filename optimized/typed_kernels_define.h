#pragma once

#include <stdexcept>

#include "optimized/flash_backward_launch.h"
#include "optimized/flash_forward_launch.h"
#include "optimized/typed_kernels.h"

/// The definitions behind typed_kernels.h, for the units that instantiate them.
namespace attn {
namespace cuda {

/// The storage type that kernels of a variant are compiled for.
template <GpuVariant variant>
using TypedStorage = std::conditional_t<variant == GpuVariant::checkerboard, half, bfloat16>;
/// The head sizes.
constexpr bool has_head_64(GpuVariant variant) {
  return variant == GpuVariant::full || variant == GpuVariant::causal ||
         variant == GpuVariant::checkerboard;
}
constexpr bool has_head_128(GpuVariant variant) { return variant != GpuVariant::checkerboard; }

/// Calls run(std::integral_constant<int, head>{}) with the head size that the shape needs.
template <GpuVariant variant, class Run>
void with_compiled_head(const GpuBench& shape, Run run) {
  if (shape.dtype == dtype_of<TypedStorage<variant>>) {
    if constexpr (has_head_64(variant))
      if (shape.d <= 64) return run(std::integral_constant<int, 64>{});
    if constexpr (has_head_128(variant))
      if (shape.d <= 128) return run(std::integral_constant<int, 128>{});
  }
  throw std::invalid_argument("shape: " + shape.name() + " has no compiled kernel");
}

template <GpuVariant variant>
void run_typed_forward(const GpuBench& shape, const GpuBenchTables& tables,
                       const AttentionArguments& call, const Implementation& row) {
  const auto functors = functors_of<variant>(tables);
  using T = TypedStorage<variant>;
  const CheckedCall checked = check_call(call, row);
  FlashForwardLaunch<T, std::remove_const_t<decltype(functors.first)>,
                     std::remove_const_t<decltype(functors.second)>>
      launch(call, checked, row, functors.first, functors.second);
  if constexpr (variant == GpuVariant::full)
    if (shape.decode && shape.d <= 128)
      return launch.template run<FlashTile<64, 32, 128>>(multiprocessors());
  with_compiled_head<variant>(shape, [&](auto head) {
    launch.template run<FlashTile<128, 64, decltype(head)::value>>(multiprocessors());
  });
}

template <GpuVariant variant>
void run_typed_backward(const GpuBench& shape, const GpuBenchTables& tables,
                        const AttentionArguments& call, const Implementation& row) {
  const auto functors = functors_of<variant>(tables);
  using T = TypedStorage<variant>;
  const CheckedCall checked = check_call(call, row);
  FlashBackwardLaunch<T, std::remove_const_t<decltype(functors.first)>,
                      std::remove_const_t<decltype(functors.second)>>
      launch(call, checked, functors.first, functors.second);
  with_compiled_head<variant>(
      shape, [&](auto head) { launch.template run<BackwardTile<decltype(head)::value>>(); });
}

}  // namespace cuda
}  // namespace attn
