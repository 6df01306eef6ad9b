// Decode: a step is a row of the whole forward pass, however its keys are split.
#include <gtest/gtest.h>

#include <algorithm>

#include "optimized/decode_fixtures.h"

namespace attn::path_test {
namespace {

/// The whole sequence of batch entry b, whose last queries are those of the step.
template <class T>
struct Whole : Attention<T> {
  Whole(const Attention<T>& step, int b) : Attention<T>({1, 6, 2, lengths[b], lengths[b], 24, 16}) {
    prepare(*this);
    this->options = step.options;
    this->options.splits = 0;
    for (int h = 0; h < 6; ++h)
      for (int i = std::max(0, 5 - lengths[b]); i < 5; ++i)
        for (int c = 0; c < 24; ++c) this->q(0, h, lengths[b] - 5 + i, c) = step.q(b, h, i, c);
    for (int h = 0; h < 2; ++h)
      for (int j = 0; j < lengths[b]; ++j) {
        for (int c = 0; c < 24; ++c) this->k(0, h, j, c) = step.k(b, h, j, c);
        for (int c = 0; c < 16; ++c) this->v(0, h, j, c) = step.v(b, h, j, c);
      }
    this->slope = step.slope;
  }
};

template <class T>
bool step_is_row_of(const Attention<T>& step, int b, const Attention<T>& whole) {
  for (int h = 0; h < 6; ++h)
    for (int i = std::max(0, 5 - lengths[b]); i < 5; ++i) {
      const int row = lengths[b] - 5 + i;
      for (int c = 0; c < 16; ++c)
        if (step.o(b, h, i, c).bits != whole.o(0, h, row, c).bits) return false;
      if (step.lse(b, h, i) != whole.lse(0, h, row)) return false;
      if (step.row_max(b, h, i) != whole.row_max(0, h, row)) return false;
    }
  return true;
}

TEST(Decode, AStepIsARowOfTheForwardPass) {
  for_each_build([&](auto t, Engine engine) {
    using T = decltype(t);
    Attention<T> step(decode_lengths);
    prepare(step);
    step.options.splits = 1;
    decode(step, engine);
    for (int b = 0; b < 4; ++b) {
      Whole<T> whole(step, b);
      whole.forward(engine);
      EXPECT_TRUE(step_is_row_of(step, b, whole)) << b;
      for (int h = 0; h < 6; ++h)  // queries before the sequence begins see no key
        for (int i = 0; i < 5 - lengths[b]; ++i) {
          EXPECT_EQ(step.lse(b, h, i), -INFINITY);
          for (int c = 0; c < 16; ++c) EXPECT_EQ(to_float(step.o(b, h, i, c)), 0);
        }
    }
  });
}

/// Each row attends to two keys of score 0, far apart: whatever the split, a part of it has a sum
/// of 0, 1 or 2, and every number is exact.
template <class T>
void prepare_pairs(Attention<T>& x) {
  prepare(x);
  fill_without_scores(x);
  for (float& entry : x.slope.values()) entry = 0;
  x.mask = "kv == h || kv == q - 40";
}
template <class T>
std::string pair_difference(const Attention<T>& x) {
  Tensor<double, 4> o(x.o.extents());
  Tensor<double, 3> lse(x.lse.extents());
  for (int b = 0; b < x.n.b; ++b)
    for (int h = 0; h < x.n.hq; ++h)
      for (int i = 0; i < x.n.sq; ++i) {
        const int length = lengths[b], far = length - x.n.sq + i - 40;
        std::vector<int> keys;
        if (h < length) keys.push_back(h);
        if (far >= 0 && far != h) keys.push_back(far);
        for (const int j : keys)
          for (int c = 0; c < x.n.dv; ++c)
            o(b, h, i, c) += to_float(x.v(b, h / 3, j, c)) / static_cast<double>(keys.size());
        lse(b, h, i) = keys.empty() ? -INFINITY : keys.size() == 1 ? 0 : 0.6931471805599453f;
      }
  return difference("o", x.o, o) + difference("lse", x.lse, lse);
}

TEST(Decode, AnyNumberOfSplitsIsExactOnExactData) {
  for_each_build([&](auto t, Engine engine) {
    for (const TileChoice tile : {TileChoice::small, TileChoice::production})
      for (const int splits : {0, 1, 2, 3, 4, 5, 6, 7, 64}) {
        if (engine == Engine::thread && (splits > 3 || tile == TileChoice::production)) continue;
        Attention<decltype(t)> x(decode_lengths);
        prepare_pairs(x);
        x.options.tile = tile;
        x.options.splits = splits;
        decode(x, engine);
        EXPECT_EQ(pair_difference(x), "") << splits;
        EXPECT_EQ(x.row_max(0, 0, 0), 0);
        EXPECT_EQ(x.row_max(1, 0, 0), -INFINITY);
      }
  });
}

/// The sink joins once, not once a part: one key of score 0 and a sink of 0 share the row.
TEST(Decode, TheSinkCountsOnce) {
  for_each_build([&](auto t, Engine engine) {
    for (const int splits : {1, 2, 3}) {
      Attention<decltype(t)> x(decode_lengths);
      prepare_pairs(x);
      x.mask = "kv == q";
      for (float& entry : x.sink.values()) entry = 0;
      x.give_sink();
      x.options.splits = splits;
      decode(x, engine);
      for (int b = 0; b < 4; ++b)
        for (int h = 0; h < 6; ++h)
          for (int i = 0; i < 5; ++i) {
            const int key = lengths[b] - 5 + i;
            EXPECT_EQ(x.lse(b, h, i), key < 0 ? 0 : 0.6931471805599453f);
            for (int c = 0; c < 16; ++c)
              EXPECT_EQ(to_float(x.o(b, h, i, c)),
                        key < 0 ? 0 : to_float(x.v(b, h / 3, key, c)) / 2);
          }
    }
  });
}

TEST(Decode, DropoutSeesPositionsOfTheWhole) {
  for_each_build([&](auto t, Engine engine) {
    for (const int splits : {1, 3}) {
      Attention<decltype(t)> x(decode_lengths);
      prepare_pairs(x);
      x.mask = "kv == q";
      x.options.dropout = {0.5, 99};
      x.options.splits = splits;
      decode(x, engine);
      for (int b = 0; b < 4; ++b)
        for (int h = 0; h < 6; ++h)
          for (int i = 0; i < 5; ++i) {
            const int q = lengths[b] - 5 + i;
            if (q < 0) continue;
            const double factor = dropout_by_hand(x.options.dropout, b, h, q, q);
            for (int c = 0; c < 16; ++c)
              ASSERT_EQ(to_float(x.o(b, h, i, c)), factor * to_float(x.v(b, h / 3, q, c)));
          }
    }
  });
}

/// Nothing beyond a length is read, not even where a tile holds it.
TEST(Decode, WhatLiesBeyondALengthHasNoEffect) {
  for_each_build([&](auto t, Engine engine) {
    using T = decltype(t);
    for (const int splits : {1, 3}) {
      Attention<T> x(decode_lengths), y(decode_lengths);
      prepare(x);
      prepare(y);
      x.options.splits = y.options.splits = splits;
      for (int b = 0; b < 4; ++b)
        for (int h = 0; h < 2; ++h)
          for (int j = lengths[b]; j < capacity; ++j) {
            for (int c = 0; c < 24; ++c) y.k(b, h, j, c) = from_float<T>(std::nanf(""));
            for (int c = 0; c < 16; ++c) y.v(b, h, j, c) = from_float<T>(std::nanf(""));
          }
      decode(x, engine);
      decode(y, engine);
      EXPECT_TRUE(same_outputs(x, y));
      EXPECT_FALSE(has_nan(y.o) || has_nan(y.lse) || has_nan(y.row_max));
    }
  });
}

/// A NaN in an attended key shows in the whole row, in LSE and in the maximum, through the merge.
TEST(Decode, ANaNShowsInItsRowsOnly) {
  for_each_build([&](auto t, Engine engine) {
    using T = decltype(t);
    for (const int splits : {1, 3})
      for (const bool in_v : {false, true}) {
        Attention<T> x(decode_lengths);
        prepare(x);
        x.options.splits = splits;
        (in_v ? x.v : x.k)(0, 1, 150, 7) = from_float<T>(std::nanf(""));
        decode(x, engine);
        for (int b = 0; b < 4; ++b)
          for (int h = 0; h < 6; ++h)
            for (int i = 0; i < 5; ++i) {
              const bool nan = b == 0 && h >= 3;
              EXPECT_EQ(std::isnan(x.lse(b, h, i)), nan);
              EXPECT_EQ(std::isnan(x.row_max(b, h, i)), nan);
              for (int c = 0; c < 16; ++c) EXPECT_EQ(std::isnan(to_float(x.o(b, h, i, c))), nan);
            }
      }
  });
}

TEST(Decode, GivesTheSameBitsInEveryOrder) {
  Attention<half> first(decode_lengths);
  prepare(first);
  first.options.splits = 3;
  decode(first, Engine::warp);
  for (const std::uint64_t seed : {0, 7, 99})
    for (const int workers : {1, 2}) {
      Attention<half> x(decode_lengths);
      prepare(x);
      x.options.splits = 3;
      x.options.launch = {workers, seed == 0, seed};
      decode(x, Engine::warp);
      EXPECT_TRUE(same_outputs(first, x));
    }
}

TEST(Decode, ZeroSizes) {
  for (const Lengths& n : {Lengths{4, 6, 2, 0, 8, 16, 16}, Lengths{4, 0, 2, 3, 8, 16, 16},
                           Lengths{4, 6, 2, 3, 8, 16, 0}, Lengths{4, 6, 2, 3, 0, 16, 16}})
    for (const int splits : {0, 1, 3}) {
      Attention<half> x(n);
      x.options.splits = splits;
      const std::vector<std::int32_t> all(4, n.skv);
      AttentionCall call = x.forward_call();
      call.lengths = all;
      EXPECT_NO_THROW(implementation_named("decode").run(call, Engine::warp))
          << n.sq << n.hq << n.dv << " " << splits;
      EXPECT_FALSE(has_nan(x.o) || has_nan(x.lse) || has_nan(x.row_max));
      for (const float lse : x.lse.values()) EXPECT_EQ(lse == -INFINITY, n.skv == 0);
    }
}

TEST(Decode, ComparisonsShowPlantedFaults) {
  for (const PlantedFault fault : {PlantedFault::M28, PlantedFault::M54, PlantedFault::M55,
                                   PlantedFault::M57, PlantedFault::none}) {
    Attention<half> x(decode_lengths), right(decode_lengths);
    for (Attention<half>* y : {&x, &right}) {
      prepare(*y);
      y->options.splits = 5;
    }
    decode(right, Engine::warp);
    EXPECT_EQ(planted_run_gives(fault, "decode", decode_call(x), x, right),
              fault == PlantedFault::none)
        << static_cast<int>(fault);
  }
}

}  // namespace
}  // namespace attn::path_test
