#include "mods/lang/index.h"

#include <gtest/gtest.h>

#include <concepts>
#include <limits>

#include "mods/lang/call.h"
#include "mods/lang/environments.h"

namespace attn {
namespace {

template <class Env>
struct Place {
  Index<Env> b, h, q, kv;
};
template <class Env>
Place<Env> place(Env& env, int b, int h, int q, int kv) {
  return {{b, &env}, {h, &env}, {q, &env}, {kv, &env}};
}

/// s + slope[h] * (kv - q)
struct Alibi {
  Captured<1> slope;  // [Hq]
  template <class Score, class Index>
  Score operator()(Score s, Index, Index h, Index q, Index kv) const {
    return s + slope(h) * (kv - q);
  }
};

/// s + the sum of ten entries weighted 1 to 10: reads in a loop, some of them twice.
struct TenReads {
  Captured<2> table;  // [1, 8]
  template <class Score, class Index>
  Score operator()(Score s, Index, Index h, Index q, Index) const {
    Score sum = s;
    for (int r = 0; r < 10; ++r) sum = sum + (r + 1) * table(h, attn::floor_mod(q + r, 8));
    return sum;
  }
};

TEST(Index, ScoresAreDoubleInTheReference) {
  Tensor<float, 1> slope({2});
  slope.values() = {0.5f, 0.7f};
  ExactEnv env;
  const auto p = place(env, 0, 1, 0, 1000003);
  EXPECT_EQ(call_mod(Alibi{slope}, 0.25, p.b, p.h, p.q, p.kv),
            0.25 + static_cast<double>(0.7f) * 1000003.0);
}

TEST(Index, ArithmeticStaysWhole) {
  ExactEnv env{{2, 4, 2, 10, 20}};
  const auto p = place(env, 1, 2, 7, -3);
  EXPECT_EQ((p.q + p.kv * 2 - 1).value, 0);
  EXPECT_EQ((p.kv / 2).value, -1);
  EXPECT_EQ((p.kv % 2).value, -1);
  EXPECT_EQ((10 / p.kv).value, -3);
  EXPECT_EQ(attn::floor_div(p.kv, 2).value, -2);
  EXPECT_EQ(attn::floor_mod(p.kv, 2).value, 1);
  EXPECT_EQ(attn::floor_div(10, p.kv).value, -4);
  EXPECT_EQ((-p.q).value, -7);
  EXPECT_EQ(attn::abs(p.kv).value, 3);
  EXPECT_EQ(attn::max(p.q, p.kv).value, 7);
  EXPECT_EQ(attn::min(p.q, 5).value, 5);
  EXPECT_EQ(attn::clamp(p.kv, 0, 3).value, 0);
  EXPECT_EQ(attn::select(p.q > p.kv, p.q, 1).value, 7);
  EXPECT_EQ(sizes(p.q).skv - sizes(p.kv).sq, 10);
  static_assert(std::same_as<decltype(p.q / p.kv), Index<ExactEnv>>);
  static_assert(std::same_as<decltype(p.q * 0.5), double>);
  static_assert(std::same_as<decltype(p.q < p.kv), bool>);
  EXPECT_EQ(p.q / 2.0, 3.5);
  EXPECT_EQ(attn::tanh(p.b), std::tanh(1.0));
  EXPECT_TRUE(p.q >= 7 && 7 <= p.q && p.q == 7 && p.q != p.kv && p.kv < 0.5);
}

TEST(Index, DivisionByZeroThrows) {
  ExactEnv env;
  const auto p = place(env, 0, 0, 7, 0);
  EXPECT_THROW(p.q / p.kv, std::invalid_argument);
  EXPECT_THROW(p.q % 0, std::invalid_argument);
  EXPECT_THROW(attn::floor_div(p.q, p.kv), std::invalid_argument);
  EXPECT_THROW(attn::floor_mod(5, p.kv), std::invalid_argument);
}

TEST(Index, OneRunPerReadGivesTheGradientOfALoop) {
  Tensor<float, 2> table({1, 8});
  for (int i = 0; i < 8; ++i) table(0, i) = static_cast<float>(i);
  const TenReads mod{table};
  DualEnv env;
  const auto p = place(env, 0, 3, 5, 0);  // head 3 reads the broadcast axis at 0
  std::array<double, 8> gradient{}, expected{};
  for (int r = 0; r < 10; ++r) expected[static_cast<std::size_t>((5 + r) % 8)] += r + 1;
  int reads = 0;
  for (int seeded = 0; seeded == 0 || seeded < reads; ++seeded) {
    env.reads = 0;
    env.seeded = seeded;
    const Dual<double> y = call_mod(mod, Dual<double>(0.5), p.b, p.h, p.q, p.kv);
    EXPECT_EQ(env.seeded_data, table.view().data);
    gradient[static_cast<std::size_t>(env.seeded_offset)] += y.d;
    reads = env.reads;
  }
  EXPECT_EQ(reads, 10);
  EXPECT_EQ(gradient, expected);
  env.reads = 0;
  env.seeded = -1;
  EXPECT_EQ(call_mod(mod, Dual<double>(0.5, 1.0), p.b, p.h, p.q, p.kv).d, 1);
}

template <class F>
std::string told(F f) {
  try {
    f();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(Captured, OutOfRangeReadsNameTheTensor) {
  Tensor<float, 2> bias({4, 3});
  ExactEnv env;
  const Captured<2> c(bias, "bias");
  const auto p = place(env, 0, 0, 4, 3);
  EXPECT_EQ(told([&] { c(p.q, 0); }),
            "bias: index 4 in axis 0 of shape [4, 3], expected 0 to 3");
  EXPECT_EQ(told([&] { c(0, p.kv); }),
            "bias: index 3 in axis 1 of shape [4, 3], expected 0 to 2");
  EXPECT_EQ(told([&] { c(p.b - 1, 0); }),
            "bias: index -1 in axis 0 of shape [4, 3], expected 0 to 3");
  DualEnv dual;
  EXPECT_THROW(c(Index<DualEnv>{4, &dual}, 0), std::invalid_argument);
  RoundedEnv rounded;
  EXPECT_THROW(c(Index<RoundedEnv>{4, &rounded}, 0), std::invalid_argument);
}

TEST(Captured, ReadsEveryStorageType) {
  const half halves[2] = {from_float<half>(0.5f), from_float<half>(-2)};
  const bfloat16 bfloats[2] = {from_float<bfloat16>(1.5f), from_float<bfloat16>(3)};
  const double doubles[2] = {0.1, 0.2};
  const std::int32_t integers[2] = {7, -7};
  const bool flags[2] = {true, false};
  ExactEnv env;
  const Index<ExactEnv> one{1, &env};
  const auto read = [&](const auto* data) {
    using T = std::remove_cvref_t<decltype(*data)>;
    return Captured<1, T>(TensorView<const T, 1>{data, {2}, {1}})(one);
  };
  EXPECT_EQ(read(halves), -2);
  EXPECT_EQ(read(bfloats), 3);
  EXPECT_EQ(read(doubles), 0.2);
  EXPECT_EQ(read(integers).value, -7);
  EXPECT_FALSE(read(flags));
}

TEST(Captured, StridesMayBeZeroOrNegative) {
  const float data[4] = {1, 2, 3, 4};
  ExactEnv env;
  const Index<ExactEnv> zero{0, &env}, two{2, &env};
  const Captured<1> reversed(TensorView<const float, 1>{data + 3, {4}, {-1}});
  EXPECT_EQ(reversed(two), 2);
  const Captured<2> expanded(TensorView<const float, 2>{data, {4, 4}, {0, 1}});
  EXPECT_EQ(expanded(two, zero), 1);
}

// ---- functors that are no templates ------------------------------------------------------------

struct PlainMod {
  float operator()(float s, int, int h, int q, int kv) const {
    return s + static_cast<float>(h) * static_cast<float>(kv - q);
  }
};
struct PlainMask {
  bool operator()(int, int, int q, int kv) const { return q >= kv; }
};
struct ScalarsOnly {
  template <std::floating_point S, std::integral I>
  S operator()(S s, I, I, I q, I kv) const {
    return q > kv ? s : -s;  // `?:` is fine on scalars
  }
};

TEST(Call, PlainFunctorsRunElementByElement) {
  ExactEnv env;
  const auto p = place(env, 0, 2, 5, 8);
  EXPECT_EQ(call_mod(PlainMod{}, 0.5, p.b, p.h, p.q, p.kv), 6.5);
  EXPECT_FALSE(call_mask(PlainMask{}, p.b, p.h, p.q, p.kv));
  EXPECT_TRUE(call_mask(PlainMask{}, p.b, p.h, p.kv, p.q));
  EXPECT_TRUE(call_mask([](int, int, int q, int kv) { return q < kv; }, p.b, p.h, p.q, p.kv));
}

TEST(Call, FunctorsConstrainedToScalarsRunElementByElement) {
  ExactEnv env;
  const auto p = place(env, 0, 2, 5, 8);
  EXPECT_EQ(call_mod(ScalarsOnly{}, 0.1, p.b, p.h, p.q, p.kv), -0.1);  // in double
}

struct ReadsThreeTensors {
  Captured<1> slope;
  Captured<2> bias;
  Captured<1, std::int32_t> doc;
  template <class Score, class Index>
  Score operator()(Score s, Index, Index h, Index q, Index kv) const {
    return s * slope(h) + bias(doc(q), kv) + slope(h + 1);
  }
};

TEST(TraceEnv, ListsEveryFloatingTensorOnce) {
  Tensor<float, 1> slope({4});
  Tensor<float, 2> bias({3, 5});
  Tensor<std::int32_t, 1> doc({9});
  TraceEnv env;
  const auto p = place(env, 0, 0, 0, 0);
  const ReadsThreeTensors mod{{slope, "slope"}, {bias, "bias"}, {doc, "doc"}};
  call_mod(mod, 0.0, p.b, p.h, p.q, p.kv);
  ASSERT_EQ(env.tensors.size(), 2u);
  EXPECT_STREQ(env.tensors[0].name, "slope");
  EXPECT_STREQ(env.tensors[1].name, "bias");
  EXPECT_EQ(env.tensors[1].data, bias.view().data);
  EXPECT_EQ(env.tensors[1].extents, (std::vector<std::int64_t>{3, 5}));
  EXPECT_EQ(env.tensors[1].strides, (std::vector<std::int64_t>{5, 1}));
  EXPECT_EQ(env.tensors[1].dtype, DType::f32);
  ASSERT_EQ(env.tables.size(), 1u);
  EXPECT_STREQ(env.tables[0].name, "doc");
}

}  // namespace
}  // namespace attn
