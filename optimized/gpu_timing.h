#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mods/lang/storage.h"
#include "optimized/implementations.h"

/// The shapes that are timed on a GPU, the same here and in docs/gpu/compare_pytorch.py.
namespace attn {

/// A mod and a mask that kernels are compiled with.
enum class GpuVariant {
  full,            ///< every pair; in decode: every key of the cache
  causal,          ///< causal(top_left)
  soft_cap_alibi,  ///< ALiBi, then a soft-cap at 20; causal
  window,          ///< a query and the 1023 keys before it
  documents,       ///< 8 documents of equal length, causal in each
  checkerboard,    ///< scores halved and doubled by turns, every pair
};
const char* name_of(GpuVariant variant);  ///< "soft_cap_alibi", as above
/// Keys that the windowed mask of the benches sees, their documents, and the cap of their scores.
inline constexpr int gpu_bench_window = 1024, gpu_bench_documents = 8;
inline constexpr float gpu_bench_soft_cap = 20;  ///< scores of soft_cap_alibi stay below

/// One shape and variant to time.
struct GpuBench {
  GpuVariant variant = GpuVariant::full;
  Pass pass = Pass::forward;
  bool decode = false;  ///< Sq queries beside a full contiguous cache of Skv keys
  DType dtype = DType::bf16;
  int b = 1, hq = 1, hkv = 1, sq = 0, skv = 0, d = 64;

  /// "causal forward bf16 B4 Hq16 Hkv16 Sq4096 Skv4096 D128"
  std::string name() const;
  /// Pairs that attend, of one head.
  std::int64_t pairs() const;
  /// Floating-point operations that count: 4 D a pair forward, 2.5 times as many backward.
  double flops() const;
};

/// All of them; the long series over lengths comes last.
std::vector<GpuBench> gpu_benches();

/// Times of one bench, in milliseconds unless a name says otherwise.
struct GpuTiming {
  int runs = 0;
  double mean_ms = 0, std_ms = 0, min_ms = 0, max_ms = 0;
  std::int64_t peak_bytes = 0;  ///< of device memory, tensors and workspace
  std::string implementation;   ///< the row of the table that ran
};

}  // namespace attn
