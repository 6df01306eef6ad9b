// Decode from a cache in pages: wherever they lie, it is one cache.
#include <gtest/gtest.h>

#include <numeric>

#include "optimized/decode_fixtures.h"

namespace attn::path_test {
namespace {

/// The cache of an Attention in pages: every slot that no row needs holds NaN, every entry of the
/// table that no page needs is no page.
template <class T>
struct Pages {
  Tensor<T, 4> k, v;
  Tensor<std::int32_t, 2> table;

  Pages(const Attention<T>& x, int page_size, bool in_order) {
    const int a_sequence = (capacity + page_size - 1) / page_size, pages = 4 * a_sequence + 3;
    k = Tensor<T, 4>({pages, 2, page_size, 24});
    v = Tensor<T, 4>({pages, 2, page_size, 16});
    poison(k);
    poison(v);
    table = Tensor<std::int32_t, 2>({4, a_sequence + 2});
    for (std::int32_t& entry : table.values()) entry = -12345;
    std::vector<std::int32_t> order(static_cast<std::size_t>(pages));
    std::iota(order.begin(), order.end(), 0);
    std::uint32_t seed = 17;
    for (std::size_t i = order.size(); !in_order && --i > 0;)
      std::swap(order[i], order[(seed = seed * 1664525u + 1013904223u) % (i + 1)]);
    for (int b = 0; b < 4; ++b)
      for (int j = 0; j < lengths[b]; ++j) {
        const int n = j / page_size, slot = j % page_size;
        const std::int32_t page = order[static_cast<std::size_t>(b * a_sequence + n)];
        table(b, n) = page;
        for (int h = 0; h < 2; ++h) {
          for (int c = 0; c < 24; ++c) k(page, h, slot, c) = x.k(b, h, j, c);
          for (int c = 0; c < 16; ++c) v(page, h, slot, c) = x.v(b, h, j, c);
        }
      }
  }
  AttentionCall call(Attention<T>& x) {
    AttentionCall call = decode_call(x);
    call.k = describe("k", k.view());
    call.v = describe("v", v.view());
    call.page_table = std::as_const(table).view();
    return call;
  }
};

TEST(DecodePaged, PagesOfAnySizeInAnyOrderAreOneCache) {
  for_each_build([&](auto t, Engine engine) {
    using T = decltype(t);
    for (const int splits : {1, 3}) {
      Attention<T> contiguous(decode_lengths);
      prepare(contiguous);
      contiguous.options.splits = splits;
      decode(contiguous, engine);
      for (const int page_size : {1, 3, 16, 64, 256}) {
        if (engine == Engine::thread && page_size > 3) continue;
        Attention<T> paged(decode_lengths);
        prepare(paged);
        paged.options.splits = splits;
        Pages<T> pages(paged, page_size, false);
        implementation_named("decode_paged").run(pages.call(paged), engine);
        EXPECT_TRUE(same_outputs(contiguous, paged)) << page_size << " " << splits;
      }
    }
  });
}

TEST(DecodePaged, ComparisonsShowPlantedFaults) {
  for (const PlantedFault fault : {PlantedFault::M59, PlantedFault::none}) {
    Attention<half> x(decode_lengths), right(decode_lengths);
    for (Attention<half>* y : {&x, &right}) prepare(*y);
    decode(right, Engine::warp);
    Pages<half> pages(x, 16, false);
    EXPECT_EQ(planted_run_gives(fault, "decode_paged", pages.call(x), x, right),
              fault == PlantedFault::none);
  }
}

}  // namespace
}  // namespace attn::path_test
