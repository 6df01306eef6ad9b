#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "masks/block_mask_builder.h"
#include "optimized/cuda_memory.h"
#include "optimized/gpu_timing.h"
#include "optimized/typed_kernels.h"

/// How a shape of gpu_timing.h is timed on a GPU.
namespace attn {

/// Numbers between -1 and 1 that depend on their place alone.
template <class T>
__global__ void fill_kernel(T* data, std::int64_t count, std::uint32_t seed) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    std::uint32_t x = static_cast<std::uint32_t>(i) * 2654435761u + seed;
    x = (x ^ x >> 16) * 0x85ebca6bu;
    x = (x ^ x >> 13) * 0xc2b2ae35u;
    data[i] = from_float<T>(static_cast<float>(x >> 8) * 0x1p-23f - 1.0f);
  }
}

/// Keeps the GPU busy for so many clock ticks, so that the host can queue what is timed.
__global__ void wait_kernel(long long ticks) {
  const long long start = clock64();
  while (clock64() - start < ticks) {
  }
}

/// Device memory that is freed at the end, and how much there was.
class BenchMemory {
 public:
  ~BenchMemory() {
    for (void* p : pieces_) cudaFree(p);
  }
  template <class T>
  T* allocate(std::int64_t count) {
    void* p = nullptr;
    const auto bytes = static_cast<std::size_t>(std::max<std::int64_t>(count, 1)) * sizeof(T);
    require(cudaMalloc(&p, bytes), "device memory");
    pieces_.push_back(p);
    bytes_ += static_cast<std::int64_t>(bytes);
    return static_cast<T*>(p);
  }
  template <class T>
  T* copy_of(const std::vector<T>& values) {
    T* const p = allocate<T>(static_cast<std::int64_t>(values.size()));
    require(cudaMemcpy(p, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice),
            "copy");
    return p;
  }
  std::int64_t bytes() const { return bytes_; }

 private:
  std::vector<void*> pieces_;
  std::int64_t bytes_ = 0;
};

/// One shape on the device, ready to be launched again and again.
template <class T>
class Bench {
 public:
  explicit Bench(const GpuBench& shape) : shape_(shape), row_(row_of(shape)) {
    const GpuBench& s = shape;
    const std::array<std::int64_t, 4> qe{s.b, s.hq, s.sq, s.d}, ke{s.b, s.hkv, s.skv, s.d};
    call_.q = tensor("q", qe);
    call_.k = tensor("k", ke);
    call_.v = tensor("v", ke);
    call_.o = tensor("o", qe);
    call_.lse = {"lse",
                 memory_.allocate<float>(std::int64_t{s.b} * s.hq * s.sq),
                 DType::f32,
                 3,
                 {s.b, s.hq, s.sq},
                 {std::int64_t{s.hq} * s.sq, s.sq, 1}};
    make_tables();
    if (s.decode) {
      lengths_.assign(static_cast<std::size_t>(s.b), s.skv);
      call_.lengths = lengths_;
      return;
    }
    if (row_.block_sparse) call_.blocks = &blocks_;
    if (s.pass == Pass::forward) return;
    // O and LSE of a forward pass, and a gradient.
    GpuBench forward = s;
    forward.pass = Pass::forward;
    launch(forward);
    call_.d_o = tensor("d_o", qe);
    call_.dq = tensor("dq", qe);
    call_.dk = tensor("dk", ke);
    call_.dv = tensor("dv", ke);
    if (s.variant == GpuVariant::soft_cap_alibi) {
      d_slope_ = memory_.allocate<float>(s.hq);
      call_.d_captured = {&d_slope_, 1};
    }
  }

  void launch() const { launch(shape_); }
  std::int64_t bytes() const { return memory_.bytes(); }
  std::string_view implementation() const { return row_.name; }

  /// Masks that leave blocks out run where blocks are left out.
  static const Implementation& row_of(const GpuBench& s) {
    const bool every_pair = s.variant == GpuVariant::full || s.variant == GpuVariant::checkerboard;
    if (s.decode) return implementation_named("decode");
    const std::string pass = s.pass == Pass::forward ? "forward" : "backward";
    return implementation_named((every_pair ? "flash_" : "block_sparse_") + pass);
  }

 private:
  void launch(const GpuBench& s) const {
    with_variant(s.variant, [&](auto variant) {
      constexpr GpuVariant v = decltype(variant)::value;
      (s.pass == Pass::forward ? cuda::run_typed_forward<v>
                               : cuda::run_typed_backward<v>)(s, tables_, call_, row_of(s));
    });
  }

  TensorInfo tensor(const char* name, const std::array<std::int64_t, 4>& extents) {
    const std::int64_t count = extents[0] * extents[1] * extents[2] * extents[3];
    T* const data = memory_.allocate<T>(count);
    fill_kernel<<<1024, 256>>>(data, count, static_cast<std::uint32_t>(memory_.bytes()));
    require(cudaGetLastError(), "fill");
    return {name, data, dtype_of<T>, 4, extents, contiguous_strides(extents)};
  }

  /// Captured tensors on the device, and the blocks of the mask, which are found on the host.
  void make_tables() {
    const Tensor<float, 1> slope = alibi_slopes(shape_.hq);
    const Tensor<std::int32_t, 1> documents = document_ids(std::vector<std::int64_t>(
        gpu_bench_documents, std::max(1, shape_.skv / gpu_bench_documents)));
    if (row_.block_sparse)
      with_variant(shape_.variant, [&](auto variant) {
        const auto mask = functors_of<decltype(variant)::value>({slope, documents}).second;
        const Sizes sizes{shape_.b, shape_.hq, shape_.hkv, shape_.sq, shape_.skv};
        blocks_ = make_block_mask(mask, sizes);
      });
    const auto on_device = [&]<class E>(const Tensor<E, 1>& host) {
      TensorView<const E, 1> view = host.view();
      view.data = memory_.copy_of(host.values());
      return Captured<1, E>(view);
    };
    tables_ = {on_device(slope), on_device(documents)};
  }

  GpuBench shape_;
  const Implementation& row_;
  BenchMemory memory_;
  AttentionArguments call_;
  GpuBenchTables tables_;
  BlockMask blocks_;
  std::vector<std::int32_t> lengths_;
  float* d_slope_ = nullptr;
};

/// Two events on a stream, to time what is between them.
struct Events {
  cudaEvent_t start = nullptr, stop = nullptr;
  Events() {
    require(cudaEventCreate(&start), "event");
    require(cudaEventCreate(&stop), "event");
  }
  ~Events() {
    cudaEventDestroy(start);
    cudaEventDestroy(stop);
  }
};

/// Times launches for about `seconds`. Before each one the second-level cache is overwritten, and
/// the GPU waits until the host has queued the launch, so that only the GPU's time counts.
template <class T>
GpuTiming time_launches(const Bench<T>& bench, double seconds) {
  constexpr std::size_t cache_bytes = std::size_t{256} << 20;
  constexpr int least_runs = 3, most_runs = 200;
  using Clock = std::chrono::steady_clock;
  BenchMemory scratch;
  char* const cache = scratch.allocate<char>(cache_bytes);
  int kilohertz = 0;
  require(cudaDeviceGetAttribute(&kilohertz, cudaDevAttrClockRate, 0), "clock rate");

  bench.launch();  // the first call loads the kernel and fills the pool of workspaces
  require(cudaDeviceSynchronize(), "kernel");
  const Clock::time_point before = Clock::now();
  bench.launch();
  const double host_ms = std::chrono::duration<double, std::milli>(Clock::now() - before).count();
  require(cudaDeviceSynchronize(), "kernel");
  const auto ticks = static_cast<long long>((2 * host_ms + 0.05) * kilohertz);

  const Events events;
  std::vector<double> ms;
  const Clock::time_point start = Clock::now();
  while (ms.size() < most_runs &&
         (ms.size() < least_runs ||
          std::chrono::duration<double>(Clock::now() - start).count() < seconds)) {
    require(cudaMemsetAsync(cache, 0, cache_bytes), "cache");
    wait_kernel<<<1, 1>>>(ticks);
    require(cudaEventRecord(events.start), "event");
    bench.launch();
    require(cudaEventRecord(events.stop), "event");
    require(cudaEventSynchronize(events.stop), "kernel");
    float elapsed = 0;
    require(cudaEventElapsedTime(&elapsed, events.start, events.stop), "event");
    ms.push_back(elapsed);
  }
  GpuTiming t;
  t.runs = static_cast<int>(ms.size());
  for (const double x : ms) t.mean_ms += x / t.runs;
  for (const double x : ms) t.std_ms += (x - t.mean_ms) * (x - t.mean_ms) / t.runs;
  t.std_ms = std::sqrt(t.std_ms);
  t.min_ms = *std::min_element(ms.begin(), ms.end());
  t.max_ms = *std::max_element(ms.begin(), ms.end());
  t.implementation = bench.implementation();
  return t;
}

/// Runs one bench for about so many seconds.
template <class T>
GpuTiming time_shape(const GpuBench& shape, double seconds) {
  const Bench<T> bench(shape);
  cudaMemPool_t pool = nullptr;
  require(cudaDeviceGetDefaultMemPool(&pool, 0), "memory pool");
  std::uint64_t high = 0;
  require(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &high), "memory pool");
  GpuTiming t = time_launches(bench, seconds);
  require(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &high), "memory pool");
  t.peak_bytes = bench.bytes() + static_cast<std::int64_t>(high);
  return t;
}

/// What a shape takes, a little more than its tensors.
inline double bytes_of(const GpuBench& s) {
  const double rows = static_cast<double>(s.b) * s.hq * s.sq;
  const double keys = static_cast<double>(s.b) * s.hkv * s.skv;
  const double once = 2.0 * s.d * (2 * rows + 2 * keys);
  return (s.pass == Pass::forward ? 1 : 2) * once + 8.0 * rows + double{1 << 30};
}

}  // namespace attn
