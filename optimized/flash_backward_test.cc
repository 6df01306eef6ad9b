// The backward pass, and the forward pass before it, on problems whose answer is known exactly:
// every score is 0, so that each weight is 1/2 or 1/4, and the rest is whole numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <utility>

#include "mods/lang/tree_functor.h"
#include "optimized/exact_fixtures.h"
#include "optimized/simt/fault.h"
#include "reference/backward.h"

namespace attn::path_test {
namespace {

/// One exact problem: a mask as text and as a function, and what else is switched on.
struct ExactCase {
  const char* what;
  const char* mask;
  bool (*attends)(int b, int h, int i, int j);
  bool sink = false;
  Dropout dropout{};
};

const ExactCase exact_cases[] = {
    {"4 keys, or 2", "h % 2 == 0 ? kv / 4 == q / 4 : kv / 2 == q / 2",
     [](int, int h, int i, int j) { return h % 2 == 0 ? j / 4 == i / 4 : j / 2 == i / 2; }},
    {"3 keys and a sink", "kv / 4 == q / 4 && kv % 4 != 3",
     [](int, int, int i, int j) { return j / 4 == i / 4 && j % 4 != 3; }, true},
    {"4 keys, and half of them dropped",
     "kv / 4 == (q + 8 * b) / 4",
     [](int b, int, int i, int j) { return j / 4 == (i + 8 * b) / 4; },
     false,
     {0.5, 77}},
};

/// 70 queries on 68 keys: tails, rows without keys, two heads to a group.
constexpr Lengths exact_lengths{2, 4, 2, 70, 68, 40, 24};
constexpr double exact_scale = 0.5;

template <class T>
void prepare(Attention<T>& x, const ExactCase& c) {
  fill_without_scores(x);
  x.options.scale = exact_scale;
  x.options.dropout = c.dropout;
  x.mod = "2 * score + slope[h] * (kv - q)";  // slopes of 0 have gradients
  x.mask = c.mask;
  if (c.sink) x.give_sink();
}

template <class T>
ExactAnswer answer(const Attention<T>& x, const ExactCase& c) {
  UniformRows rows{c.attends, c.sink};
  if (c.dropout.p > 0)
    rows.factor = [&](int b, int h, int i, int j) {
      return dropout_by_hand(c.dropout, b, h, i, j);
    };
  return exact_answer(x, rows, 2 * exact_scale);
}

template <class T>
std::string gradient_difference(const Attention<T>& x, const ExactAnswer& y) {
  std::string text = difference("dq", x.dq, y.dq) + difference("dk", x.dk, y.dk) +
                     difference("dv", x.dv, y.dv) + difference("d_slope", x.d_slope, y.d_slope);
  if (x.options.sink) text += difference("d_sink", x.d_sink, y.d_sink);
  return text;
}

TEST(FlashBackward, IsExactOnWholeNumbers) {
  for (const ExactCase& c : exact_cases)
    for_each_build([&](auto t, Engine engine) {
      SCOPED_TRACE(c.what);
      Attention<decltype(t)> x(exact_lengths);
      prepare(x, c);
      const ExactAnswer y = answer(x, c);
      ASSERT_TRUE(y.fits);
      x.forward(engine);
      ASSERT_EQ(difference("o", x.o, y.o), "");
      ASSERT_EQ(difference("lse", x.lse, y.lse), "");
      x.backward(engine);
      EXPECT_EQ(gradient_difference(x, y), "");
    });
}

/// The gradients of the reference for the tables `slope` and `bias`.
reference::BackwardResult reference_gradients(const Attention<half>& x) {
  Tables tables;
  tables.add("slope", x.slope.view());
  tables.add("bias", x.bias.view());
  const TreeMod mod(parse_mod(x.mod, tables.declarations()), tables);
  const TreeMask mask(parse_mask(x.mask), tables);
  return reference::backward(x.q.view(), x.k.view(), x.v.view(), x.d_o.view(), mod, mask, x.options,
                             x.d_lse.view());
}

/// Exact numbers here are multiples of 2^-20, and the reference is a few roundings of fp64 away.
template <class X>
void expect_equal_numbers(const std::vector<X>& exact, const std::vector<double>& reference) {
  ASSERT_EQ(exact.size(), reference.size());
  for (std::size_t i = 0; i < exact.size(); ++i)
    ASSERT_EQ(exact[i], std::rint(reference[i] * 0x1p20) * 0x1p-20) << i;
}

TEST(FlashBackward, TheExactAnswersAreTheReferences) {
  for (const ExactCase& c : exact_cases) {
    SCOPED_TRACE(c.what);
    Attention<half> x(exact_lengths);
    prepare(x, c);
    const reference::BackwardResult reference = reference_gradients(x);
    const ExactAnswer y = answer(x, c);
    expect_equal_numbers(y.dq.values(), reference.dq.values());
    expect_equal_numbers(y.dk.values(), reference.dk.values());
    expect_equal_numbers(y.dv.values(), reference.dv.values());
    expect_equal_numbers(y.d_slope, reference.d_captured.at(0).values);
    if (c.sink) expect_equal_numbers(y.d_sink, reference.d_sink);
  }
}

TEST(FlashBackward, SumsOverEveryReadOfEveryTensor) {
  for (const Engine engine : {Engine::warp, Engine::thread}) {
    Attention<half> x(exact_lengths);
    prepare(x, exact_cases[0]);
    x.mod = "score + slope[h] * kv + bias[b] * (q - 2 * kv) - slope[0] * q";
    x.forward(engine);
    std::vector<float> d_bias(2, std::nanf(""));
    AttentionCall call = x.backward_call();
    float* const gradients[] = {x.d_slope.data(), d_bias.data()};
    call.d_captured = gradients;
    implementation_named("flash_backward").run(call, engine);
    const reference::BackwardResult reference = reference_gradients(x);
    expect_equal_numbers(x.d_slope, reference.d_captured.at(0).values);
    expect_equal_numbers(d_bias, reference.d_captured.at(1).values);
  }
}

/// The comparison with them notices each fault that the backward pass can commit.
TEST(FlashBackward, ExactnessShowsPlantedFaults) {
  const std::pair<PlantedFault, int> faults[] = {
      {PlantedFault::M35, 0}, {PlantedFault::M35b, 0}, {PlantedFault::M39, 0},
      {PlantedFault::M37, 0}, {PlantedFault::M40, 0},  {PlantedFault::M42, 0},
      {PlantedFault::M44, 0}, {PlantedFault::M45, 0},  {PlantedFault::M47, 0},
      {PlantedFault::M48, 2}, {PlantedFault::M48b, 2}, {PlantedFault::none, 2}};
  for (const auto& [fault, which] : faults) {
    const ExactCase& c = exact_cases[which];
    Lengths n = exact_lengths;
    if (fault == PlantedFault::M35b) std::swap(n.d, n.dv);
    Attention<half> x(n);
    prepare(x, c);
    x.forward(Engine::warp);
    const Plant plant(fault);
    bool noticed = false;
    try {
      implementation_named("flash_backward").run_planted(x.backward_call());
      noticed = !gradient_difference(x, answer(x, c)).empty();
    } catch (const simt::CheckerFault&) {
      noticed = true;
    }
    EXPECT_EQ(noticed, fault != PlantedFault::none) << static_cast<int>(fault);
  }
}

TEST(FlashBackward, TakesEveryHeadSize) {
  for (const auto& [d, dv] :
       {std::pair{8, 8}, {64, 64}, {72, 9}, {100, 128}, {256, 130}, {1, 256}}) {
#if defined(ATTN_FIRST_INSTANCE_ONLY)
    if (std::max(d, dv) > 64) continue;
#endif
    Attention<half> x({1, 2, 1, 33, 36, d, dv});
    prepare(x, exact_cases[0]);
    for (half& entry : x.d_o.values()) entry = half{0};  // but for a few, so that dS fits
    for (int i = 0; i < 33; ++i)
      for (int h = 0; h < 2; ++h) x.d_o(0, h, i, (i + h) % dv) = from_float<half>(1);
    const ExactAnswer y = answer(x, exact_cases[0]);
    ASSERT_TRUE(y.fits);
    x.forward(Engine::warp);
    x.backward(Engine::warp);
    EXPECT_EQ(gradient_difference(x, y), "") << d << " " << dv;
  }
}

TEST(FlashBackward, RowsWithoutKeysContributeNothing) {
  for_each_build([&](auto t, Engine engine) {
    Attention<decltype(t)> x({1, 2, 2, 40, 40, 16, 16});
    x.fill_all();
    x.mod = "score + slope[h] * (kv - q)";
    x.mask = "false";
    x.give_sink();
    x.forward(engine);
    x.backward(engine);
    for (const auto* gradient : {&x.dq, &x.dk, &x.dv})
      for (const auto& entry : gradient->values()) ASSERT_EQ(to_float(entry), 0);
    for (int h = 0; h < 2; ++h) {
      EXPECT_EQ(x.d_slope[h], 0);
      float sum = 0;  // LSE is the sink, so that its weight is 1
      for (int i = 0; i < 40; ++i) {
        EXPECT_EQ(x.lse(0, h, i), x.sink(h));
        sum += x.d_lse(0, h, i);
      }
      EXPECT_EQ(x.d_sink[h], sum) << "multiples of 1/8: exact";
    }
  });
}

TEST(FlashBackward, AModThatMasksHasNoGradientThere) {
  for_each_build([&](auto t, Engine engine) {
    Attention<decltype(t)> a({1, 1, 1, 40, 40, 16, 16}), b(a.n);
    for (auto* x : {&a, &b}) x->fill_all();
    a.mod = "kv <= q ? score : -inf";
    b.mask = "kv <= q";
    for (auto* x : {&a, &b}) x->forward(engine), x->backward(engine);
    EXPECT_TRUE(same_outputs(a, b) && same_gradients(a, b));
  });
}

TEST(FlashBackward, GivesTheSameBitsInEveryOrder) {
  Attention<half> first({2, 4, 2, 70, 100, 24, 16});
  const auto prepared = [](Attention<half>& x) {
    x.fill_all();
    x.mod = "30 * tanh(score / 30) + slope[h] * (kv - q)";
    x.mask = "kv <= q + (Skv - Sq)";
    x.options.dropout = {0.25, 3};
    x.give_sink();
  };
  prepared(first);
  first.forward(Engine::warp);
  first.backward(Engine::warp);
  EXPECT_FALSE(has_nan(first.dq) || has_nan(first.dk) || has_nan(first.dv));
  for (const std::uint64_t seed : {0, 1, 99})
    for (const bool lazy : {true, false})
      for (const int workers : {1, 2}) {
        Attention<half> x(first.n);
        prepared(x);
        x.options.launch = {workers, lazy, seed};
        x.forward(Engine::warp);
        x.backward(Engine::warp);
        EXPECT_TRUE(same_outputs(first, x) && same_gradients(first, x))
            << seed << " " << lazy << " " << workers;
      }
  Attention<half> threads(first.n);
  prepared(threads);
  threads.forward(Engine::thread);
  threads.backward(Engine::thread);
  EXPECT_TRUE(same_outputs(first, threads) && same_gradients(first, threads));
}

void expect_zero_gradients(const Lengths& n) {
  Attention<half> x(n);
  for (half& entry : x.k.values()) entry = from_float<half>(1);
  x.mod = "score + slope[h] * (kv - q)";
  x.give_sink();
  ASSERT_NO_THROW(x.forward(Engine::warp));
  EXPECT_FALSE(has_nan(x.o) || has_nan(x.lse)) << "written";
  ASSERT_NO_THROW(x.backward(Engine::warp));
  for (const auto* gradient : {&x.dq, &x.dk, &x.dv})
    for (const half& entry : gradient->values()) ASSERT_EQ(to_float(entry), 0);
  for (const float entry : x.d_slope) EXPECT_EQ(entry, 0) << "d_slope";
  for (const float entry : x.d_sink) EXPECT_EQ(entry, 0) << "d_sink";
}

TEST(FlashBackward, ZeroSizesGiveZeroGradients) {
  for (const Lengths& n : {Lengths{1, 2, 1, 0, 40, 16, 16}, Lengths{1, 2, 1, 40, 0, 16, 16},
                           Lengths{0, 2, 1, 4, 4, 8, 8}, Lengths{1, 0, 2, 4, 40, 16, 16},
                           Lengths{1, 0, 0, 4, 4, 8, 8}, Lengths{1, 2, 2, 4, 4, 8, 0}}) {
    SCOPED_TRACE(
        shape_string(std::array<std::int64_t, 7>{n.b, n.hq, n.hkv, n.sq, n.skv, n.d, n.dv}));
    expect_zero_gradients(n);
  }
}

TEST(FlashBackward, LeavesTheGapsOfStridedGradientsAlone) {
  Attention<half> x({1, 2, 2, 37, 37, 9, 9}), y(x.n);
  for (Attention<half>* z : {&x, &y}) {
    z->fill_all();
    z->forward(Engine::warp);
  }
  x.backward(Engine::warp);
  constexpr int row = 12;  // [B, S, H, D] with rows of 12 for D = 9
  std::vector<half> memory(std::size_t{37} * 2 * row, half{0x1234});
  const TensorView<half, 4> dk{memory.data(), {1, 2, 37, 9}, {37 * 2 * row, row, 2 * row, 1}};
  AttentionCall call = y.backward_call();
  call.dk = describe("dk", dk);
  implementation_named("flash_backward").run(call, Engine::warp);
  for (int h = 0; h < 2; ++h)
    for (int j = 0; j < 37; ++j)
      for (int c = 0; c < row; ++c) {
        const half got = memory[static_cast<std::size_t>((j * 2 + h) * row + c)];
        EXPECT_EQ(got.bits, c < 9 ? x.dk(0, h, j, c).bits : 0x1234);
      }
}

}  // namespace
}  // namespace attn::path_test
