#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <random>
#include <string>
#include <vector>

#include "masks/block_mask_builder.h"
#include "masks/causal.h"
#include "masks/document.h"
#include "masks/window.h"

/// Building block masks on one core, blocks of 128 x 128, tables of captured tensors included.
namespace attn {
namespace {

Sizes square(int length) { return {1, 1, 1, length, length}; }

template <class Mask>
void build(benchmark::State& state, const Mask& mask, int length) {
  BlockMaskStatistics last;
  for (auto _ : state) {
    const BlockMask built = make_block_mask(mask, square(length));
    last = built.statistics();
    benchmark::DoNotOptimize(built.spans().data());
  }
  state.counters["bytes"] = static_cast<double>(last.bytes);
  state.counters["spans"] = static_cast<double>(last.spans);
  state.counters["questions"] = static_cast<double>(last.interval_questions);
  state.counters["scanned"] = static_cast<double>(last.scanned_elements);
}

/// Documents of 500 to 4500 tokens, from a fixed seed.
Tensor<std::int32_t, 1> documents(int length) {
  std::mt19937 random(1);
  std::vector<std::int64_t> lengths;
  for (std::int64_t left = length; left > 0; left -= lengths.back())
    lengths.push_back(std::min<std::int64_t>(left, 500 + random() % 4001));
  return document_ids(lengths);
}

/// What a builder without intervals does: asks for each pair, then counts by block.
template <class Mask>
std::vector<BlockKind> dense_blocks(const Mask& mask, int length, int block) {
  ExactEnv env{square(length)};
  const int blocks = length / block;
  std::vector<std::int32_t> attending(static_cast<std::size_t>(blocks) * blocks, 0);
  for (int q = 0; q < length; ++q)
    for (int kv = 0; kv < length; ++kv)
      attending[static_cast<std::size_t>(q / block) * blocks + kv / block] +=
          call_mask(mask, Index<ExactEnv>{0, &env}, Index<ExactEnv>{0, &env},
                    Index<ExactEnv>{q, &env}, Index<ExactEnv>{kv, &env});
  std::vector<BlockKind> kinds(attending.size());
  for (std::size_t n = 0; n < kinds.size(); ++n)
    kinds[n] = attending[n] == 0               ? BlockKind::empty
               : attending[n] == block * block ? BlockKind::full
                                               : BlockKind::partial;
  return kinds;
}

/// Processor time, so that other work on the machine does not count.
double seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

/// Counter `ratio`: how many times as long as the interval builder, on the same mask.
void dense_builder(benchmark::State& state, int length) {
  const double start = seconds();
  for (auto _ : state) benchmark::DoNotOptimize(dense_blocks(causal(), length, 128).data());
  const double dense = (seconds() - start) / static_cast<double>(state.iterations());
  constexpr int builds = 2000;
  const double restart = seconds();
  for (int n = 0; n < builds; ++n)
    benchmark::DoNotOptimize(make_block_mask(causal(), square(length)).spans().data());
  state.counters["ratio"] = dense / ((seconds() - restart) / builds);
}

const bool registered = [] {
  const auto add = [](const std::string& mask, int length, auto run) {
    benchmark::RegisterBenchmark(("block_mask/" + mask + "/" + std::to_string(length)).c_str(), run)
        ->Unit(benchmark::kMillisecond);
  };
  for (const int length : {8192, 32768, 1 << 20})
    add("causal", length, [length](auto& state) { build(state, causal(), length); });
  for (const int length : {32768, 1 << 20}) {
    add("causal_window_4096", length,
        [length](auto& state) { build(state, window(4096, 0), length); });
    add("causal_document", length, [length](auto& state) {
      const Tensor<std::int32_t, 1> ids = documents(length);
      build(state, causal() && document(ids), length);
    });
  }
  for (const int length : {32768, 1 << 20})
    add("transpose_causal", length, [length](auto& state) {
      const BlockMask mask = make_block_mask(causal(), square(length));
      for (auto _ : state) benchmark::DoNotOptimize(transpose(mask).spans().data());
    });
  add("dense_builder", 8192, [](auto& state) { dense_builder(state, 8192); });
  return true;
}();

}  // namespace
}  // namespace attn
