// fp32_forward and tf32_forward on one engine: answers known by hand, and the formulas in
// fp64 with a bound for what fp32 may lose on inputs whose scores are exact.
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <stdexcept>

#include "optimized/fp32_forward_fixtures.h"

namespace attn {
inline namespace ATTN_TARGET {
namespace fp32_forward_test {

template <class Kernel>
class Fp32Forward : public testing::Test {};
using Kernels = testing::Types<Fma, Tf32>;
TYPED_TEST_SUITE(Fp32Forward, Kernels);

TYPED_TEST(Fp32Forward, SteepSlopesMakeOneHotRows) {
  for (const auto& [d, dv] : {std::pair{8, 8}, {64, 80}, {9, 13}, {132, 7}, {3, 256}}) {
    Inputs x(2, 4, 2, 37, 37, d, dv);
    x.mark_values();
    x.mask.which = ChosenMask::window;
    for (int h = 0; h < 4; ++h) x.slope(h) = h % 2 == 0 ? 128 : -128;
    x.run<TypeParam>();
    for (int b = 0; b < 2; ++b)
      for (int h = 0; h < 4; ++h)
        for (int i = 0; i < 37; ++i) {
          const int key = h % 2 == 0 ? i : std::max(0, i - 2);  // the last or first of the window
          for (int c = 0; c < dv; ++c)
            ASSERT_EQ(x.o(b, h, i, c), TypeParam::stored(Inputs::marker(b, h / 2, key, c)))
                << d << " " << dv << ": " << b << " " << h << " " << i << " " << c;
          ASSERT_EQ(x.row_max(b, h, i) == 0, key == i);
        }
  }
}

/// Whole numbers below 2^11 add up exactly, and a mean of 2 or 4 is exact.
TYPED_TEST(Fp32Forward, UniformRowsAreMeans) {
  Inputs x(1, 3, 1, 70, 4, 5, 6);
  std::mt19937 random(3);
  for (float& y : x.v.values()) y = static_cast<float>(static_cast<int>(random() % 2047) - 1023);
  for (const auto which : {ChosenMask::full, ChosenMask::parity}) {
    x.mask.which = which;
    x.run<TypeParam>();
    for (int h = 0; h < 3; ++h)
      for (int i = 0; i < 70; ++i) {
        for (int c = 0; c < 6; ++c) {
          float sum = 0, keys = 0;
          for (int j = 0; j < 4; ++j)
            if (x.mask(0, h, i, j)) sum += x.v(0, 0, j, c), ++keys;
          ASSERT_EQ(x.o(0, h, i, c), sum / keys);
        }
        ASSERT_EQ(x.lse(0, h, i), (which == ChosenMask::full ? 2.0f : 1.0f) * 0.6931471805599453f);
        ASSERT_EQ(x.row_max(0, h, i), 0);
      }
  }
}

template <class Kernel>
void expect_rows(Inputs& x) {
  std::mt19937 random(static_cast<unsigned>(x.d));
  const auto fill = [&](auto& tensor, int largest) {
    for (float& y : tensor.values())
      y = static_cast<float>(static_cast<int>(random() % (2 * largest + 1)) - largest);
  };
  fill(x.q, 4);
  fill(x.k, 4);
  fill(x.v, 500);
  fill(x.slope, 1);
  fill(x.sink, 6);
  x.template run<Kernel>();
  for (int b = 0; b < x.b; ++b)
    for (int h = 0; h < x.hq; ++h)
      for (int i = 0; i < x.sq; ++i) {
        const ExpectedRow row(x, b, h, i, Kernel::product_rounding);
        ASSERT_LE(std::abs(x.lse(b, h, i) - row.lse), row.lse_bound) << h << " " << i;
        ASSERT_LE(std::abs(x.row_max(b, h, i) - row.row_max), row.row_max_bound);
        for (int c = 0; c < x.dv; ++c)
          ASSERT_LE(std::abs(x.o(b, h, i, c) - row.o[c]), row.o_bound[c])
              << b << " " << h << " " << i << " " << c << ": " << x.o(b, h, i, c);
      }
}

TYPED_TEST(Fp32Forward, RowsOfManyTiles) {
  for (const auto& [d, dv] : {std::pair{20, 24}, {100, 17}, {40, 200}}) {
    Inputs x(2, 4, 2, 67, 101, d, dv);
    x.options.scale = 0x1p-4;
    expect_rows<TypeParam>(x);
    x.mask.which = ChosenMask::parity;
    expect_rows<TypeParam>(x);
  }
}
TYPED_TEST(Fp32Forward, SinkAndDropout) {
  Inputs x(2, 6, 2, 35, 70, 16, 12);  // scale 1/4
  x.give_sink();
  expect_rows<TypeParam>(x);
  x.options.dropout = {.p = 0.5, .seed = 0x123456789abcdef};
  expect_rows<TypeParam>(x);
  x.options.sink.reset();
  expect_rows<TypeParam>(x);
}

TYPED_TEST(Fp32Forward, RowsWithNoKey) {
  Inputs none(1, 2, 1, 5, 0, 8, 8);
  none.run<TypeParam>();
  for (const float y : none.o.values()) EXPECT_EQ(y, 0);
  for (const float y : none.lse.values()) EXPECT_EQ(y, -infinity);
  for (const float y : none.row_max.values()) EXPECT_EQ(y, -infinity);
  none.give_sink();  // logits 0 and 3, and the row's LSE is that
  none.sink(1) = 3;
  none.run<TypeParam>();
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(none.lse(0, 0, i), 0);
    EXPECT_LE(std::abs(none.lse(0, 1, i) - 3), 4 * 3 * unit);
    EXPECT_EQ(none.row_max(0, 1, i), -infinity);
  }
  for (const float y : none.o.values()) EXPECT_EQ(y, 0);
  none.sink(0) = nan;
  none.run<TypeParam>();
  EXPECT_TRUE(std::isnan(none.lse(0, 0, 2)));
  EXPECT_EQ(none.o(0, 0, 2, 3), 0);

  Inputs odd(1, 1, 1, 2, 1, 8, 8);  // row 1 sees no key of its parity
  odd.mask.which = ChosenMask::parity;
  odd.run<TypeParam>();
  EXPECT_EQ(odd.lse(0, 0, 0), 0);
  EXPECT_EQ(odd.lse(0, 0, 1), -infinity);
  for (int c = 0; c < 8; ++c) EXPECT_EQ(odd.o(0, 0, 1, c), 0);
}

TYPED_TEST(Fp32Forward, ANaNReachesItsRowsOnly) {
  const int rows = 6, keys = 40;
  for (const bool in_values : {false, true}) {
    Inputs x(1, 2, 2, rows, keys, 8, 8);
    x.mask.which = ChosenMask::parity;
    if (in_values)
      x.v(0, 1, 35, 2) = nan;  // a tile that no row of head 0 reads
    else
      x.k(0, 1, 35, 2) = nan;
    x.run<TypeParam>();
    for (int h = 0; h < 2; ++h)
      for (int i = 0; i < rows; ++i) {
        const bool bad = h == 1 && i % 2 == 1;
        // A masked pair is no pair, but a NaN in V may poison the rows computed with its tile.
        if (in_values && h == 1 && !bad) continue;
        EXPECT_EQ(std::isnan(x.lse(0, h, i)), bad) << h << " " << i;
        EXPECT_EQ(std::isnan(x.row_max(0, h, i)), bad);
        for (int c = 0; c < 8; ++c) EXPECT_EQ(std::isnan(x.o(0, h, i, c)), bad);
      }
  }
}

TYPED_TEST(Fp32Forward, TakesStridedViewsAndLeavesTheRestAlone) {
  // [B, S, H, D] in rows of 12 numbers, of which 9 are the tensor's: neither vectors nor contiguous
  const int heads = 2, rows = 37, d = 9, line = 12;
  const auto strided = [&](std::vector<float>& memory) {
    return TensorView<float, 4>{
        memory.data() + 1, {1, heads, rows, d}, {rows * heads * line, line, heads * line, 1}};
  };
  std::vector<float> q(1 + rows * heads * line, nan), k(q), v(q), o(q);
  Inputs x(1, heads, heads, rows, rows, d, d);
  x.mark_values();
  x.mask.which = ChosenMask::window;
  x.slope(0) = x.slope(1) = 128;
  for (int h = 0; h < heads; ++h)
    for (int i = 0; i < rows; ++i)
      for (int c = 0; c < d; ++c) {
        strided(q)(0, h, i, c) = strided(k)(0, h, i, c) = 0;
        strided(v)(0, h, i, c) = x.v(0, h, i, c);
      }
  AttentionArguments call = x.call();
  call.q = describe("q", strided(q));
  call.k = describe("k", strided(k));
  call.v = describe("v", strided(v));
  call.o = describe("o", strided(o));
  call.row_max = {};
  TypeParam::run(call, alibi(x.slope), x.mask);
  for (int h = 0; h < heads; ++h)
    for (int i = 0; i < rows; ++i)
      for (int c = 0; c < line; ++c) {
        const float got = o[1 + (i * heads + h) * line + c];
        if (c < d) {
          EXPECT_EQ(got, TypeParam::stored(Inputs::marker(0, h, i, c)));
        } else if (1 + (i * heads + h) * line + c < static_cast<int>(o.size())) {
          EXPECT_TRUE(std::isnan(got)) << "a gap was written";
        }
      }
  for (const float y : x.row_max.values()) EXPECT_TRUE(std::isnan(y)) << "was not asked for";
}

TYPED_TEST(Fp32Forward, ZeroSizesAreNoWork) {
  for (const auto& [b, h, sq] : {std::array{0, 1, 4}, {1, 0, 4}, {1, 1, 0}}) {
    Inputs x(b, h, h, sq, 4, 8, 8);
    EXPECT_NO_THROW(x.run<TypeParam>());
  }
  Inputs no_values(1, 1, 1, 3, 2, 8, 0);
  no_values.run<TypeParam>();
  EXPECT_EQ(no_values.lse(0, 0, 0), 0.6931471805599453f);
}

TYPED_TEST(Fp32Forward, RefusesWhatDoesNotFit) {
  Inputs x(1, 2, 2, 3, 5, 8, 8);
  const auto refused = [&](const AttentionArguments& call) {
    EXPECT_THROW(TypeParam::run(call, alibi(x.slope), x.mask), std::invalid_argument);
    for (const float y : x.o.values()) EXPECT_TRUE(std::isnan(y)) << "written before a refusal";
  };
  AttentionArguments call = x.call();
  call.o.extents[3] = 7;
  refused(call);
  call = x.call();
  call.lse = describe("lse", x.row_max.view());  // twice the same output
  refused(call);
  call = x.call();
  call.q.dtype = call.k.dtype = call.v.dtype = DType::f64;
  refused(call);
  Inputs large(1, 1, 1, 2, 2, 257, 8);
  EXPECT_THROW(large.run<TypeParam>(), std::invalid_argument);
  Tensor<float, 1> three({3});
  EXPECT_THROW(TypeParam::run(x.call(), alibi(three), x.mask), std::invalid_argument);
}

/// 1 + 2^-11 is a tie between two TF32 numbers, and goes to the larger. Under a large scale the two
/// keys are one-hot in fp32 and equal in TF32; the same with Q and K exchanged.
TEST(Tf32Forward, RoundsWhatEntersAProduct) {
  for (const bool in_queries : {false, true}) {
    Inputs x(1, 1, 1, 1, 2, 2, 1);
    x.options.scale = 0x1p20;
    const float tie = 1 + 0x1p-11f, next = 1 + 0x1p-10f;
    if (in_queries) {  // channels that the two keys choose
      x.q(0, 0, 0, 0) = tie, x.q(0, 0, 0, 1) = next;
      x.k(0, 0, 0, 0) = x.k(0, 0, 1, 1) = 1;
    } else {
      x.q(0, 0, 0, 0) = 1;
      x.k(0, 0, 0, 0) = tie, x.k(0, 0, 1, 0) = next;
    }
    x.v(0, 0, 0, 0) = 2, x.v(0, 0, 1, 0) = 4;
    x.run<Fma>();
    EXPECT_EQ(x.o(0, 0, 0, 0), 4) << in_queries;
    x.run<Tf32>();
    EXPECT_EQ(x.o(0, 0, 0, 0), 3) << in_queries;
  }
}

}  // namespace fp32_forward_test
}  // namespace ATTN_TARGET
}  // namespace attn
