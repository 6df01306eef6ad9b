// The GPU of programs that are linked with the kernels for CUDA.
#include <cuda_runtime.h>

#include <mutex>
#include <stdexcept>
#include <string>

#include "optimized/cuda_memory.h"
#include "optimized/cuda_timing.h"
#include "optimized/device_call.h"
#include "optimized/gpu.h"
#include "optimized/simt/fault.h"

namespace attn {
namespace cuda {
std::string_view run_flash_forward(half, const AttentionCall&, const Implementation&);
std::string_view run_flash_forward(bfloat16, const AttentionCall&, const Implementation&);
std::string_view run_flash_backward(half, const AttentionCall&, const Implementation&);
std::string_view run_flash_backward(bfloat16, const AttentionCall&, const Implementation&);
std::string_view run_fp32_forward(const AttentionCall&, const Implementation&);
std::string_view run_tf32_forward(const AttentionCall&, const Implementation&);
}  // namespace cuda

namespace {

/// The kernels of a row of the table, for a storage type.
std::string_view run_row(const AttentionCall& call, const Implementation& row) {
  if (row.name == "flash_forward_fp32") return cuda::run_fp32_forward(call, row);
  if (row.name == "flash_forward_tf32") return cuda::run_tf32_forward(call, row);
  const bool forward = row.pass == Pass::forward;
  if (call.q.dtype == DType::f16)
    return forward ? cuda::run_flash_forward(half{}, call, row)
                   : cuda::run_flash_backward(half{}, call, row);
  if (call.q.dtype == DType::bf16)
    return forward ? cuda::run_flash_forward(bfloat16{}, call, row)
                   : cuda::run_flash_backward(bfloat16{}, call, row);
  throw std::invalid_argument(std::string("q: ") + name_of(call.q.dtype) +
                              ", expected fp16 or bf16 in " + std::string(row.name));
}

class CudaGpu final : public Gpu {
 public:
  CudaGpu() { link_gpu(this); }

  GpuInfo info() override {
    if (!lost_.empty()) throw std::runtime_error("the GPU is lost: " + lost_);
    GpuInfo info;
    cudaDriverGetVersion(&info.driver);
    cudaRuntimeGetVersion(&info.runtime);
    int count = 0;
    const cudaError_t status = cudaGetDeviceCount(&count);
    if (status != cudaSuccess || count == 0)
      throw std::runtime_error(std::string("no GPU: ") + (status == cudaSuccess
                                                              ? "CUDA lists none"
                                                              : cudaGetErrorString(status)));
    cudaDeviceProp properties{};
    require(cudaGetDeviceProperties(&properties, 0), "device properties");
    info.name = properties.name;
    info.major = properties.major;
    info.minor = properties.minor;
    info.multiprocessors = properties.multiProcessorCount;
    info.memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem);
    if (info.major != 8 && info.major != 9)
      throw std::runtime_error("no GPU: " + info.name + " has compute capability " +
                               std::to_string(info.major) + "." + std::to_string(info.minor) +
                               ", and kernels were compiled for 8.x and 9.0");
    return info;
  }

  std::string_view run(const Implementation& implementation, const AttentionCall& call) override {
    const std::lock_guard guard(lock_);
    if (!lost_.empty()) throw std::invalid_argument("the GPU is lost: " + lost_);
    try {
      memory_.reset();
      DeviceCall mirror(call, implementation.pass, memory_);
      const std::string_view target = run_row(mirror.call(), implementation);
      mirror.copy_back();
      return target;
    } catch (const simt::CheckerFault&) {
      throw;
    } catch (const std::runtime_error& error) {
      note_loss(error);
      throw simt::CheckerFault(simt::FaultKind::out_of_bounds, "", 0, {},
                               std::string("kernel failed on the GPU: ") + error.what());
    }
  }

  std::vector<ConformanceResult> conformance() override {
    const std::lock_guard guard(lock_);
    memory_.reset();
    return cuda::run_conformance(memory_);
  }

  std::optional<GpuTiming> bench(const GpuBench& shape, double seconds) override {
    const std::lock_guard guard(lock_);
    std::size_t free = 0, total = 0;
    require(cudaMemGetInfo(&free, &total), "device memory");
    if (bytes_of(shape) > 0.9 * static_cast<double>(free)) return std::nullopt;
    try {
      return shape.dtype == DType::f16 ? time_shape<half>(shape, seconds)
                                       : time_shape<bfloat16>(shape, seconds);
    } catch (const std::runtime_error& error) {
      note_loss(error);
      throw;
    }
  }

 private:
  /// A kernel that fails takes the whole context with it; a launch that is refused does not.
  void note_loss(const std::runtime_error& error) {
    if (cudaDeviceSynchronize() != cudaSuccess) lost_ = error.what();
  }

  std::mutex lock_;
  CudaMemory memory_;
  std::string lost_;  ///< why nothing runs any more
};

CudaGpu cuda_gpu;

}  // namespace
}  // namespace attn
