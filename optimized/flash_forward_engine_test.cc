// flash_forward as its users call it, on one engine: mods and masks of the library and plain
// functions, answers known by hand, every refusal.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "masks/causal.h"
#include "masks/window.h"
#include "mods/alibi.h"
#include "mods/soft_cap.h"
#include "optimized/attention.h"
#include "optimized/refusal_fixtures.h"
#include "optimized/simt/fault.h"

namespace attn {
inline namespace ATTN_TARGET {
namespace flash_forward_test {

/// One of several mods, chosen on the host, so that this file compiles few kernels.
struct ChosenMod {
  enum { identity, capped, captured, overflowing } which = identity;
  SoftCap cap{30};
  Captured<1> table{};
  template <class Score, class Index>
  ATTN_HOST_DEVICE Score operator()(Score s, Index b, Index h, Index q, Index kv) const {
    switch (which) {
      case capped:
        return cap(s, b, h, q, kv);
      case captured:
        return s + table(kv);
      case overflowing:
        return s + (kv * 1500000000 - q);
      default:
        return s;
    }
  }
};
/// A plain function of four numbers.
struct SameParity {
  bool operator()(int, int, int q, int kv) const { return kv % 2 == q % 2; }
};
const auto causal_window = causal() && window(2, 0);  // keys i - 2, i - 1 and i

/// Q = 0, so that every score is 0 before the mod; V tells head and key: 100 hkv + key + d / 2.
struct Inputs {
  Tensor<half, 4> q, k, v, o;
  Tensor<float, 3> lse;

  Inputs(int b, int hq, int hkv, int sq, int skv, int d, int dv)
      : q({b, hq, sq, d}),
        k({b, hkv, skv, d}),
        v({b, hkv, skv, dv}),
        o({b, hq, sq, dv}),
        lse({b, hq, sq}) {
    for (int ib = 0; ib < b; ++ib)
      for (int h = 0; h < hkv; ++h)
        for (int j = 0; j < skv; ++j)
          for (int c = 0; c < dv; ++c) v(ib, h, j, c) = from_float<half>(value(h, j, c));
    for (half& x : o.values()) x = half{0xffff};  // a NaN
    for (float& x : lse.values()) x = std::nanf("");
  }
  static float value(int hkv, int j, int c) {
    return static_cast<float>(100 * hkv + j + (c & 1) * 0.5);
  }
  template <class Mod, class Mask>
  void run(const Mod& mod, const Mask& mask, TileChoice tile = TileChoice::automatic) {
    ForwardOptions options;
    options.tile = tile;
    forward<half>(q.view(), k.view(), v.view(), o.view(), lse.view(), mod, mask, options);
  }
};

/// LSE = m ln 2 + ln 2 log2 l in fp32: a few roundings of each part.
void expect_lse(float got, double exact, double m = 0) {
  EXPECT_LE(std::abs(got - exact), 4 * 0x1p-24 * (std::abs(m) + std::abs(exact) + 1))
      << got << " and " << exact;
}

TEST(FlashForward, UniformRowsAreMeans) {
  const Tensor<float, 1> flat({1});  // slope 0
  for (const TileChoice tile : {TileChoice::small, TileChoice::production}) {
    Inputs x(1, 4, 2, 70, 70, 40, 24);
    x.run(alibi(flat), causal_window, tile);
    for (int h = 0; h < 4; ++h)
      for (int i = 0; i < 70; ++i) {
        const int keys = std::min(i + 1, 3);
        for (int c = 0; c < 24; ++c)  // the mean of i - 2, i - 1 and i
          ASSERT_EQ(to_float(x.o(0, h, i, c)), Inputs::value(h / 2, i, c) - (keys - 1) * 0.5f)
              << h << " " << i;
        expect_lse(x.lse(0, h, i), std::log(keys));
      }
  }
}

TEST(FlashForward, SteepSlopesMakeOneHotRows) {
  Tensor<float, 1> slope({4});
  slope(0) = slope(2) = 128, slope(1) = slope(3) = -128;
  Inputs x(2, 4, 2, 37, 37, 8, 8);
  x.run(alibi(slope), causal_window);
  for (int b = 0; b < 2; ++b)
    for (int h = 0; h < 4; ++h)
      for (int i = 0; i < 37; ++i) {
        const int key =
            h % 2 == 0 ? i : std::max(0, i - 2);  // the last, or the first, of the window
        for (int c = 0; c < 8; ++c)
          ASSERT_EQ(to_float(x.o(b, h, i, c)), Inputs::value(h / 2, key, c));
        if (h % 2 == 0)
          ASSERT_EQ(x.lse(b, h, i), 0);
        else
          expect_lse(x.lse(b, h, i), 128.0 * (i - key), 128.0 * (i - key));
      }
}

TEST(FlashForward, PlainFunctionsAreMasks) {
  Inputs x(1, 1, 1, 3, 4, 16, 4);
  x.run(ChosenMod{}, SameParity{});
  for (int i = 0; i < 3; ++i) {
    for (int c = 0; c < 4; ++c)
      EXPECT_EQ(to_float(x.o(0, 0, i, c)), Inputs::value(0, i % 2 + 1, c));
    EXPECT_EQ(x.lse(0, 0, i), 0.6931471805599453f);
  }
}

/// Scores 0 and 1024 become 0 and 30: the rest weighs e^-30, which no half of this size shows.
TEST(FlashForward, SoftCapsScores) {
  Inputs x(1, 1, 1, 4, 4, 16, 4);
  for (int i = 0; i < 4; ++i) x.q(0, 0, i, i) = x.k(0, 0, i, i) = from_float<half>(64);
  ChosenMod mod{ChosenMod::capped};
  ForwardOptions options;
  options.scale = 0.25;
  forward<half>(x.q.view(), x.k.view(), x.v.view(), x.o.view(), x.lse.view(), mod, SameParity{},
                options);
  for (int i = 0; i < 4; ++i) {
    for (int c = 0; c < 4; ++c) EXPECT_EQ(to_float(x.o(0, 0, i, c)), Inputs::value(0, i, c));
    expect_lse(x.lse(0, 0, i), 30 + std::exp(-30.0),
               30 + 30 * 4);  // tanh and its argument: 2^-22 each
  }
}

TEST(FlashForward, TakesStridedViewsAndLeavesTheRestAlone) {
  // [B, S, H, D] with rows of 12 for D = 9: neither vectors nor contiguous
  const int heads = 2, rows = 5, d = 9, row = 12;
  const auto strided = [&](std::vector<half>& memory) {
    return TensorView<half, 4>{
        memory.data(), {1, heads, rows, d}, {rows * heads * row, row, heads * row, 1}};
  };
  std::vector<half> q(rows * heads * row, half{0xffff}), k(q), v(q), o(q);
  Inputs x(1, heads, heads, rows, rows, d, d);
  for (int h = 0; h < heads; ++h)
    for (int i = 0; i < rows; ++i)
      for (int c = 0; c < d; ++c) {
        strided(q)(0, h, i, c) = strided(k)(0, h, i, c) = half{0};
        strided(v)(0, h, i, c) = x.v(0, h, i, c);
      }
  Tensor<float, 1> slope({1});
  slope(0) = 128;
  forward<half>(strided(q), strided(k), strided(v), strided(o), x.lse.view(), alibi(slope),
                causal_window);
  for (int h = 0; h < heads; ++h)
    for (int i = 0; i < rows; ++i)
      for (int c = 0; c < row; ++c) {
        const half got = o[(i * heads + h) * row + c];
        if (c < d)
          EXPECT_EQ(to_float(got), Inputs::value(h, i, c));
        else
          EXPECT_EQ(got.bits, 0xffff) << "a gap was written";
      }
}

TEST(FlashForward, RowsWithNoKeyAreZeroAndMinusInfinity) {
  Inputs none(1, 2, 1, 5, 0, 8, 8);
  none.run(ChosenMod{}, SameParity{});
  for (const half& x : none.o.values()) EXPECT_EQ(x.bits, 0);
  for (const float x : none.lse.values()) EXPECT_EQ(x, -infinity);
  Inputs odd(1, 1, 1, 2, 1, 8, 8);  // row 1 sees no key of its parity
  odd.run(ChosenMod{}, SameParity{});
  EXPECT_EQ(odd.lse(0, 0, 0), 0);
  EXPECT_EQ(odd.lse(0, 0, 1), -infinity);
  for (int c = 0; c < 8; ++c) EXPECT_EQ(odd.o(0, 0, 1, c).bits, 0);
}

TEST(FlashForward, ZeroSizesAreNoWork) {
  for (const auto& [b, h, sq] : {std::array{0, 1, 4}, {1, 0, 4}, {1, 1, 0}}) {
    Inputs x(b, h, h, sq, 4, 8, 8);
    EXPECT_NO_THROW(x.run(ChosenMod{}, SameParity{}));
  }
  Inputs no_values(1, 1, 1, 3, 3, 8, 0);
  no_values.run(ChosenMod{}, SameParity{});
  expect_lse(no_values.lse(0, 0, 0), std::log(2.0));
}

TEST(FlashForwardRefuses, WhatDoesNotFit) {
  const ChosenMod mod;
  const SameParity mask;
  Inputs x(1, 4, 2, 3, 5, 8, 8);
  const auto call = [&](auto o, auto lse, auto q) {
    return refusal([&] { forward<half>(q, x.k.view(), x.v.view(), o, lse, mod, mask); });
  };
  const auto o = x.o.view(), q = x.q.view();
  const auto lse = x.lse.view();
  EXPECT_EQ(call(o, lse, q), "");
  for (half& y : x.o.values()) y = half{0x1234};
  Tensor<half, 4> bad_o({1, 4, 3, 7}), three_heads({1, 3, 3, 8});
  Tensor<float, 3> bad_lse({1, 4, 2});
  expect_names(call(bad_o.view(), lse, q), {"o", "[1, 4, 3, 7]", "[1, 4, 3, 8]"});
  expect_names(call(o, bad_lse.view(), q), {"lse", "[1, 4, 2]", "[1, 4, 3]"});
  expect_names(call(o, lse, three_heads.view()), {"k", "2 heads"});
  expect_names(call(q, lse, q), {"o", "overlaps", "q"});
  auto itself = o;
  itself.strides[1] = 0;
  expect_names(call(itself, lse, q), {"o", "address of its own"});
  ForwardOptions nan_scale;
  nan_scale.scale = std::nan("");
  expect_names(
      refusal([&] { forward<half>(q, x.k.view(), x.v.view(), o, lse, mod, mask, nan_scale); }),
      {"scale"});
  for (const half& y : x.o.values())
    EXPECT_EQ(y.bits, 0x1234) << "nothing is written before a refusal";
  for (const auto& [d, dv] : {std::pair{257, 8}, {8, 257}}) {
    Inputs large(1, 1, 1, 2, 2, d, dv);
    expect_names(refusal([&] { large.run(mod, mask); }), {"head size", "257", "256"});
  }
}

TEST(FlashForwardRefuses, ModsAndMasksThatDoNotFit) {
  Inputs x(1, 4, 2, 3, 5, 8, 8);
  Tensor<float, 1> three({3}), one({1});
  expect_names(refusal([&] { x.run(alibi(three), causal_window); }),
               {"alibi", "3 slopes", "Hq = 4"});
  auto negative = causal_window;
  negative.second.left = -1;
  expect_names(refusal([&] { x.run(alibi(one), negative); }), {"window", "left = -1"});
  expect_names(refusal([&] { x.run(ChosenMod{ChosenMod::overflowing}, SameParity{}); }),
               {"score mod"});
}

TEST(FlashForwardFaults, ACapturedReadOutOfRangeNamesTheTensor) {
  Inputs x(1, 1, 1, 3, 5, 8, 8);
  Tensor<float, 1> enough({5}), short_of_one({4});
  ChosenMod mod{ChosenMod::captured};
  mod.table = Captured<1>(enough, "my table");
  EXPECT_NO_THROW(x.run(mod, SameParity{}));
  mod.table = Captured<1>(short_of_one, "my table");
  try {
    x.run(mod, SameParity{});
    FAIL() << "read past the end";
  } catch (const simt::CheckerFault& fault) {
    EXPECT_EQ(fault.kind(), simt::FaultKind::out_of_bounds);
    expect_names(fault.what(), {"my table", "at 4", "4 entries"});
  }
  mod.table = Captured<1>(enough, "my table");
  EXPECT_NO_THROW(x.run(mod, SameParity{})) << "nothing of the fault is left";
}

}  // namespace flash_forward_test
}  // namespace ATTN_TARGET
}  // namespace attn
