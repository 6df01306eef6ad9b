#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "optimized/gpu_timing.h"
#include "optimized/implementations.h"
#include "optimized/simt/conformance_run.h"

namespace attn {

/// What is known of the GPU that is used.
struct GpuInfo {
  std::string name;          ///< "NVIDIA H200"
  int major = 0, minor = 0;  ///< compute capability
  int multiprocessors = 0;
  std::int64_t memory_bytes = 0;
  int driver = 0, runtime = 0;  ///< of CUDA: 13000 is 13.0
};

/// A GPU on which the kernels of this program can run. Not for several threads at a time, except
/// `run`.
class Gpu {
 public:
  virtual ~Gpu() = default;
  /// @throws std::runtime_error saying why there is none, or why its kernels cannot run here.
  virtual GpuInfo info() = 0;
  /// Runs a call on host memory (optimized/device_call.h). Returns the name of the target.
  /// @throws std::invalid_argument if the implementation has no kernel for GPUs; as
  ///     Implementation::run; simt::CheckerFault if memory around the tensors was written;
  ///     std::runtime_error if a kernel failed: then nothing runs any more.
  virtual std::string_view run(const Implementation& implementation, const AttentionCall& call) = 0;
  virtual std::vector<ConformanceResult> conformance() = 0;
  /// Times one shape for about `seconds`; nothing where the shape does not fit in memory.
  virtual std::optional<GpuTiming> bench(const GpuBench& shape, double seconds) = 0;
};

/// The GPU that this program was linked with; null: it was built without CUDA.
Gpu* linked_gpu();
/// Called before main by the objects that nvcc compiled, and by tests.
void link_gpu(Gpu* gpu);

/// RunOptions::on_device of the fuzzer: linked_gpu()->run.
std::string_view run_on_linked_gpu(const Implementation& implementation, const AttentionCall& call);

}  // namespace attn
