#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>

#include "optimized/attention_options.h"
#include "optimized/simt/memory.h"
#include "optimized/simt/simt.h"
#include "optimized/workspace_plan.h"

namespace attn {

inline namespace ATTN_TARGET {

/// A plan in memory. Lives until the kernels that use it have been launched.
class PlacedWorkspace {
 public:
  /// @throws std::invalid_argument if the caller's workspace is too small or not aligned.
  PlacedWorkspace(const WorkspacePlan& plan, const AttentionOptions& options) {
    if (plan.bytes() == 0) return;
    auto* base = static_cast<std::byte*>(options.workspace.data);
    if (base == nullptr) {
      base = allocate(plan.bytes(), options.launch);
    } else if (options.workspace.bytes < plan.bytes() ||
               reinterpret_cast<std::uintptr_t>(base) % 256 != 0) {
      throw std::invalid_argument(
          "workspace: " + std::to_string(options.workspace.bytes) + " bytes" +
          (reinterpret_cast<std::uintptr_t>(base) % 256 != 0 ? ", not aligned to 256" : "") +
          ", expected " + std::to_string(plan.bytes()) + " bytes aligned to 256");
    }
#if !defined(ATTN_ENGINE_CUDA)
    memory_ = simt::Registration({simt::MemorySpan{base, plan.bytes(), 4}});
#endif
    for (const WorkspacePlan::Part& part : plan.parts()) {
      std::byte* at = base + part.offset;
      *part.pointer = at;
      if (part.values != nullptr) copy(at, part.values, part.bytes, options.launch);
#if !defined(ATTN_ENGINE_CUDA)
      memory_.mark(at, part.bytes,
                   part.values != nullptr ? simt::Access::input : simt::Access::output);
#endif
    }
  }

 private:
#if defined(ATTN_ENGINE_CUDA)
  static void require(cudaError_t status) {
    if (status != cudaSuccess)
      throw std::runtime_error(std::string("workspace: ") + cudaGetErrorString(status));
  }
  struct Free {
    cudaStream_t stream;
    void operator()(std::byte* p) const { cudaFreeAsync(p, stream); }
  };
  std::byte* allocate(std::size_t bytes, const simt::LaunchOptions& options) {
    const auto stream = static_cast<cudaStream_t>(options.stream);
    void* p = nullptr;
    require(cudaMallocAsync(&p, bytes, stream));
    own_ = {static_cast<std::byte*>(p), Free{stream}};
    return own_.get();
  }
  /// Pageable host memory has been read when the call returns.
  static void copy(void* to, const void* from, std::size_t bytes,
                   const simt::LaunchOptions& options) {
    require(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice,
                            static_cast<cudaStream_t>(options.stream)));
  }
  std::unique_ptr<std::byte, Free> own_{nullptr, Free{}};
#else
  struct Free {
    void operator()(std::byte* p) const { operator delete[](p, std::align_val_t{256}); }
  };
  std::byte* allocate(std::size_t bytes, const simt::LaunchOptions&) {
    own_.reset(new (std::align_val_t{256}) std::byte[bytes]);
    std::memset(own_.get(), 0xff, bytes);
    return own_.get();
  }
  static void copy(void* to, const void* from, std::size_t bytes, const simt::LaunchOptions&) {
    std::memcpy(to, from, bytes);
  }
  std::unique_ptr<std::byte[], Free> own_;
  simt::Registration memory_;
#endif
};

}  // namespace ATTN_TARGET
}  // namespace attn
