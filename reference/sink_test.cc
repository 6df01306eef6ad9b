#include "reference/sink.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "reference/gradient_fixtures.h"

namespace attn::reference {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

template <class Mod = Plain, class MaskMod = All>
ForwardResult run(const Case& c, Tensor<float, 1>* sink, const Mod& mod = {},
                  const MaskMod& mask = {}) {
  return forward(c.in.q.view(), c.in.k.view(), c.in.v.view(), mod, mask, Extras{sink}.options(c.p));
}
template <class Mod = Plain, class MaskMod = All>
BackwardResult run_backward(const Case& c, Tensor<float, 1>* sink, const Mod& mod = {},
                            const MaskMod& mask = {}) {
  return backward(c.in.q.view(), c.in.k.view(), c.in.v.view(), c.d_o.view(), mod, mask,
                  Extras{sink}.options(c.p), c.d_lse.view());
}

/// One head, one query, scores 0 for every key.
Case zero_scores(int skv, std::vector<double> v) {
  Case c(sizes_of(1, 1, 1, 1, skv, 1, 1), 1);
  c.in.q.values() = {0};
  c.in.v.values() = std::move(v);
  return c;
}

// ---- by hand -----------------------------------------------------------------------------------

TEST(SinkByHand, TakesTheShareOfOneKey) {
  // three keys and a sink, all of logit 0: P = 1/4, LSE = ln 4, O = (4 + 8 + 12) / 4 = 6
  auto sink = filled<float, 1>({1}, {0});
  const auto out = run(zero_scores(3, {4, 8, 12}), &sink);
  EXPECT_EQ(out.o(0, 0, 0, 0), 6);
  EXPECT_EQ(out.lse(0, 0, 0), std::log(4.0));
  EXPECT_EQ(out.row_max(0, 0, 0), 0);
}

TEST(SinkByHand, FarAboveTheScoresTakesAll) {
  auto sink = filled<float, 1>({1}, {1024});  // exp(-1024) is 0, exp(1024) infinite
  const auto out = run(zero_scores(2, {4, 8}), &sink);
  EXPECT_EQ(out.o(0, 0, 0, 0), 0);
  EXPECT_EQ(out.lse(0, 0, 0), 1024);
  EXPECT_EQ(out.row_max(0, 0, 0), 0);
}

TEST(SinkByHand, FarBelowTheScoresTakesNothing) {
  auto sink = filled<float, 1>({1}, {-1024});
  expect_bits(run(zero_scores(3, {4, 8, 1}), &sink), run(zero_scores(3, {4, 8, 1}), nullptr));
}

TEST(SinkByHand, HasAGradient) {
  // A row with no key: dSink = exp(sink - LSE) (dLSE - 0) = dLSE, for each head its own rows.
  Case c(sizes_of(2, 2, 1, 1, 0, 1, 1), 1);
  c.d_lse.values() = {1, 2, 4, 8};
  auto sink = filled<float, 1>({2}, {0.5, -3});
  EXPECT_EQ(run_backward(c, &sink).d_sink, (std::vector<double>{5, 10}));
  // A sink that takes all: P = 0, so delta = 0 and dSink = dLSE.
  Case far = zero_scores(2, {4, 8});
  far.d_lse.values() = {3};
  sink = filled<float, 1>({1}, {1024});
  EXPECT_EQ(run_backward(far, &sink).d_sink, std::vector<double>{3});
}

// ---- rows with no key --------------------------------------------------------------------------

/// [3, 3]: row 0 has no key, row 1 has keys 0 and 1, row 2 has keys 1 and 2.
Table staircase() { return {filled<std::int32_t, 2>({3, 3}, {0, 0, 0, 1, 1, 0, 0, 1, 1})}; }

TEST(SinkEmptyRows, HaveTheSinkAsTheirLse) {
  const Case c(sizes_of(2, 2, 1, 3, 3, 2, 2), 5);
  auto sink = filled<float, 1>({2}, {0.375, -70000});
  const auto out = run(c, &sink, Plain{}, staircase());
  for (int b : {0, 1})
    for (int h : {0, 1}) {
      EXPECT_EQ(out.lse(b, h, 0), sink(h));
      EXPECT_EQ(out.row_max(b, h, 0), -inf);
      for (int d : {0, 1}) EXPECT_EQ(out.o(b, h, 0, d), 0);
    }
}

TEST(SinkEmptyRows, ContributeToTheGradientOfTheSinkAlone) {
  Case c(sizes_of(1, 2, 1, 3, 3, 2, 2), 5);
  const auto slopes = filled<float, 1>({2}, {0.5, 0.25});
  auto sink = filled<float, 1>({2}, {0.375, -1});
  const BackwardResult before = run_backward(c, &sink, Distance{slopes}, staircase());
  for (int h : {0, 1}) {
    for (int d : {0, 1}) {
      EXPECT_EQ(before.dq(0, h, 0, d), 0);
      c.d_o(0, h, 0, d) += 8;
    }
    c.d_lse(0, h, 0) += 16;
  }
  const BackwardResult after = run_backward(c, &sink, Distance{slopes}, staircase());
  expect_bits("dq", after.dq, before.dq);
  expect_bits("dk", after.dk, before.dk);
  expect_bits("dv", after.dv, before.dv);
  EXPECT_EQ(after.d_captured[0].values, before.d_captured[0].values);
  const GradientBounds bounds =
      gradient_bounds(c,
                      expected(
                          c.p, c.in, Distance{slopes}.by_hand(),
                          [](int, int, int q, int kv) { return staircase().pairs(q, kv) != 0; },
                          Extras{&sink}.variant()),
                      1);
  for (int h : {0, 1})  // exp(sink - LSE) = 1
    EXPECT_LE(std::abs(after.d_sink[h] - before.d_sink[h] - 16), bounds.rho * bounds.d_sink[h]);
}

TEST(SinkOfMinusInfinity, IsNone) {
  const Case c(sizes_of(1, 2, 1, 3, 3, 2, 2), 5);
  auto sink = filled<float, 1>({2}, {-inf, -inf});
  expect_bits(run(c, &sink, Plain{}, staircase()), run(c, nullptr, Plain{}, staircase()));
  const BackwardResult got = run_backward(c, &sink, Plain{}, staircase()),
                       want = run_backward(c, nullptr, Plain{}, staircase());
  expect_bits("dq", got.dq, want.dq);
  EXPECT_EQ(got.d_sink, (std::vector<double>{0, 0}));
  EXPECT_EQ(want.d_sink, (std::vector<double>{0, 0}));
}

TEST(SinkOfNaN, MakesItsRowsNaN) {
  const Case c(sizes_of(1, 2, 1, 3, 3, 2, 2), 5);
  auto sink = filled<float, 1>({2}, {0, 1});
  const auto want = run(c, &sink);
  sink(0) = nan;
  const auto got = run(c, &sink);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(std::isnan(got.lse(0, 0, i)));
    for (int d : {0, 1}) EXPECT_TRUE(std::isnan(got.o(0, 0, i, d)));
    EXPECT_EQ(got.lse(0, 1, i), want.lse(0, 1, i));
    EXPECT_EQ(got.row_max(0, 0, i), want.row_max(0, 0, i));
  }
}

// ---- a sink is a key more ----------------------------------------------------------------------

/// Key `last` has the logit sink[h].
struct WithSinkKey {
  Captured<1> sink;
  int last;
  template <class Score, class Index>
  Score operator()(Score s, Index, Index h, Index, Index kv) const {
    return attn::select(kv == last, sink(h), s);
  }
};
struct NotAfterButLast {  // j <= i - 2, or the last key
  int last;
  template <class Index>
  auto operator()(Index, Index, Index q, Index kv) const {
    return kv <= q - 2 || kv == last;
  }
};
struct WellBefore {  // j <= i - 2: rows 0 and 1 have no key
  template <class Index>
  auto operator()(Index, Index, Index q, Index kv) const {
    return kv <= q - 2;
  }
};

/// The case with one more key, whose value is 0.
Case with_one_more_key(const Case& c) {
  Problem p = c.p;
  ++p.skv;
  Case more(p, 77);
  more.in.q = c.in.q, more.d_o = c.d_o, more.d_lse = c.d_lse;
  for (int b = 0; b < p.b; ++b)
    for (int h = 0; h < p.hkv; ++h)
      for (int j = 0; j < p.skv; ++j) {
        for (int d = 0; d < p.d && j < c.p.skv; ++d) more.in.k(b, h, j, d) = c.in.k(b, h, j, d);
        for (int d = 0; d < p.dv; ++d) more.in.v(b, h, j, d) = j < c.p.skv ? c.in.v(b, h, j, d) : 0;
      }
  return more;
}

TEST(SinkAsAKey, GivesTheSameOutputsAndGradients) {
  auto sink = filled<float, 1>({4}, {0.5, -2, 3, 0.25});
  for (const Problem& p : {sizes_of(2, 4, 2, 7, 5, 3, 2), sizes_of(1, 4, 1, 70, 9, 4, 5)}) {
    const Case c(p, 3), more = with_one_more_key(c);
    const int last = p.skv;
    // Both lie within the bounds of the exact values; those of the key cover the sink's.
    const HandMod by_hand = [&](Bounded s, int, int h, int, int kv) -> Bounded {
      return kv == last ? Bounded{sink(h), 0} : s;
    };
    const HandMask hand_mask = [&](int, int, int q, int kv) { return kv <= q - 2 || kv == last; };
    const Expected want = expected(more.p, more.in, by_hand, hand_mask);
    const ForwardResult got = run(c, &sink, Plain{}, WellBefore{}),
                        key = run(more, nullptr, WithSinkKey{sink, last}, NotAfterButLast{last});
    for (const ForwardResult* x : {&got, &key}) {
      expect_within("o", x->o, want.o, want.o_bound);
      expect_within("lse", x->lse, want.lse, want.lse_bound);
    }
    expect_bits("row_max", got.row_max, run(c, nullptr, Plain{}, WellBefore{}).row_max);

    const BackwardResult g = run_backward(c, &sink, Plain{}, WellBefore{}),
                         k = run_backward(more, nullptr, WithSinkKey{sink, last},
                                          NotAfterButLast{last});
    const GradientBounds bounds = gradient_bounds(more, want, 1);
    const auto twice = [&](Tensor4 magnitude) {
      for (double& m : magnitude.values()) m *= 2 * bounds.rho;
      return magnitude;
    };
    expect_within("dq", g.dq, k.dq, twice(bounds.dq));
    for (int h = 0; h < p.hkv; ++h)
      for (int j = 0; j < p.skv; ++j) {
        for (int d = 0; d < p.d; ++d)
          EXPECT_LE(std::abs(g.dk(0, h, j, d) - k.dk(0, h, j, d)),
                    2 * bounds.rho * bounds.dk(0, h, j, d));
        for (int d = 0; d < p.dv; ++d)
          EXPECT_LE(std::abs(g.dv(0, h, j, d) - k.dv(0, h, j, d)),
                    2 * bounds.rho * bounds.dv(0, h, j, d));
      }
    ASSERT_EQ(k.d_captured.size(), 1u);
    for (int h = 0; h < 4; ++h)
      EXPECT_LE(std::abs(g.d_sink[h] - k.d_captured[0].values[h]), 2 * bounds.rho * bounds.pairs);
  }
}

TEST(SinkByDifferences, WithModMaskAndEmptyRows) {
  auto sink = filled<float, 1>({4}, {0.5, -2, 3, 0.25});
  auto slopes = filled<float, 1>({4}, {0.5, 0.25, -0.125, 0});
  const Distance distance{slopes};
  expect_gradients(Case(sizes_of(2, 4, 2, 5, 4, 3, 2), 5), distance, WellBefore{},
                   distance.by_hand(), [](int, int, int q, int kv) { return kv <= q - 2; }, 4,
                   {&slopes}, 1, {&sink});
  const SoftCap cap{2};
  expect_gradients(Case(sizes_of(1, 4, 1, 3, 4, 2, 3), 6), cap, All{}, cap.by_hand(), hand_full, 1,
                   {}, 1, {&sink, {0.25, 9}});
}

}  // namespace
}  // namespace attn::reference
