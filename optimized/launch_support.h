#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "mods/lang/captured_tensors.h"
#include "optimized/attention_call.h"
#include "optimized/dropout.h"
#include "optimized/registered_memory.h"
#include "optimized/source_plan.h"
#include "optimized/tile.h"
#include "optimized/workspace.h"

// A unit compiles kernels for head sizes up to this: 64, 128 or 256. Fewer compile faster.
#if !defined(ATTN_LARGEST_HEAD)
#define ATTN_LARGEST_HEAD 256
#endif

/// What the host does between a checked call and a kernel.
namespace attn {

/// Blocks of a grid's first axis.
/// @throws std::invalid_argument if there are 2^31 or more.
inline int grid_blocks(std::int64_t blocks) {
  if (blocks > std::numeric_limits<std::int32_t>::max())
    throw std::invalid_argument("q: " + std::to_string(blocks) +
                                " thread blocks, expected fewer than 2^31");
  return static_cast<int>(blocks);
}
/// Tiles that hold `rows` rows.
inline std::int64_t tiles_of(std::int64_t rows, int tile) { return (rows + tile - 1) / tile; }

/// True if every row of the view starts on 16 bytes and holds whole 16-byte chunks.
template <class T>
bool rows_are_vectors(const TensorView<T, 4>& x) {
  constexpr std::int64_t chunk = 16 / sizeof(T);
  return x.strides[3] == 1 && x.extents[3] % chunk == 0 && x.strides[0] % chunk == 0 &&
         x.strides[1] % chunk == 0 && x.strides[2] % chunk == 0 &&
         reinterpret_cast<std::uintptr_t>(x.data) % 16 == 0;
}

inline namespace ATTN_TARGET {

/// @throws std::invalid_argument if this unit has no kernel for the head sizes of a problem.
inline void check_compiled_head(const Problem& p) {
  if (p.d > ATTN_LARGEST_HEAD || p.dv > ATTN_LARGEST_HEAD)
    throw std::invalid_argument("head size: D = " + std::to_string(p.d) +
                                ", Dv = " + std::to_string(p.dv) + ", expected at most " +
                                std::to_string(ATTN_LARGEST_HEAD) + ", as this unit was compiled");
}

/// Of the device that launches go to; the CPU engines pretend to be an H100.
inline int multiprocessors() {
#if defined(ATTN_ENGINE_CUDA)
  int device = 0, count = 0;
  if (cudaGetDevice(&device) != cudaSuccess ||
      cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device) != cudaSuccess)
    throw std::runtime_error("multiprocessors: there is no CUDA device");
  return count;
#else
  return 132;
#endif
}

/// A tensor [B, H, S, D] as kernels take it.
template <class T>
HeadRows<T> head_rows(const TensorInfo& info) {
  const auto view = view_of<T, 4>(info);
  return {view, rows_are_vectors(view)};
}

/// The dropout of a call as kernels take it.
inline KernelDropout kernel_dropout(const Options& options) {
  KernelDropout dropout(options.dropout);
  if (planted(PlantedFault::M48b) && dropout.active()) dropout.kept = 1;
  return dropout;
}

/// The call as it is, but for a fault that the host commits.
inline AttentionArguments as_planted(AttentionArguments call) {
  if (planted(PlantedFault::M15) && !call.options.scale)
    call.options.scale = 1 / std::sqrt(call.q.extents[3] <= 64 ? 64.0 : 128.0);
  return call;
}

/// Makes the memory of a call visible to kernels on the CPU engines; nothing on a GPU.
class CallMemory {
 public:
  template <class Mod, class Mask>
  CallMemory([[maybe_unused]] const AttentionArguments& call, [[maybe_unused]] Pass pass,
             [[maybe_unused]] const Sizes& sizes, [[maybe_unused]] const Mod& mod,
             [[maybe_unused]] const Mask& mask) {
#if !defined(ATTN_ENGINE_CUDA)
    if (!call.options.launch.check) return;  // nobody looks at global memory
    std::vector<AccessedTensor> accessed;
    for (const TensorInfo& t : inputs_of(call, pass)) accessed.push_back({t});
    for (const TensorInfo& t : outputs_of(call, pass, captured_of_mod(mod, sizes)))
      accessed.push_back({t, simt::Access::output});
    std::vector<CapturedTensor> captured = captured_tensors(mod, mask, sizes);
    if (call.options.sink) {
      const auto& sink = *call.options.sink;
      captured.push_back({sink.data, DType::f32, 4, {sink.extents[0]}, {sink.strides[0]}, "sink"});
    }
    memory_ = register_tensors(accessed, captured);
#endif
  }

 private:
#if !defined(ATTN_ENGINE_CUDA)
  simt::Registration memory_;
#endif
};

}  // namespace ATTN_TARGET
}  // namespace attn
