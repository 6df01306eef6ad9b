#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "optimized/exact_fixtures.h"
#include "optimized/simt/fault.h"

/// What the tests of decode share: a cache that is full, one that is empty and two between.
namespace attn::path_test {

inline constexpr int capacity = 200;
inline const std::vector<std::int32_t> lengths = {200, 0, 3, 97};
inline constexpr Lengths decode_lengths{4, 6, 2, 5, capacity, 24, 16};

template <class T>
void prepare(Attention<T>& x) {
  x.fill_all();
  x.options.tile = TileChoice::small;
  x.mod = "score + slope[h] * (kv - q)";
  x.mask = "kv <= q";
}

template <class T>
AttentionCall decode_call(Attention<T>& x) {
  AttentionCall call = x.forward_call();
  call.lengths = lengths;
  return call;
}
template <class T>
void decode(Attention<T>& x, Engine engine) {
  implementation_named("decode").run(decode_call(x), engine);
}

/// Whether the planted build gives what `right` holds when it runs `call`, whose outputs are x's.
inline bool planted_run_gives(PlantedFault fault, const char* row, const AttentionCall& call,
                              const Attention<half>& x, const Attention<half>& right) {
  const Plant plant(fault);
  try {
    implementation_named(row).run_planted(call);
  } catch (const simt::CheckerFault&) {
    return false;
  }
  return same_outputs(x, right);
}

}  // namespace attn::path_test
