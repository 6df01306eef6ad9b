/// How fast the CPU engines run the flash kernel, under the checker and without: tiles of 128 x 64,
/// D = 64, bf16, on one core.
#include <benchmark/benchmark.h>

#include "mods/lang/compile.h"
#include "mods/lang/parse.h"
#include "optimized/attention_arguments.h"
#include "optimized/implementations.h"

namespace attn {
namespace {

void flash_tiles(benchmark::State& state, Engine engine, bool check) {
  constexpr int heads = 2, length = 256, head = 64;
  Tensor<bfloat16, 4> q({1, heads, length, head}), k(q), v(q), o(q);
  Tensor<float, 3> lse({1, heads, length});
  std::uint32_t x = 1;
  for (Tensor<bfloat16, 4>* t : {&q, &k, &v})
    for (bfloat16& value : t->values())
      value = from_float<bfloat16>(
          static_cast<float>((x = x * 1664525 + 1013904223) >> 8) * 0x1p-23f - 1);
  AttentionCall call{
      forward_arguments<bfloat16>(q.view(), k.view(), v.view(), o.view(), lse.view()), {}, {}};
  call.mod = compile_mod(parse_mod("score"), {});
  call.mask = compile_mask(parse_mask("true"), {});
  call.options.tile = TileChoice::production;
  call.options.launch.check = check;
  const Implementation& flash = implementation_named("flash_forward");
  for (auto _ : state) flash.run(call, engine);
  const double tiles = heads * (length / 128.0) * (length / 64.0);
  state.counters["tiles"] = benchmark::Counter(tiles * static_cast<double>(state.iterations()),
                                               benchmark::Counter::kIsRate);
}

BENCHMARK_CAPTURE(flash_tiles, warp_checked, Engine::warp, true)->Name("simt/warp/checked");
BENCHMARK_CAPTURE(flash_tiles, warp_unchecked, Engine::warp, false)->Name("simt/warp/unchecked");
BENCHMARK_CAPTURE(flash_tiles, thread_checked, Engine::thread, true)->Name("simt/thread/checked");

}  // namespace
}  // namespace attn
