// Steps 2 to 4 of docs/how_to_dtype.md, on one engine.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "docs/how_to/e4m3_decode.h"
#include "masks/full.h"
#include "mods/identity.h"
#include "optimized/simt/memory.h"
#include "reference/forward.h"

namespace how_to {
namespace {

using attn::simt::Access;
using attn::simt::DeviceBuffer;

ATTN_KERNEL widen_all(const e4m3* codes, float* numbers) {
  const lane<std::int64_t> at(attn::simt::lane_id() + attn::simt::block_x() * 32);
  attn::simt::stg(numbers, at, load(codes, at, true));
}

//! [layer test]
TEST(E4m3, the_layer_widens_every_code_to_its_number) {
  DeviceBuffer<e4m3> codes(256, Access::input);
  for (int i = 0; i < 256; ++i) codes[i].bits = static_cast<std::uint8_t>(i);
  DeviceBuffer<float> numbers(256);
  attn::simt::launch({8, 1, 1}, 32, 0, {}, widen_all, codes.data(), numbers.data());
  for (int i = 0; i < 256; ++i) {
    if (std::isnan(to_float(codes[i])))
      EXPECT_TRUE(std::isnan(numbers[i])) << "code " << i;
    else
      EXPECT_EQ(std::bit_cast<std::uint32_t>(numbers[i]),
                std::bit_cast<std::uint32_t>(to_float(codes[i])))
          << "code " << i;
  }
}
//! [layer test]

/// A decode step whose cache holds numbers that E4M3 and fp16 both hold.
struct Step {
  int heads, group, keys, d;
  std::vector<half> q;
  std::vector<e4m3> k, v;

  template <class Query, class Cache>
  Step(int hkv, int per_group, int length, int head, Query query, Cache cache)
      : heads(hkv * per_group), group(per_group), keys(length), d(head) {
    for (int i = 0; i < heads * d; ++i) q.push_back(attn::from_float<half>(query()));
    for (std::vector<e4m3>* x : {&k, &v})
      for (int i = 0; i < hkv * keys * d; ++i) x->push_back(to_e4m3(cache()));
  }
  template <class Stored>
  std::vector<Stored> as(const std::vector<e4m3>& x) const {
    std::vector<Stored> stored;
    for (const e4m3 code : x) {
      if constexpr (std::is_same_v<Stored, e4m3>)
        stored.push_back(code);
      else
        stored.push_back(attn::from_float<Stored>(to_float(code)));
    }
    return stored;
  }
  template <class Stored>
  std::vector<float> run() const {
    const DeviceBuffer<half> queries(q, Access::input);
    const DeviceBuffer<Stored> cached_k(as<Stored>(k), Access::input),
        cached_v(as<Stored>(v), Access::input);
    DeviceBuffer<float> o(q.size());
    attn::simt::launch({heads, 1, 1}, 32, 0, {}, decode_step<Stored>, queries.data(),
                       cached_k.data(), cached_v.data(), o.data(), group, keys, d, 0.25f);
    return {o.begin(), o.end()};
  }
};

//! [kernel test]
// Every number of E4M3 is one of fp16: with E4M3 in the cache the kernel must give the bits that it
// gives with the same numbers in fp16.
TEST(E4m3, a_cache_of_it_is_a_cache_of_fp16_of_the_same_numbers) {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0, seed % 3 == 0 ? 20.0f : 1.0f);
    const auto draw = [&] { return normal(random); };
    const Step step(1 + seed % 3, 1 + seed % 4, 1 + seed * 7 % 90, 1 + seed * 5 % 32, draw, draw);
    EXPECT_EQ(step.run<e4m3>(), step.run<half>()) << "seed " << seed;
  }
}
//! [kernel test]

/// O as the reference has it, from the same numbers, rounded to fp32.
std::vector<float> truth_of(const Step& x) {
  attn::Tensor<double, 4> q({1, x.heads, 1, x.d}), k({1, x.heads / x.group, x.keys, x.d}), v(k);
  for (std::size_t i = 0; i < x.q.size(); ++i) q.values()[i] = attn::to_float(x.q[i]);
  for (std::size_t i = 0; i < x.k.size(); ++i) {
    k.values()[i] = to_float(x.k[i]);
    v.values()[i] = to_float(x.v[i]);
  }
  attn::Options options;
  options.scale = 0.25;
  const auto truth = attn::reference::forward(q.view(), k.view(), v.view(), attn::identity(),
                                              attn::full(), options);
  return {truth.o.values().begin(), truth.o.values().end()};
}

//! [truth test]
// Where no rounding can move the answer it is the reference's: means of 2^n whole numbers, and rows
// whose best key is 128 above the next, whose weight is then nothing in fp32 and in fp64.
TEST(E4m3, exact_answers_are_the_references) {
  for (std::uint32_t seed = 0; seed < 80; ++seed) {
    std::mt19937 random(seed);
    const bool one_hot = seed % 2;
    std::vector<int> ranks(15);
    std::iota(ranks.begin(), ranks.end(), 1);
    std::shuffle(ranks.begin(), ranks.end(), random);
    const int keys = one_hot ? 1 + seed % 15 : 1 << seed % 7, d = one_hot ? 1 : 1 + seed % 32;
    Step step(
        1 + seed % 2, 1 + seed % 3, keys, d, [&] { return one_hot ? 64.0f : 0.0f; },
        [&] { return static_cast<float>(random() % 17) - 8; });
    if (one_hot)
      for (std::size_t i = 0; i < step.k.size(); ++i)
        step.k[i] = to_e4m3(8.0f * ranks[i % keys]);  // scores of 128 times the rank
    EXPECT_EQ(step.run<e4m3>(), truth_of(step)) << "seed " << seed;
  }
}
//! [truth test]

}  // namespace
}  // namespace how_to
