#include "reference/backward.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "reference/gradient_fixtures.h"

namespace attn::reference {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

template <class Mod = Plain, class MaskMod = All>
BackwardResult run(const Case& c, const Mod& mod = {}, const MaskMod& mask = {}) {
  return backward(c.in.q.view(), c.in.k.view(), c.in.v.view(), c.d_o.view(), mod, mask, {c.p.scale},
                  c.d_lse.view());
}

// ---- against central differences ---------------------------------------------------------------

TEST(BackwardByDifferences, WithoutAMod) {
  expect_gradients(Case(sizes_of(2, 4, 2, 4, 5, 3, 2), 1), Plain{}, All{}, hand_identity, hand_full,
                   1);
  expect_gradients(Case(sizes_of(1, 2, 1, 5, 4, 3, 2, -1.25), 2), Plain{}, NotAfter{},
                   hand_identity, hand_causal, 1);
  expect_gradients(Case(sizes_of(1, 1, 1, 3, 4, 2, 2, 0), 3), Plain{}, All{}, hand_identity,
                   hand_full, 1);
}

TEST(BackwardByDifferences, OverTwoRowBlocks) {
  expect_gradients(Case(sizes_of(1, 2, 1, 70, 5, 2, 2), 1), Plain{}, All{}, hand_identity,
                   hand_full, 1, {}, 9);
}

TEST(BackwardByDifferences, SoftCap) {
  const SoftCap cap{2};  // f' <= 1 and |f''| <= 0.77 / c
  expect_gradients(Case(sizes_of(1, 4, 2, 4, 5, 3, 2), 4), cap, NotAfter{}, cap.by_hand(),
                   hand_causal, 1);
}

TEST(BackwardByDifferences, OneSlopeAHead) {
  auto slopes = filled<float, 1>({4}, {0.5, 0.25, -0.125, 0});
  const Distance distance{slopes};  // |df/dC| = |j - i| <= 4
  expect_gradients(Case(sizes_of(2, 4, 2, 4, 5, 3, 2), 5), distance, NotAfter{}, distance.by_hand(),
                   hand_causal, 4, {&slopes});
}

struct Relative {  // t = s + table[j - i + 4], an entry shared by a diagonal, all heads and batches
  Captured<1> table;
  template <class Score, class Index>
  Score operator()(Score s, Index, Index, Index q, Index kv) const {
    return s + table(kv - q + 4);
  }
};
TEST(BackwardByDifferences, SharedEntries) {
  auto table = random_tensor<float, 1>({9}, 3);
  const auto by_hand = [&](Bounded s, int, int, int q, int kv) -> Bounded {
    const long double t = s.value + table(kv - q + 4);
    return {t, s.error + unit * static_cast<double>(std::abs(t))};
  };
  expect_gradients(Case(sizes_of(2, 2, 1, 5, 5, 3, 2), 6), Relative{table}, All{}, by_hand,
                   hand_full, 1, {&table});
}

struct TenReads {  // t = s + sum_r w[r] sin(s + r)
  Captured<1> w;
  template <class Score, class Index>
  Score operator()(Score s, Index, Index, Index q, Index) const {
    Score t = s;
    for (int r = 0; r < 10; ++r) t = t + w(q * 0 + r) * attn::sin(s + r);
    return t;
  }
};
TEST(BackwardByDifferences, ALoopOfTenReads) {
  auto w = filled<float, 1>({10}, {.5, -.25, .125, .25, -.5, .0625, .25, -.125, .5, .25});
  const double sum = 2.8125;  // of |w|
  // Each sine: u |s + r| from its argument, 2 u of its own; the product: u; eleven partial sums.
  const auto by_hand = [&](Bounded s, int, int, int, int) -> Bounded {
    long double t = s.value;
    const double size = static_cast<double>(std::abs(s.value));
    for (int r = 0; r < 10; ++r) t += w(r) * std::sin(s.value + r);
    return {t, s.error * (1 + sum) + unit * (sum * (size + 9 + 3) + 11 * (size + sum))};
  };
  expect_gradients(Case(sizes_of(1, 2, 2, 4, 4, 3, 2), 7), TenReads{w}, NotAfter{}, by_hand,
                   hand_causal, 1 + sum, {&w});
}

struct GainTwice {  // t = bias[h] + s * gain * gain: one entry read twice, two tensors
  Captured<1> gain, bias;
  template <class Score, class Index>
  Score operator()(Score s, Index b, Index h, Index, Index) const {
    const Score offset = bias(h);
    return offset + s * gain(b) * gain(h);
  }
};
TEST(BackwardByDifferences, OneEntryReadTwice) {
  auto gain = filled<float, 1>({1}, {1.25}), bias = filled<float, 1>({2}, {0.5, -1});
  const auto by_hand = [&](Bounded s, int, int h, int, int) -> Bounded {
    const long double product = s.value * gain(0) * gain(0), t = bias(h) + product;
    return {t, 2 * s.error + unit * static_cast<double>(2 * std::abs(product) + std::abs(t))};
  };
  // |df/d gain| = 2 gain |s|, and |s| <= 0.5 * 3 * 4
  expect_gradients(Case(sizes_of(2, 2, 1, 4, 4, 3, 2), 8), GainTwice{gain, bias}, NotAfter{},
                   by_hand, hand_causal, 2 * 1.25 * 6, {&bias, &gain});
}

struct Gate {  // t = s - slope[h] (i - j) where j <= i, else -inf
  Captured<1> slope;
  template <class Score, class Index>
  Score operator()(Score s, Index, Index h, Index q, Index kv) const {
    return attn::select(kv <= q, s + slope(h) * (kv - q), -infinity);
  }
};
TEST(BackwardByDifferences, AModThatMasks) {
  auto slopes = filled<float, 1>({2}, {0.5, 0.25});
  expect_gradients(Case(sizes_of(1, 2, 1, 5, 5, 3, 2), 9), Gate{slopes}, All{},
                   Distance{slopes}.by_hand(), hand_causal, 4, {&slopes});
}

// ---- by hand -----------------------------------------------------------------------------------

TEST(BackwardByHand, TwoEqualKeys) {
  // q = 0: P = 1/2. V = 0, 4: O = 2. dO = 1, dLSE = 3: delta = 2, dP = 0, 4,
  // dT = (0 - 2 + 3) / 2, (4 - 2 + 3) / 2 = 1/2, 5/2. K = 1, 3, scale 2: dQ = 2 (1/2 + 15/2) = 16,
  // dK = 0, dV = 1/2, 1/2.
  Case c(sizes_of(1, 1, 1, 1, 2, 1, 1, 2), 1);
  c.in.q.values() = {0};
  c.in.k.values() = {1, 3};
  c.in.v.values() = {0, 4};
  c.d_o.values() = {1};
  c.d_lse.values() = {3};
  const BackwardResult got = run(c);
  GradientBounds bounds = gradient_bounds(c, expected(c.p, c.in), 1);
  for (Tensor4* x : {&bounds.dq, &bounds.dk, &bounds.dv})
    for (double& magnitude : x->values()) magnitude *= bounds.rho;
  expect_within("dq", got.dq, filled<double, 4>({1, 1, 1, 1}, {16}), bounds.dq);
  expect_within("dk", got.dk, filled<double, 4>({1, 1, 2, 1}, {0, 0}), bounds.dk);
  expect_within("dv", got.dv, filled<double, 4>({1, 1, 2, 1}, {0.5, 0.5}), bounds.dv);
}

TEST(BackwardByHand, OneKey) {
  // P = 1 exactly: dV = dO, dT = dP - delta + dLSE = dLSE, dQ = scale dLSE K, dK = scale dLSE Q.
  Case c(sizes_of(1, 1, 1, 1, 1, 2, 2, 0.5), 1);
  c.in.q.values() = {1, 2};
  c.in.k.values() = {3, 4};
  c.in.v.values() = {5, 6};
  c.d_o.values() = {7, 8};
  c.d_lse.values() = {2};
  const BackwardResult got = run(c);
  EXPECT_EQ(got.dv.values(), (std::vector<double>{7, 8}));
  EXPECT_EQ(got.dq.values(), (std::vector<double>{3, 4}));
  EXPECT_EQ(got.dk.values(), (std::vector<double>{1, 2}));
}

TEST(BackwardByHand, TheGradientOfABiasIsTheScoreGradient) {
  // One key a row: dT = dLSE, so a shared bias has the sum of dLSE: 1 + 2 + 4.
  Case c(sizes_of(1, 1, 1, 3, 1, 1, 1), 1);
  c.d_lse.values() = {1, 2, 4};
  const auto bias = filled<float, 1>({1}, {0.5}), gain = filled<float, 1>({1}, {1});
  const BackwardResult got = run(c, GainTwice{gain, bias});
  EXPECT_EQ(got.d_captured[0].values, std::vector<double>{7});
}

// ---- identities --------------------------------------------------------------------------------

TEST(BackwardIdentities, ValuesTakeAllOfTheOutputGradient) {
  // sum_j P[i,j] = 1 on a row with keys, so sum_j dV[j,:] = sum_i,heads dO[i,:] over such rows.
  const Case c(sizes_of(2, 4, 2, 70, 9, 4, 3), 1);
  Table mask{Tensor<std::int32_t, 2>({70, 9})};
  for (int q = 0; q < 70; ++q)
    for (int kv = 0; kv < 9; ++kv) mask.pairs(q, kv) = q % 5 != 0 && (q + kv) % 3 != 0;
  const HandMask hand_mask = [&](int, int, int q, int kv) { return mask.pairs(q, kv) != 0; };
  const BackwardResult got = run(c, Plain{}, mask);
  const GradientBounds bounds =
      gradient_bounds(c, expected(c.p, c.in, hand_identity, hand_mask), 1);
  for (int b = 0; b < 2; ++b)
    for (int g = 0; g < 2; ++g)
      for (int d = 0; d < 3; ++d) {
        double got_sum = 0, want = 0, magnitude = 0;
        for (int j = 0; j < 9; ++j)
          got_sum += got.dv(b, g, j, d), magnitude += bounds.dv(b, g, j, d);
        for (int h : {2 * g, 2 * g + 1})
          for (int i = 0; i < 70; ++i)
            if (i % 5 != 0) want += c.d_o(b, h, i, d);  // multiples of 1/16: exact
        EXPECT_LE(std::abs(got_sum - want), (bounds.rho + 9 * unit) * magnitude);
      }
}

TEST(BackwardIdentities, QueriesAndKeysShareTheScoreGradient) {
  // <dQ, Q> = sum dS s = <dK, K>
  const Case c(sizes_of(1, 4, 2, 70, 9, 4, 3), 2);
  const SoftCap cap{2};
  const BackwardResult got = run(c, cap, NotAfter{});
  const GradientBounds bounds =
      gradient_bounds(c, expected(c.p, c.in, cap.by_hand(), hand_causal), 1);
  long double by_q = 0, by_k = 0, magnitude = 0;
  for (std::size_t n = 0; n < c.in.q.values().size(); ++n) {
    by_q += static_cast<long double>(got.dq.values()[n]) * c.in.q.values()[n];
    magnitude += std::abs(bounds.dq.values()[n] * c.in.q.values()[n]);
  }
  for (std::size_t n = 0; n < c.in.k.values().size(); ++n) {
    by_k += static_cast<long double>(got.dk.values()[n]) * c.in.k.values()[n];
    magnitude += std::abs(bounds.dk.values()[n] * c.in.k.values()[n]);
  }
  EXPECT_LE(std::abs(by_q - by_k), bounds.rho * magnitude);
  EXPECT_GT(std::abs(by_q), bounds.rho * magnitude);  // the comparison is not of two zeros
}

// ---- rows with no key, and nothing leaks -------------------------------------------------------

template <int Rank>
void expect_same(const Tensor<double, Rank>& x, const Tensor<double, Rank>& y) {
  EXPECT_EQ(x.extents(), y.extents());
  EXPECT_EQ(x.values(), y.values());  // a NaN fails
}
void expect_same(const BackwardResult& x, const BackwardResult& y) {
  expect_same(x.dq, y.dq);
  expect_same(x.dk, y.dk);
  expect_same(x.dv, y.dv);
  ASSERT_EQ(x.d_captured.size(), y.d_captured.size());
  for (std::size_t n = 0; n < x.d_captured.size(); ++n)
    EXPECT_EQ(x.d_captured[n].values, y.d_captured[n].values);
}

/// [3, 3]: row 0 has no key, row 1 has keys 0 and 1, row 2 has keys 1 and 2.
Table staircase() { return {filled<std::int32_t, 2>({3, 3}, {0, 0, 0, 1, 1, 0, 0, 1, 1})}; }

TEST(BackwardEmptyRows, ContributeNothingWhateverTheyHold) {
  const Case clean(sizes_of(1, 2, 1, 3, 3, 2, 2), 5);
  const auto slopes = filled<float, 1>({2}, {0.5, 0.25});
  const BackwardResult want = run(clean, Distance{slopes}, staircase());
  for (int h : {0, 1})
    for (int d : {0, 1}) EXPECT_EQ(want.dq(0, h, 0, d), 0);
  for (double bad : {nan, inf, -inf, 1e300}) {
    Case c = clean;
    for (int h : {0, 1}) {
      for (int d : {0, 1}) c.in.q(0, h, 0, d) = c.d_o(0, h, 0, d) = bad;
      c.d_lse(0, h, 0) = bad;
    }
    expect_same(run(c, Distance{slopes}, staircase()), want);
  }
}

TEST(BackwardEmptyRows, AloneGiveZeros) {
  Case c(sizes_of(1, 2, 1, 3, 3, 2, 2), 5);
  const auto slopes = filled<float, 1>({2}, {0.5, 0.25});
  const Table none{Tensor<std::int32_t, 2>({3, 3})};
  const BackwardResult got = run(c, Distance{slopes}, none);
  for (const Tensor4* x : {&got.dq, &got.dk, &got.dv})
    for (double g : x->values()) EXPECT_EQ(g, 0);
  EXPECT_EQ(got.d_captured[0].values, (std::vector<double>{0, 0}));
}

TEST(BackwardEmptyRows, ZeroSizes) {
  const auto slopes = filled<float, 1>({2}, {0.5, 0.25});
  for (const Problem& p : {sizes_of(0, 2, 1, 3, 3, 2, 2), sizes_of(1, 2, 1, 0, 3, 2, 2),
                           sizes_of(1, 2, 1, 3, 0, 2, 2), sizes_of(1, 0, 0, 3, 3, 2, 2)}) {
    const BackwardResult got = run(Case(p, 1), Distance{slopes});
    EXPECT_EQ(got.dq.extents(), p.q_extents());
    EXPECT_EQ(got.dk.extents(), p.k_extents());
    EXPECT_EQ(got.dv.extents(), p.v_extents());
    for (const Tensor4* x : {&got.dq, &got.dk, &got.dv})
      for (double g : x->values()) EXPECT_EQ(g, 0);
    ASSERT_EQ(got.d_captured.size(), 1u);
    EXPECT_EQ(got.d_captured[0].values, (std::vector<double>{0, 0}));
  }
  // Dv = 0: the LSE alone has a gradient.
  expect_gradients(Case(sizes_of(1, 2, 1, 3, 4, 2, 0), 1), Plain{}, All{}, hand_identity, hand_full,
                   1);
}

TEST(BackwardLeaks, AMaskedPairHasNoEffect) {
  // Key 2 is masked everywhere.
  const Table mask{filled<std::int32_t, 2>({3, 3}, {1, 0, 0, 1, 1, 0, 0, 1, 0})};
  const Case clean(sizes_of(1, 2, 1, 3, 3, 2, 2), 5);
  // d score_mod / d gain grows with the score, which is NaN at the masked pairs.
  const auto gain = filled<float, 1>({1}, {1.25}), bias = filled<float, 1>({2}, {0.5, -1});
  const BackwardResult want = run(clean, GainTwice{gain, bias}, mask);
  for (double bad : {nan, inf, -inf}) {
    Case c = clean;
    for (int d : {0, 1}) c.in.k(0, 0, 2, d) = c.in.v(0, 0, 2, d) = bad;
    expect_same(run(c, GainTwice{gain, bias}, mask), want);
  }
}

/// Which rows (of head 0) or keys of a gradient hold a NaN.
std::vector<bool> nan_rows(const Tensor4& x) {
  std::vector<bool> rows;
  const auto m = head(x, 0, 0);
  for (int i = 0; i < m.rows(); ++i) rows.push_back(m.row(i).hasNaN());
  return rows;
}
using Rows = std::vector<bool>;

TEST(BackwardLeaks, ANaNStaysWithThePairsOfItsRow) {
  const Case clean(sizes_of(1, 1, 1, 3, 3, 2, 2), 5);
  const BackwardResult want = run(clean, Plain{}, staircase());
  for (int where : {0, 1, 2, 3}) {
    Case c = clean;
    if (where == 0) c.d_o(0, 0, 2, 0) = nan;
    if (where == 1) c.in.k(0, 0, 2, 1) = nan;  // key 2 is of row 2 alone
    if (where == 2) c.in.q(0, 0, 2, 0) = nan;
    if (where == 3) c.in.v(0, 0, 2, 0) = nan;
    const BackwardResult got = run(c, Plain{}, staircase());
    EXPECT_EQ(nan_rows(got.dq), (Rows{false, false, true})) << where;
    EXPECT_EQ(nan_rows(got.dk), (Rows{false, true, true})) << where;
    EXPECT_EQ(nan_rows(got.dv), (Rows{false, true, true})) << where;
    for (int d : {0, 1}) {  // row 1, and key 0, which row 2 does not attend
      EXPECT_EQ(got.dq(0, 0, 1, d), want.dq(0, 0, 1, d));
      EXPECT_EQ(got.dk(0, 0, 0, d), want.dk(0, 0, 0, d));
      EXPECT_EQ(got.dv(0, 0, 0, d), want.dv(0, 0, 0, d));
    }
  }
}

struct LogOfSize {  // -inf at s = 0, where its derivative is infinite
  template <class Score, class Index>
  Score operator()(Score s, Index, Index, Index, Index) const {
    return attn::log(attn::abs(s));
  }
};
TEST(BackwardLeaks, AModThatMasksContributesZeroWhateverItsDerivative) {
  Case c(sizes_of(1, 1, 1, 2, 3, 1, 1, 1), 5);
  c.in.q.values() = {1, 2};
  c.in.k.values() = {4, 0, 2};
  const BackwardResult got = run(c, LogOfSize{});
  EXPECT_EQ(nan_rows(got.dq), (Rows{false, false}));
  EXPECT_EQ(got.dk(0, 0, 1, 0), 0);
  EXPECT_EQ(got.dv(0, 0, 1, 0), 0);
  EXPECT_NE(got.dk(0, 0, 0, 0), 0);
}

// ---- arguments ---------------------------------------------------------------------------------

TEST(BackwardArguments, NoLseGradientStandsForZeros) {
  Case c(sizes_of(1, 2, 1, 3, 4, 2, 2), 5);
  for (double& x : c.d_lse.values()) x = 0;
  expect_same(backward(c.in.q.view(), c.in.k.view(), c.in.v.view(), c.d_o.view(), Plain{}, All{},
                       {c.p.scale}),
              run(c));
}

TEST(BackwardArguments, MayBeOfAnyStorageType) {
  const Case c(sizes_of(1, 2, 1, 3, 4, 2, 2), 5);
  const auto q = random_tensor<half, 4>(c.p.q_extents(), 5),
             k = random_tensor<half, 4>(c.p.k_extents(), 6),
             v = random_tensor<half, 4>(c.p.v_extents(), 7);
  const auto d_o = random_tensor<bfloat16, 4>(c.p.o_extents(), 8);
  auto d_lse = random_tensor<float, 3>(c.p.lse_extents(), 9);
  expect_same(
      backward(q.view(), k.view(), v.view(), d_o.view(), Plain{}, All{}, {c.p.scale}, d_lse.view()),
      run(c));
}

TEST(BackwardArguments, AreChecked) {
  const Case c(sizes_of(1, 2, 1, 3, 4, 2, 2), 5);
  const auto message = [&](auto d_o, auto d_lse) -> std::string {
    try {
      backward(c.in.q.view(), c.in.k.view(), c.in.v.view(), d_o, Plain{}, All{}, {}, d_lse);
    } catch (const std::invalid_argument& e) {
      return e.what();
    }
    return "nothing thrown";
  };
  const Tensor4 d_o({1, 2, 3, 3});
  EXPECT_EQ(message(d_o.view(), c.d_lse.view()), "d_o: shape [1, 2, 3, 3], expected [1, 2, 3, 2]");
  const Tensor3 d_lse({1, 2, 4});
  EXPECT_EQ(message(c.d_o.view(), d_lse.view()), "d_lse: shape [1, 2, 4], expected [1, 2, 3]");
  TensorView<const double, 4> null = c.d_o.view();
  null.data = nullptr;
  EXPECT_EQ(message(null, c.d_lse.view()),
            "d_o: null data for shape [1, 2, 3, 2], expected the address of its first element");
}

// ---- captured tensors --------------------------------------------------------------------------

template <class T = float>
struct Bias {  // t = s + bias[q, kv]
  Captured<2, T> bias;
  template <class Score, class Index>
  Score operator()(Score s, Index, Index, Index q, Index kv) const {
    return s + bias(q, kv);
  }
};

TEST(BackwardCaptured, AnyStorageType) {
  const Case c(sizes_of(1, 2, 1, 3, 4, 2, 2), 5);
  const auto f32 = random_tensor<float, 2>({3, 4}, 1);
  const auto f64 = random_tensor<double, 2>({3, 4}, 1);
  const auto f16 = random_tensor<half, 2>({3, 4}, 1);
  const auto bf16 = random_tensor<bfloat16, 2>({3, 4}, 1);
  const BackwardResult want = run(c, Bias<>{f32});
  EXPECT_EQ(want.d_captured[0].values.size(), 12u);
  expect_same(run(c, Bias<double>{f64}), want);
  expect_same(run(c, Bias<half>{f16}), want);
  expect_same(run(c, Bias<bfloat16>{bf16}), want);
}

TEST(BackwardCaptured, GradientsAreDenseWhateverTheStrides) {
  const Case c(sizes_of(1, 2, 1, 3, 4, 2, 2), 5);
  const auto bias = random_tensor<float, 2>({3, 4}, 1);
  Tensor<float, 2> other({4, 6});  // transposed, every second column, the rows backwards
  for (int q = 0; q < 3; ++q)
    for (int kv = 0; kv < 4; ++kv) other(3 - kv, 2 * q) = bias(q, kv);
  const TensorView<const float, 2> view{&other(3, 0), {3, 4}, {2, -6}};
  expect_same(run(c, Bias<>{view}), run(c, Bias<>{bias}));
}

TEST(BackwardCaptured, ABroadcastAxisAccumulates) {
  const Case c(sizes_of(1, 2, 1, 3, 4, 2, 2), 5);
  const auto row = random_tensor<float, 2>({1, 4}, 1);
  Tensor<float, 2> all({3, 4});
  for (int q = 0; q < 3; ++q)
    for (int kv = 0; kv < 4; ++kv) all(q, kv) = row(0, kv);
  const auto got = run(c, Bias<>{row}).d_captured[0], full = run(c, Bias<>{all}).d_captured[0];
  const HandMod by_hand = [&](Bounded s, int, int, int, int kv) -> Bounded {
    return {s.value + row(0, kv), s.error + 4 * unit * (2 + std::abs(double(s.value)))};
  };
  const GradientBounds bounds = gradient_bounds(c, expected(c.p, c.in, by_hand), 1);
  ASSERT_EQ(got.values.size(), 4u);
  for (int kv = 0; kv < 4; ++kv)  // the same six terms in another order
    EXPECT_LE(
        std::abs(got.values[kv] - (full.values[kv] + full.values[4 + kv] + full.values[8 + kv])),
        6 * unit * bounds.pairs);
}

TEST(BackwardCaptured, EntriesThatShareMemoryAreRefused) {
  const Case c(sizes_of(1, 2, 1, 3, 4, 2, 2), 5);
  const auto row = random_tensor<float, 1>({4}, 1);
  const TensorView<const float, 2> expanded{row.view().data, {3, 4}, {0, 1}};
  try {
    run(c, Bias<>{Captured<2>(expanded, "bias")});
    FAIL() << "nothing thrown";
  } catch (const std::invalid_argument& e) {
    EXPECT_EQ(std::string(e.what()).rfind("bias: entries that share memory", 0), 0u) << e.what();
  }
}

struct TwoViews {  // t = s * gain[h] + bias[q, kv], perhaps of one memory
  Captured<1> gain;
  Captured<2> bias;
  template <class Score, class Index>
  Score operator()(Score s, Index, Index h, Index q, Index kv) const {
    const Score scaled = s * gain(h);
    return scaled + bias(q, kv);
  }
};
TEST(BackwardCaptured, TwoViewsOfOneMemoryAreTwoTensors) {
  const Case c(sizes_of(1, 2, 1, 3, 4, 2, 2), 5);
  const auto bias = random_tensor<float, 2>({3, 4}, 1);
  const auto gain = filled<float, 1>({2}, {bias(0, 0), bias(0, 1)});
  const TensorView<const float, 1> first_two{bias.view().data, {2}, {1}};
  const BackwardResult got = run(c, TwoViews{first_two, bias}), want = run(c, TwoViews{gain, bias});
  ASSERT_EQ(got.d_captured.size(), 2u);
  EXPECT_EQ(got.d_captured[0].values.size(), 2u);
  EXPECT_EQ(got.d_captured[1].values.size(), 12u);
  expect_same(got, want);
}

struct BlockBias {  // t = s + bias[kv / block], the block length read from a table
  Captured<1> bias;
  Captured<1, std::int32_t> block;
  template <class Score, class Index>
  Score operator()(Score s, Index b, Index, Index, Index kv) const {
    return s + bias(kv / block(b));
  }
};
TEST(BackwardCaptured, IndexTablesHaveNoGradient) {
  const Case c(sizes_of(1, 2, 1, 3, 4, 2, 2), 5);
  const auto bias = random_tensor<float, 1>({2}, 1);
  Tensor<std::int32_t, 1> block({1});
  block(0) = 2;
  const BackwardResult got = run(c, BlockBias{bias, block});
  ASSERT_EQ(got.d_captured.size(), 1u);
  EXPECT_EQ(got.d_captured[0].tensor.data, bias.values().data());
}

struct Fickle {  // reads one tensor on the diagonal and another elsewhere
  Captured<1> on, off;
  template <class Score, class Index>
  Score operator()(Score s, Index b, Index, Index q, Index kv) const {
    if constexpr (requires { bool(q.value == kv.value); })
      if (q.value != kv.value) return s + off(b);
    return s + on(b);
  }
};
TEST(BackwardCaptured, ReadsThatDependOnThePairAreRefused) {
  const Case c(sizes_of(1, 2, 1, 3, 4, 2, 2), 5);
  const auto on = filled<float, 1>({1}, {1}), off = filled<float, 1>({1}, {2});
  EXPECT_THROW(run(c, Fickle{on, off}), std::invalid_argument);
}

}  // namespace
}  // namespace attn::reference
