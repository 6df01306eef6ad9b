// A kernel of this project's own, written on the SIMT layer and compiled for the warp engine (see
// CMakeLists.txt): y[i] = scale * x[i], under the checker.
#include <attn/optimized/simt/memory.h>
#include <attn/optimized/simt/simt.h>

#include <cstdint>
#include <vector>

namespace simt = attn::simt;

ATTN_KERNEL scale_kernel(const float* x, float* y, int n, float scale) {
  const simt::lane<int> i = simt::block_x() * simt::block_threads() + simt::thread_id();
  const simt::lane<std::int64_t> at(i);
  simt::stg(y, at, simt::ldg(x, at, i < n) * scale, i < n);
}

std::vector<float> scaled(const std::vector<float>& values, float scale) {
  const simt::DeviceBuffer<float> x(values);
  simt::DeviceBuffer<float> y(values.size());
  const int n = static_cast<int>(values.size());
  simt::launch({(n + 63) / 64, 1, 1}, 64, 0, {}, scale_kernel, x.data(), y.data(), n, scale);
  return {y.begin(), y.end()};
}
