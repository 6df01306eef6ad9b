#include "optimized/gpu_timing.h"

#include <gtest/gtest.h>

#include <set>

namespace attn {
namespace {

/// Whether query i may see key j, from the words of GpuVariant.
bool attends(GpuVariant variant, int i, int j, int length) {
  switch (variant) {
    case GpuVariant::full:
    case GpuVariant::checkerboard:
      return true;
    case GpuVariant::causal:
    case GpuVariant::soft_cap_alibi:
      return j <= i;
    case GpuVariant::window:
      return j <= i && j > i - gpu_bench_window;
    case GpuVariant::documents:
      return j <= i && i / (length / gpu_bench_documents) == j / (length / gpu_bench_documents);
  }
  return false;
}

TEST(GpuTiming, PairsAreThoseThatAttend) {
  for (const GpuVariant variant :
       {GpuVariant::full, GpuVariant::causal, GpuVariant::soft_cap_alibi, GpuVariant::window,
        GpuVariant::documents, GpuVariant::checkerboard})
    for (const int length : {8, 512, 1024, 1032, 2048}) {
      GpuBench bench{.variant = variant, .sq = length, .skv = length};
      std::int64_t pairs = 0;
      for (int i = 0; i < length; ++i)
        for (int j = 0; j < length; ++j) pairs += attends(variant, i, j, length);
      EXPECT_EQ(bench.pairs(), pairs) << bench.name();
    }
}

TEST(GpuTiming, NamesTellTheShapesApart) {
  std::set<std::string> names;
  for (const GpuBench& bench : gpu_benches()) {
    EXPECT_TRUE(names.insert(bench.name()).second) << bench.name();
    EXPECT_GT(bench.flops(), 0);
    EXPECT_EQ(bench.hq % bench.hkv, 0);
  }
  EXPECT_EQ(names.count("checkerboard forward fp16 B8 Hq8 Hkv8 Sq2048 Skv2048 D64"), 1u);
  EXPECT_EQ(names.count("causal backward bf16 B32 Hq32 Hkv32 Sq512 Skv512 D64"), 1u);
  EXPECT_EQ(names.count("full forward bf16 B1 Hq16 Hkv16 Sq32768 Skv32768 D128"), 1u);
  EXPECT_EQ(names.count("full decode forward bf16 B64 Hq32 Hkv8 Sq1 Skv131072 D128"), 1u);
}

TEST(GpuTiming, BackwardHasFiveProductsForTwo) {
  GpuBench bench{.b = 2, .hq = 3, .sq = 4, .skv = 5, .d = 6};
  EXPECT_EQ(bench.flops(), 4.0 * 6 * 20 * 2 * 3);
  bench.pass = Pass::backward;
  EXPECT_EQ(bench.flops(), 10.0 * 6 * 20 * 2 * 3);
}

}  // namespace
}  // namespace attn
