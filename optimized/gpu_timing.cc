#include "optimized/gpu_timing.h"

#include <algorithm>

namespace attn {

const char* name_of(GpuVariant variant) {
  switch (variant) {
    case GpuVariant::full:
      return "full";
    case GpuVariant::causal:
      return "causal";
    case GpuVariant::soft_cap_alibi:
      return "soft_cap_alibi";
    case GpuVariant::window:
      return "window";
    case GpuVariant::documents:
      return "documents";
    case GpuVariant::checkerboard:
      return "checkerboard";
  }
  return "?";
}

std::string GpuBench::name() const {
  const auto extent = [](const char* symbol, int n) { return " " + (symbol + std::to_string(n)); };
  return std::string(name_of(variant)) + (decode ? " decode " : " ") +
         (pass == Pass::forward ? "forward " : "backward ") + attn::name_of(dtype) +
         extent("B", b) + extent("Hq", hq) + extent("Hkv", hkv) + extent("Sq", sq) +
         extent("Skv", skv) + extent("D", d);
}

std::int64_t GpuBench::pairs() const {
  const auto triangle = [](std::int64_t n) { return n * (n + 1) / 2; };
  const std::int64_t rows = sq, keys = skv;
  switch (variant) {
    case GpuVariant::full:
    case GpuVariant::checkerboard:
      return rows * keys;
    case GpuVariant::causal:
    case GpuVariant::soft_cap_alibi:
      return triangle(rows);  // Sq = Skv
    case GpuVariant::window: {
      const std::int64_t outside = std::max<std::int64_t>(rows - gpu_bench_window, 0);
      return triangle(rows) - triangle(outside);
    }
    case GpuVariant::documents:
      return gpu_bench_documents * triangle(rows / gpu_bench_documents);
  }
  return 0;
}

double GpuBench::flops() const {
  const double forward = 4.0 * d * static_cast<double>(pairs()) * b * hq;
  return pass == Pass::forward ? forward : 2.5 * forward;
}

std::vector<GpuBench> gpu_benches() {
  std::vector<GpuBench> all;
  constexpr Pass passes[] = {Pass::forward, Pass::backward};
  // The seed's own benchmark case.
  for (const Pass pass : passes)
    all.push_back({GpuVariant::checkerboard, pass, false, DType::f16, 8, 8, 8, 2048, 2048, 64});
  // 16 384 tokens and 2048 channels, as the FlashAttention papers measure.
  const auto square = [&](GpuVariant variant, Pass pass, int s, int d) {
    const int heads = 2048 / d, batch = std::max(1, 16384 / s);
    all.push_back({variant, pass, false, DType::bf16, batch, heads, heads, s, s, d});
  };
  for (const Pass pass : passes) {
    for (const int s : {2048, 8192}) square(GpuVariant::soft_cap_alibi, pass, s, 128);
    for (const int s : {8192, 32768}) square(GpuVariant::window, pass, s, 128);
    square(GpuVariant::documents, pass, 16384, 128);
  }
  for (const int b : {1, 8, 64})
    for (const int cache : {4096, 16384, 131072})
      all.push_back({GpuVariant::full, Pass::forward, true, DType::bf16, b, 32, 8, 1, cache, 128});
  for (const int s : {512, 1024, 2048, 4096, 8192, 16384, 32768})
    for (const Pass pass : passes)
      for (const int d : {64, 128})
        for (const GpuVariant variant : {GpuVariant::causal, GpuVariant::full})
          square(variant, pass, s, d);
  return all;
}

}  // namespace attn
