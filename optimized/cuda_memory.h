#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include "optimized/device_memory.h"

namespace attn {

/// @throws std::runtime_error if a call of the CUDA runtime failed.
inline void require(cudaError_t status, const char* what) {
  if (status != cudaSuccess)
    throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(status));
}

/// Pieces of one allocation, which grows when a call needs more.
class Arena {
 public:
  using Allocate = cudaError_t (*)(void**, std::size_t);
  explicit Arena(Allocate allocate) : allocate_(allocate) {}

  std::byte* take(std::size_t bytes) {
    constexpr std::size_t unit = DeviceMemory::alignment;
    const std::size_t rounded = (bytes + unit - 1) / unit * unit;
    if (blocks_.empty() || used_ + rounded > blocks_.back().bytes) {
      constexpr std::size_t least = std::size_t{64} << 20;
      void* p = nullptr;
      const std::size_t size = std::max(least, rounded);
      require(allocate_(&p, size), "device memory");
      blocks_.push_back({static_cast<std::byte*>(p), size});
      used_ = 0;
    }
    std::byte* const piece = blocks_.back().data + used_;
    used_ += rounded;
    return piece;
  }
  /// Keeps the last block, for the next call.
  void reset(cudaError_t (*release)(void*)) {
    while (blocks_.size() > 1) {
      (void)release(blocks_.front().data);
      blocks_.erase(blocks_.begin());
    }
    used_ = 0;
  }

 private:
  struct Block {
    std::byte* data;
    std::size_t bytes;
  };
  Allocate allocate_;
  std::vector<Block> blocks_;
  std::size_t used_ = 0;
};

/// Memory on the GPU. What host and device share is page-locked host memory, which a GPU reads
/// through its bus: slow, and right for what a check reads.
class CudaMemory final : public DeviceMemory {
 public:
  std::byte* allocate(std::size_t bytes) override { return device_.take(bytes); }
  std::byte* allocate_shared(std::size_t bytes) override { return shared_.take(bytes); }
  void to_device(void* device, const void* host, std::size_t bytes) override {
    require(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice), "copy to the device");
  }
  void to_host(void* host, const void* device, std::size_t bytes) override {
    require(cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost), "copy to the host");
  }
  void synchronise() override { require(cudaDeviceSynchronize(), "kernel"); }
  void reset() override {
    device_.reset(cudaFree);
    shared_.reset(cudaFreeHost);
  }

 private:
  static cudaError_t allocate_device(void** p, std::size_t bytes) { return cudaMalloc(p, bytes); }
  static cudaError_t allocate_host(void** p, std::size_t bytes) { return cudaMallocHost(p, bytes); }
  Arena device_{allocate_device};
  Arena shared_{allocate_host};
};

}  // namespace attn
