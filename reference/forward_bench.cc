#include <benchmark/benchmark.h>

#include <algorithm>
#include <ctime>
#include <random>

#include "masks/causal.h"
#include "mods/alibi.h"
#include "reference/forward.h"

// What the reference costs beside its floor, the two matrix products alone.
//
// One head, D = Dv = 128, fp64, Sq = Skv = S: 4 S^2 D flops in the products, whatever the mask.
namespace {

using attn::reference::Matrix;

attn::Tensor<double, 4> random_tensor(int rows, int columns, unsigned seed) {
  attn::Tensor<double, 4> x({1, 1, rows, columns});
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  for (double& value : x.values()) value = normal(random);
  return x;
}

struct Case {
  explicit Case(int s)
      : q(random_tensor(s, 128, 1)), k(random_tensor(s, 128, 2)), v(random_tensor(s, 128, 3)) {}
  attn::Tensor<double, 4> q, k, v;
};

/// CPU time, so that other programs on the machine do not count.
double seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

/// Q K^T and P V by Eigen, in the reference's own row blocks; returns seconds.
double two_products(const Case& c) {
  const auto q = attn::reference::head(c.q, 0, 0), k = attn::reference::head(c.k, 0, 0),
             v = attn::reference::head(c.v, 0, 0);
  const double start = seconds();
  for (int first = 0; first < q.rows(); first += attn::reference::block_rows) {
    const int rows = std::min<int>(attn::reference::block_rows, q.rows() - first);
    Matrix s = q.middleRows(first, rows) * k.transpose();
    Matrix o = s * v;
    benchmark::DoNotOptimize(o.data());
  }
  return seconds() - start;
}

void bench_two_products(benchmark::State& state) {
  const Case c(state.range(0));
  for (auto _ : state) two_products(c);
}

/// `ratio`: the CPU time of the pass over that of the products, taken in turns in the same run.
void bench_forward_alibi_causal(benchmark::State& state) {
  const Case c(state.range(0));
  attn::Tensor<float, 1> slopes({1});
  slopes(0) = 1.0f / 256;
  const attn::Alibi mod = attn::alibi(slopes);
  const auto mask = attn::causal();
  double pass = 0, products = 0;
  for (auto _ : state) {
    const double start = seconds();
    auto out = attn::reference::forward(c.q.view(), c.k.view(), c.v.view(), mod, mask);
    benchmark::DoNotOptimize(out.o.values().data());
    pass += seconds() - start;
    state.PauseTiming();
    products += two_products(c);
    state.ResumeTiming();
  }
  state.counters["ratio"] = pass / products;
}

BENCHMARK(bench_forward_alibi_causal)
    ->Name("reference/forward_alibi_causal")
    ->Arg(4096)
    ->Unit(benchmark::kMillisecond);
BENCHMARK(bench_two_products)
    ->Name("reference/two_products")
    ->Arg(4096)
    ->Unit(benchmark::kMillisecond);

}  // namespace
