#include "reference/forward.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "reference/fixtures.h"

namespace attn::reference {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

template <class T>
struct QKV {
  QKV(const Problem& p, unsigned seed)
      : q(random_tensor<T, 4>(p.q_extents(), seed)),
        k(random_tensor<T, 4>(p.k_extents(), seed + 1)),
        v(random_tensor<T, 4>(p.v_extents(), seed + 2)) {}
  Tensor<T, 4> q, k, v;
};

Problem sizes_of(int b, int hq, int hkv, int sq, int skv, int d, int dv) {
  Problem p;
  p.b = b, p.hq = hq, p.hkv = hkv, p.sq = sq, p.skv = skv, p.d = d, p.dv = dv;
  p.scale = 1 / std::sqrt(d);
  return p;
}

Inputs exact(const auto& x) {
  return {to_fp64(x.q.view()), to_fp64(x.k.view()), to_fp64(x.v.view())};
}

template <class Mod = Plain, class MaskMod = All>
ForwardResult run(const auto& x, const Mod& mod = {}, const MaskMod& mask = {},
                  const Options& options = {}) {
  return forward(x.q.view(), x.k.view(), x.v.view(), mod, mask, options);
}

void expect_matches(const ForwardResult& got, const Expected& want) {
  expect_within("o", got.o, want.o, want.o_bound);
  expect_within("lse", got.lse, want.lse, want.lse_bound);
  expect_within("row_max", got.row_max, want.row_max, want.row_max_bound);
}

/// Bit for bit; NaN equals NaN.
template <int Rank>
void expect_same(const Tensor<double, Rank>& x, const Tensor<double, Rank>& y) {
  ASSERT_EQ(x.extents(), y.extents());
  for (std::size_t n = 0; n < x.values().size(); ++n) {
    const double a = x.values()[n], b = y.values()[n];
    EXPECT_TRUE(a == b || (std::isnan(a) && std::isnan(b))) << n << ": " << a << ", " << b;
  }
}
void expect_same(const ForwardResult& x, const ForwardResult& y) {
  expect_same(x.o, y.o);
  expect_same(x.lse, y.lse);
  expect_same(x.row_max, y.row_max);
}

void expect_empty_row(const ForwardResult& got, int b, int h, int i) {
  EXPECT_EQ(got.lse(b, h, i), -inf);
  EXPECT_EQ(got.row_max(b, h, i), -inf);
  for (int d = 0; d < got.o.extents()[3]; ++d) EXPECT_EQ(got.o(b, h, i, d), 0);
}

void expect_nan_row(const ForwardResult& got, int b, int h, int i) {
  EXPECT_TRUE(std::isnan(got.lse(b, h, i))) << got.lse(b, h, i);
  for (int d = 0; d < got.o.extents()[3]; ++d)
    EXPECT_TRUE(std::isnan(got.o(b, h, i, d))) << got.o(b, h, i, d);
}

struct Hand {
  Tensor4 q, k, v;
};
/// One head; rows of the three matrices one after another.
Hand one_head(int sq, int skv, int d, int dv, std::initializer_list<double> q,
              std::initializer_list<double> k, std::initializer_list<double> v) {
  return {filled<double, 4>({1, 1, sq, d}, q), filled<double, 4>({1, 1, skv, d}, k),
          filled<double, 4>({1, 1, skv, dv}, v)};
}

// ---- by hand -----------------------------------------------------------------------------------

TEST(ForwardByHand, OneKeyGivesItsValue) {
  // s = 0.5 * (1*3 + 2*4) = 5.5; exp(s - LSE) = 1
  const auto out = run(one_head(1, 1, 2, 3, {1, 2}, {3, 4}, {7, -8, 9}), Plain{}, All{}, {0.5});
  EXPECT_EQ(out.lse(0, 0, 0), 5.5);
  EXPECT_EQ(out.row_max(0, 0, 0), 5.5);
  EXPECT_EQ(out.o.values(), (std::vector<double>{7, -8, 9}));
}

TEST(ForwardByHand, DefaultScaleIsTheInverseRootOfD) {
  // D = 4, so scale = 1/2: s = (1 + 2 + 3 + 4) / 2 = 5
  const auto out = run(one_head(1, 1, 4, 1, {1, 1, 1, 1}, {1, 2, 3, 4}, {1}));
  EXPECT_EQ(out.lse(0, 0, 0), 5);
}

TEST(ForwardByHand, EqualScoresAverageTheValues) {
  // q = 0: s = 0, P = 1/4, O = (1 + 2 + 3 + 6) / 4 = 3 and (4 - 4 + 8 + 0) / 4 = 2
  const auto out = run(one_head(1, 4, 1, 2, {0}, {5, -1, 2, 9}, {1, 4, 2, -4, 3, 8, 6, 0}));
  EXPECT_EQ(out.o.values(), (std::vector<double>{3, 2}));
  EXPECT_EQ(out.lse(0, 0, 0), std::log(4.0));
  EXPECT_EQ(out.row_max(0, 0, 0), 0);
}

TEST(ForwardByHand, ScoresApartPickOneValue) {
  // s = 1024 q k: the others are 1024 below or more and exp(-1024) is 0 in fp64.
  const auto x = one_head(3, 3, 1, 1, {1, -1, 3}, {0, 1, 2}, {10, 20, 30});
  const auto out = run(x, Plain{}, All{}, {1024.0});
  EXPECT_EQ(out.o.values(), (std::vector<double>{30, 10, 30}));
  EXPECT_EQ(out.lse.values(), (std::vector<double>{2048, 0, 6144}));
  EXPECT_EQ(out.row_max.values(), out.lse.values());
}

TEST(ForwardByHand, ScaleOfLogTwoDoublesTheWeights) {
  // s = j ln 2: weights 1, 2, 4, so P = 1/7, 2/7, 4/7 and LSE = ln 7; a row with q = -1 reverses.
  const auto x = one_head(2, 3, 1, 1, {1, -1}, {0, 1, 2}, {7, 14, 28});
  const auto out = run(x, Plain{}, All{}, {std::numbers::ln2});
  // O = (7 + 28 + 112) / 7 = 21 and, with weights 4, 2, 1 (over 7), (28 + 28 + 28) / 7 = 12
  const auto o = filled<double, 4>({1, 1, 2, 1}, {21, 12});
  const auto lse = filled<double, 3>({1, 1, 2}, {std::log(7.0), std::log(7.0 / 4)});
  Problem p = sizes_of(1, 1, 1, 2, 3, 1, 1);
  p.scale = std::numbers::ln2;
  const Expected bounds = expected(p, {x.q, x.k, x.v});
  // The fp64 ln 2 is not ln 2 (half an ulp, u ln 2 relative to 2 keys' distance), nor are the
  // constants above exact: 4 u more.
  Tensor4 o_bound = bounds.o_bound;
  for (std::size_t n = 0; n < 2; ++n) o_bound.values()[n] += 4 * unit * o.values()[n];
  Tensor3 lse_bound = bounds.lse_bound;
  for (double& x : lse_bound.values()) x += 4 * unit;
  expect_within("o", out.o, o, o_bound);
  expect_within("lse", out.lse, lse, lse_bound);
}

TEST(ForwardByHand, CausalFiveByFive) {
  // q = 0: row i averages V[0..i]. V = 4, 8, 12, 16, 20: the averages are 4, 6, 8, 10, 12.
  const auto x = one_head(5, 5, 1, 1, {0, 0, 0, 0, 0}, {1, 2, 3, 4, 5}, {4, 8, 12, 16, 20});
  const auto out = run(x, Plain{}, NotAfter{});
  const auto o = filled<double, 4>({1, 1, 5, 1}, {4, 6, 8, 10, 12});
  const Expected bounds = expected(sizes_of(1, 1, 1, 5, 5, 1, 1), {x.q, x.k, x.v}, hand_identity,
                                   [](int, int, int q, int kv) { return kv <= q; });
  expect_within("o", out.o, o, bounds.o_bound);
  for (int i : {0, 1, 3}) EXPECT_EQ(out.o(0, 0, i, 0), o(0, 0, i, 0));  // n = 1, 2, 4 is exact
  for (int i = 0; i < 5; ++i) EXPECT_EQ(out.lse(0, 0, i), std::log(i + 1.0));
}

TEST(ForwardByHand, ScaleZeroAndNegative) {
  const auto x = one_head(1, 2, 1, 1, {1}, {0, 1024}, {2, 4});
  EXPECT_EQ(run(x, Plain{}, All{}, {0.0}).o(0, 0, 0, 0), 3);   // uniform
  EXPECT_EQ(run(x, Plain{}, All{}, {1.0}).o(0, 0, 0, 0), 4);   // the larger key
  EXPECT_EQ(run(x, Plain{}, All{}, {-1.0}).o(0, 0, 0, 0), 2);  // the smaller one
  EXPECT_EQ(run(x, Plain{}, All{}, {-1.0}).lse(0, 0, 0), 0);
}

TEST(ForwardByHand, QueryHeadsShareKeyValueHeads) {
  // Hq = 6, Hkv = 2, G = 3: heads 0 to 2 read the first key/value head, 3 to 5 the second.
  Hand x{Tensor4({2, 6, 1, 1}), Tensor4({2, 2, 1, 1}), Tensor4({2, 2, 1, 1})};
  for (double& q : x.q.values()) q = 1;
  for (int b : {0, 1})
    for (int h : {0, 1}) x.k(b, h, 0, 0) = 1 + 2 * b + h, x.v(b, h, 0, 0) = 10 * (1 + 2 * b + h);
  const auto out = run(x);
  for (int b : {0, 1})
    for (int h = 0; h < 6; ++h) {
      EXPECT_EQ(out.lse(b, h, 0), 1 + 2 * b + h / 3);
      EXPECT_EQ(out.o(b, h, 0, 0), 10 * (1 + 2 * b + h / 3));
    }
}

TEST(ForwardByHand, ScoresFarBelowZeroAreOrdinary) {
  // s = -250000 and -250001 (times 1): no sentinel stands above them; q = (-500, 1).
  const auto x = one_head(1, 2, 2, 1, {-500, -1}, {500, 0, 500, 1024}, {1, 3});
  const auto out = run(x, Plain{}, All{}, {1.0});
  EXPECT_EQ(out.o(0, 0, 0, 0), 1);
  EXPECT_EQ(out.lse(0, 0, 0), -250000);
}

// ---- the mod and the mask ----------------------------------------------------------------------

struct Address {  // one number for (b, h, q, kv)
  template <class Score, class Index>
  Score operator()(Score s, Index b, Index h, Index q, Index kv) const {
    return s * 0 + (((b * 8 + h) * 128 + q) * 8 + kv);
  }
};
struct OnlyKey {
  int key;
  template <class Index>
  auto operator()(Index, Index, Index, Index kv) const {
    return kv == key;
  }
};

TEST(ForwardFunctors, SeeTheIndicesOfTheirPair) {
  const QKV<double> x(sizes_of(2, 4, 2, 70, 3, 2, 1), 1);  // two row blocks
  for (int key = 0; key < 3; ++key) {
    const auto out = run(x, Address{}, OnlyKey{key});  // one key: LSE = t
    for (int b = 0; b < 2; ++b)
      for (int h = 0; h < 4; ++h)
        for (int q = 0; q < 70; ++q) {
          EXPECT_EQ(out.lse(b, h, q), ((b * 8 + h) * 128 + q) * 8 + key);
          EXPECT_EQ(out.o(b, h, q, 0), x.v(b, h / 2, key, 0));
        }
  }
}

struct AskSizes {
  template <class Score, class Index>
  Score operator()(Score s, Index b, Index, Index, Index kv) const {
    const Sizes& n = sizes(kv);
    return s * 0 + b * 0 + (((n.b * 10 + n.hq) * 10 + n.hkv) * 10 + n.sq) * 10 + n.skv;
  }
};
TEST(ForwardFunctors, SeeTheSizes) {
  const QKV<double> x(sizes_of(2, 4, 2, 3, 5, 2, 1), 1);
  EXPECT_EQ(run(x, AskSizes{}, OnlyKey{0}).lse(1, 3, 2), 24235);
}

struct Square {
  template <class Score, class Index>
  Score operator()(Score s, Index, Index, Index, Index) const {
    return s * s;
  }
};
TEST(ForwardFunctors, TheModComesAfterTheScaleAndBeforeTheMask) {
  // s = 0.5 * 4 = 2, t = 4 (the scale last would give 8); the masked key's t would be 1024.
  const auto x = one_head(1, 2, 1, 1, {1}, {4, 64}, {3, 5});
  const auto out = run(x, Square{}, OnlyKey{0}, {0.5});
  EXPECT_EQ(out.lse(0, 0, 0), 4);
  EXPECT_EQ(out.row_max(0, 0, 0), 4);
  EXPECT_EQ(out.o(0, 0, 0, 0), 3);
}

struct PlainAlibi {
  float operator()(float s, int, int h, int q, int kv) const { return s + h * (kv - q); }
};
struct PlainCausal {
  bool operator()(int, int, int q, int kv) const { return kv <= q; }
};
TEST(ForwardFunctors, MayTakePlainNumbers) {
  const QKV<double> x(sizes_of(1, 2, 2, 5, 5, 4, 3), 5);  // s is a multiple of 2^-9: exact in fp32
  const auto slopes = filled<float, 1>({2}, {0, 1});
  expect_same(run(x, PlainAlibi{}, PlainCausal{}), run(x, Distance{slopes}, NotAfter{}));
}

TEST(ForwardFunctors, AReadOutOfRangeThrows) {
  const QKV<double> x(sizes_of(1, 3, 1, 2, 2, 2, 2), 5);
  const auto slopes = filled<float, 1>({2}, {0, 1});
  try {
    run(x, Distance{Captured<1>(slopes, "slope")}, All{});
    FAIL() << "nothing thrown";
  } catch (const std::invalid_argument& e) {
    EXPECT_STREQ(e.what(), "slope: index 2 in axis 0 of shape [2], expected 0 to 1");
  }
}

struct Overflowing {
  template <class Index>
  auto operator()(Index, Index, Index q, Index kv) const {
    return (q + 50000) * (kv + 50000) > 0;
  }
};
TEST(ForwardFunctors, BadArgumentsAreRefused) {
  const QKV<double> x(sizes_of(1, 2, 2, 3, 3, 4, 3), 5);
  EXPECT_THROW(run(x, Plain{}, Overflowing{}), std::invalid_argument);
  EXPECT_THROW(run(x, Plain{}, All{}, {nan}), std::invalid_argument);
  EXPECT_THROW(forward(x.q.view(), x.v.view(), x.v.view(), Plain{}, All{}), std::invalid_argument);
}

// ---- rows with no key --------------------------------------------------------------------------

TEST(ForwardEmptyRows, InEveryPosition) {
  const int sq = 67;  // two row blocks
  const QKV<double> x(sizes_of(1, 2, 1, sq, 3, 2, 2), 9);
  Table mask{Tensor<std::int32_t, 2>({sq, 3})};
  const auto full = run(x);
  for (int empty : {0, 1, 62, 63, 64, 65, 66}) {
    for (int q = 0; q < sq; ++q)
      for (int kv = 0; kv < 3; ++kv) mask.pairs(q, kv) = q != empty;
    const auto out = run(x, Plain{}, mask);
    for (int h : {0, 1})
      for (int q = 0; q < sq; ++q) {
        if (q == empty)
          expect_empty_row(out, 0, h, q);
        else
          EXPECT_EQ(out.lse(0, h, q), full.lse(0, h, q));
      }
  }
  mask.pairs = Tensor<std::int32_t, 2>({sq, 3});  // all of them
  const auto out = run(x, Plain{}, mask);
  for (int q = 0; q < sq; ++q) expect_empty_row(out, 0, 0, q);
}

struct Gate {  // -inf where kv > q: the mod masks
  template <class Score, class Index>
  Score operator()(Score s, Index, Index, Index q, Index kv) const {
    return attn::select(kv <= q - 1, s, -infinity);
  }
};
struct Before {
  template <class Index>
  auto operator()(Index, Index, Index q, Index kv) const {
    return kv <= q - 1;
  }
};
TEST(ForwardEmptyRows, AModThatYieldsMinusInfinityMasks) {
  const QKV<double> x(sizes_of(1, 1, 1, 5, 5, 4, 3), 5);
  const auto by_mod = run(x, Gate{}, All{});
  expect_same(by_mod, run(x, Plain{}, Before{}));
  expect_empty_row(by_mod, 0, 0, 0);
}

TEST(ForwardEmptyRows, ZeroSizes) {
  for (int skv : {0, 2}) {
    const QKV<float> x(sizes_of(2, 2, 1, 3, skv, 4, 5), 5);
    const auto out = run(x);
    EXPECT_EQ(out.o.extents(), (std::array<std::int64_t, 4>{2, 2, 3, 5}));
    if (skv == 0)
      for (int i = 0; i < 3; ++i) expect_empty_row(out, 1, 1, i);
  }
  EXPECT_EQ(run(QKV<float>(sizes_of(0, 2, 1, 3, 4, 4, 5), 5)).o.values().size(), 0u);
  EXPECT_EQ(run(QKV<float>(sizes_of(1, 0, 0, 3, 4, 4, 5), 5)).lse.values().size(), 0u);
  EXPECT_EQ(run(QKV<float>(sizes_of(1, 0, 2, 3, 4, 4, 5), 5)).lse.values().size(), 0u);
  EXPECT_EQ(run(QKV<float>(sizes_of(1, 2, 1, 0, 4, 4, 5), 5)).lse.values().size(), 0u);
  const QKV<float> no_values(sizes_of(1, 2, 1, 3, 4, 4, 0), 5);
  const auto out = run(no_values);
  EXPECT_EQ(out.o.values().size(), 0u);
  const Problem p = sizes_of(1, 2, 1, 3, 4, 4, 0);
  expect_matches(out, expected(p, exact(no_values)));
}

// ---- nothing leaks -----------------------------------------------------------------------------

TEST(ForwardLeaks, AMaskedPairHasNoEffect) {
  for (int sq : {1, 5, 66}) {  // a matrix-vector product, one block, two blocks
    const Problem p = sizes_of(1, 2, 1, sq, 6, 3, 4);
    const QKV<double> clean(p, 3);
    Table mask{Tensor<std::int32_t, 2>({sq, 6})};
    for (int q = 0; q < sq; ++q)
      for (int kv = 0; kv < 6; ++kv) mask.pairs(q, kv) = kv != 2 && kv != 5;
    const auto want = run(clean, Plain{}, mask);
    for (double bad : {nan, inf, -inf}) {
      QKV<double> x = clean;
      for (int key : {2, 5}) {
        for (int d = 0; d < 3; ++d) x.k(0, 0, key, d) = bad;
        for (int d = 0; d < 4; ++d) x.v(0, 0, key, d) = bad;
      }
      expect_same(run(x, Plain{}, mask), want);
    }
  }
}

/// Row 1 attends key 2, rows 0 and 2 do not.
Table only_row_one() {
  Table mask{Tensor<std::int32_t, 2>({3, 3})};
  for (int q = 0; q < 3; ++q)
    for (int kv = 0; kv < 3; ++kv) mask.pairs(q, kv) = kv < 2 || q == 1;
  return mask;
}

TEST(ForwardLeaks, ANaNInAnAttendedPairIsOfItsRowAlone) {
  const QKV<double> clean(sizes_of(1, 1, 1, 3, 3, 2, 2), 3);
  const auto want = run(clean, Plain{}, only_row_one());
  for (int where : {0, 1, 2}) {
    QKV<double> x = clean;
    if (where == 0) x.q(0, 0, 1, 1) = nan;
    if (where == 1) x.k(0, 0, 2, 1) = nan;
    if (where == 2) x.v(0, 0, 2, 1) = nan;
    const auto out = run(x, Plain{}, only_row_one());
    expect_nan_row(out, 0, 0, 1);
    EXPECT_TRUE(std::isnan(out.row_max(0, 0, 1)));
    for (int row : {0, 2}) {
      EXPECT_EQ(out.lse(0, 0, row), want.lse(0, 0, row));
      for (int d : {0, 1}) EXPECT_EQ(out.o(0, 0, row, d), want.o(0, 0, row, d));
    }
  }
}

TEST(ForwardLeaks, ANaNQueryOfAnEmptyRowHasNoEffect) {
  QKV<double> x(sizes_of(1, 1, 1, 3, 3, 2, 2), 3);
  x.q(0, 0, 0, 0) = nan;
  expect_empty_row(run(x, Plain{}, Before{}), 0, 0, 0);
}

struct At {  // `value` at (1, 2), the score elsewhere
  double value;
  template <class Score, class Index>
  Score operator()(Score s, Index, Index, Index q, Index kv) const {
    return attn::select(q == 1 && kv == 2, value, s);
  }
};
TEST(ForwardLeaks, AModThatYieldsNaNOrInfinityMakesItsRowNaN) {
  const QKV<double> x(sizes_of(1, 1, 1, 3, 3, 2, 2), 3);
  const auto want = run(x);
  for (double bad : {nan, inf}) {
    const auto out = run(x, At{bad});
    expect_nan_row(out, 0, 0, 1);
    for (int row : {0, 2}) EXPECT_EQ(out.lse(0, 0, row), want.lse(0, 0, row));
    Table mask = only_row_one();  // masked there, it has no effect
    mask.pairs(1, 2) = 0;
    expect_same(run(x, At{bad}, mask), run(x, Plain{}, mask));
  }
  EXPECT_TRUE(std::isnan(run(x, At{nan}).row_max(0, 0, 1)));
}

TEST(ForwardLeaks, AnInfiniteValueOfAnAttendedPairIsInItsColumn) {
  QKV<double> x(sizes_of(1, 1, 1, 3, 3, 2, 2), 3);
  const auto want = run(x, Plain{}, only_row_one());
  x.v(0, 0, 2, 1) = inf;
  const auto out = run(x, Plain{}, only_row_one());
  EXPECT_EQ(out.o(0, 0, 1, 1), inf);
  EXPECT_EQ(out.o(0, 0, 1, 0), want.o(0, 0, 1, 0));
  EXPECT_EQ(out.o(0, 0, 0, 1), want.o(0, 0, 0, 1));
  expect_same(out.lse, want.lse);
}

// ---- strides and storage types -----------------------------------------------------------------

TEST(ForwardStorage, AnyStrides) {
  const Problem p = sizes_of(2, 4, 2, 5, 6, 3, 4);
  const QKV<float> x(p, 11);
  const auto want = run(x);
  // [B, S, H, D] memory, seen as [B, H, S, D]
  Tensor<float, 4> q({2, 5, 4, 3}), k({2, 6, 2, 3});
  for (int b = 0; b < 2; ++b)
    for (int h = 0; h < 4; ++h)
      for (int s = 0; s < 5; ++s)
        for (int d = 0; d < 3; ++d) q(b, s, h, d) = x.q(b, h, s, d);
  // K backwards in memory
  for (int b = 0; b < 2; ++b)
    for (int h = 0; h < 2; ++h)
      for (int s = 0; s < 6; ++s)
        for (int d = 0; d < 3; ++d) k(b, 5 - s, h, 2 - d) = x.k(b, h, s, d);
  const TensorView<const float, 4> q_view{q.view().data, {2, 4, 5, 3}, {60, 3, 12, 1}};
  const TensorView<const float, 4> k_view{&k(0, 5, 0, 2), {2, 2, 6, 3}, {36, 3, -6, -1}};
  expect_same(forward(q_view, k_view, x.v.view(), Plain{}, All{}), want);
}

TEST(ForwardStorage, ExpandedAxes) {
  const Problem p = sizes_of(3, 2, 2, 4, 5, 3, 4);
  QKV<float> x(p, 11);
  for (int b : {1, 2})  // every batch and head sees the first K
    for (int s = 0; s < 5; ++s)
      for (int d = 0; d < 3; ++d) x.k(b, 0, s, d) = x.k(0, 0, s, d);
  for (int b : {0, 1, 2})
    for (int s = 0; s < 5; ++s)
      for (int d = 0; d < 3; ++d) x.k(b, 1, s, d) = x.k(0, 0, s, d);
  const TensorView<const float, 4> expanded{x.k.view().data, p.k_extents(), {0, 0, 3, 1}};
  expect_same(forward(x.q.view(), expanded, x.v.view(), Plain{}, All{}), run(x));
}

TEST(ForwardStorage, EveryTypeGivesItsExactValues) {
  const Problem p = sizes_of(1, 2, 1, 5, 7, 8, 3);
  const auto want = run(QKV<double>(p, 21));  // the same numbers, exact in every type
  expect_same(run(QKV<float>(p, 21)), want);
  expect_same(run(QKV<half>(p, 21)), want);
  expect_same(run(QKV<bfloat16>(p, 21)), want);
}

TEST(ForwardStorage, ScoresStayInDoublePrecision) {
  // 2^-20 beside 2^20 in a dot product, from fp16-sized numbers: 1024 * 1024 + 2^-10 * 2^-10
  Hand x = one_head(1, 1, 2, 1, {1024, 0x1p-10}, {1024, 0x1p-10}, {1});
  EXPECT_EQ(run(x, Plain{}, All{}, {1.0}).lse(0, 0, 0), 0x1p20 + 0x1p-20);
}

// ---- against three loops -----------------------------------------------------------------------

bool hand_causal(int, int, int q, int kv) { return kv <= q; }

TEST(ForwardAgainstLoops, RandomCases) {
  const auto slopes = filled<float, 1>({4}, {0.5, 0.25, -0.125, 0});
  const Distance distance{slopes};
  const SoftCap cap{2.5};
  unsigned seed = 100;
  for (const Problem& sizes : {sizes_of(1, 1, 1, 1, 1, 1, 1), sizes_of(2, 4, 2, 7, 9, 5, 3),
                               sizes_of(1, 4, 1, 9, 7, 16, 8), sizes_of(1, 1, 1, 65, 130, 33, 17),
                               sizes_of(1, 2, 1, 128, 31, 16, 16)})
    for (double scale : {1 / std::sqrt(sizes.d), -0.75, 0.0, 3.0}) {
      Problem p = sizes;
      p.scale = scale;
      const QKV<double> x(p, seed += 3);
      const Inputs in = exact(x);
      expect_matches(run(x, Plain{}, All{}, {scale}), expected(p, in));
      expect_matches(run(x, distance, NotAfter{}, {scale}),
                     expected(p, in, distance.by_hand(), hand_causal));
      expect_matches(run(x, cap, NotAfter{}, {scale}), expected(p, in, cap.by_hand(), hand_causal));
    }
}

TEST(ForwardAgainstLoops, RandomMasks) {
  const Problem p = sizes_of(1, 2, 1, 66, 40, 8, 4);
  const QKV<bfloat16> x(p, 7);
  std::mt19937 random(5);
  for (unsigned density : {1u, 4u, 15u}) {  // of 16: a density of 1 leaves rows empty
    Table mask{Tensor<std::int32_t, 2>({p.sq, p.skv})};
    for (auto& pair : mask.pairs.values()) pair = random() % 16 < density;
    expect_matches(run(x, Plain{}, mask),
                   expected(p, exact(x), hand_identity,
                            [&](int, int, int q, int kv) { return mask.pairs(q, kv) != 0; }));
  }
}

}  // namespace
}  // namespace attn::reference
