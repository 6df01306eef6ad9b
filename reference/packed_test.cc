#include "reference/packed.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "masks/causal.h"
#include "reference/gradient_fixtures.h"

namespace attn::reference {
namespace {

using Lengths = std::vector<std::int32_t>;

Lengths cumulative(const Lengths& lengths) {
  Lengths cu{0};
  for (std::int32_t n : lengths) cu.push_back(cu.back() + n);
  return cu;
}

/// Sequences of the given lengths, packed.
struct Packed : Case {
  Packed(Problem p, Lengths q, Lengths kv, unsigned seed)
      : Case((p.sq = cumulative(q).back(), p.skv = cumulative(kv).back(), p), seed),
        q_lengths(q),
        kv_lengths(kv),
        cu_q(cumulative(q)),
        cu_kv(cumulative(kv)) {}

  template <class Mod = Plain, class MaskMod = All>
  ForwardResult forward(const Mod& mod = {}, const MaskMod& mask = {},
                        const Extras& extras = {}) const {
    return forward_packed(in.q.view(), in.k.view(), in.v.view(), cu_q, cu_kv, mod, mask,
                          extras.options(p));
  }
  template <class Mod = Plain, class MaskMod = All>
  BackwardResult backward(const Mod& mod = {}, const MaskMod& mask = {},
                          const Extras& extras = {}) const {
    return backward_packed(in.q.view(), in.k.view(), in.v.view(), cu_q, cu_kv, d_o.view(), mod,
                           mask, extras.options(p), d_lse.view());
  }
  /// Sequence b alone.
  Case alone(int b) const {
    Problem part = p;
    part.sq = q_lengths[b], part.skv = kv_lengths[b];
    Case c(part, 1);
    c.in.q = rows(in.q, b, cu_q), c.in.k = rows(in.k, b, cu_kv), c.in.v = rows(in.v, b, cu_kv);
    c.d_o = rows(d_o, b, cu_q), c.d_lse = rows(d_lse, b, cu_q);
    return c;
  }
  template <int Rank>
  static Tensor<double, Rank> rows(const Tensor<double, Rank>& x, int b, const Lengths& cu) {
    auto extents = x.extents();
    extents[2] = cu[b + 1] - cu[b];
    Tensor<double, Rank> part(extents);
    const std::int64_t width = Rank == 4 ? extents[Rank - 1] : 1;
    for (std::int64_t h = 0; h < extents[1]; ++h)
      for (std::int64_t n = 0; n < extents[2] * width; ++n)
        part.values()[h * extents[2] * width + n] =
            x.values()[(h * x.extents()[2] + cu[b]) * width + n];
    return part;
  }

  Lengths q_lengths, kv_lengths, cu_q, cu_kv;
};

// ---- by hand -----------------------------------------------------------------------------------

TEST(PackedByHand, EachSequenceAveragesItsOwnValues) {
  // q = 0; queries 2, 0, 1 and keys 1, 2, 2: O = 4, 4 | | (16 + 32) / 2
  Packed c(sizes_of(1, 1, 1, 0, 0, 1, 1), {2, 0, 1}, {1, 2, 2}, 1);
  for (double& q : c.in.q.values()) q = 0;
  c.in.v.values() = {4, 100, 200, 16, 32};
  const auto out = c.forward();
  EXPECT_EQ(out.o.values(), (std::vector<double>{4, 4, 24}));
  EXPECT_EQ(out.lse.values(), (std::vector<double>{0, 0, std::log(2.0)}));
}

TEST(PackedByHand, ASequenceWithoutKeysHasEmptyRows) {
  Packed c(sizes_of(1, 1, 1, 0, 0, 1, 1), {1, 2}, {1, 0}, 1);
  c.in.q.values() = {0, 1, 2};
  c.in.v.values() = {4};
  const auto out = c.forward();
  EXPECT_EQ(out.o.values(), (std::vector<double>{4, 0, 0}));
  EXPECT_EQ(out.lse.values(), (std::vector<double>{0, masked, masked}));
  auto sink = filled<float, 1>({1}, {0});
  EXPECT_EQ(c.forward(Plain{}, All{}, {&sink}).lse.values(),
            (std::vector<double>{std::log(2.0), 0, 0}));
}

struct Asks {  // one number for what a functor sees
  template <class Score, class Index>
  Score operator()(Score s, Index b, Index, Index q, Index kv) const {
    const Sizes& n = sizes(q);
    return s * 0 + ((b * 10 + q) * 10 + kv) * 1000 +
           (((n.b * 10 + n.sq) * 10 + n.skv) * 100 + n.q_start * 10 + n.kv_start);
  }
};
struct LastKey {
  template <class Index>
  auto operator()(Index, Index, Index q, Index kv) const {
    return kv == sizes(q).skv - 1;
  }
};
TEST(PackedByHand, FunctorsSeeTheSequence) {
  // queries 2, 0, 1 and keys 1, 2, 3; the last key of each row: t = LSE
  const auto out =
      Packed(sizes_of(1, 1, 1, 0, 0, 1, 1), {2, 0, 1}, {1, 2, 3}, 1).forward(Asks{}, LastKey{});
  EXPECT_EQ(out.lse.values(),
            (std::vector<double>{// b q kv       N Sq Skv  q_start kv_start
                                 0 + 0 + 32100 + 0, 10000 + 32100 + 0, 202000 + 31300 + 23}));
}

// ---- each sequence alone -----------------------------------------------------------------------

/// Zero lengths at the start, in the middle and at the end; more keys than queries and fewer;
/// more than a row block.
const std::vector<std::pair<Lengths, Lengths>> shapes{
    {{3, 5}, {4, 2}},       {{0, 3, 0, 1, 0}, {2, 4, 0, 1, 0}},
    {{2, 3, 4}, {0, 0, 5}}, {{70, 1, 64}, {5, 70, 9}},
    {{0, 0}, {0, 3}},       {{0, 2}, {0, 0}},
};

/// How far two sums of the same terms in another order may be apart: n u times the sum of their
/// magnitudes on each side, n the terms of all sequences (at most 139 x 84 pairs).
struct Rounding {
  double d_slopes = 0;
  std::vector<double> d_sink = std::vector<double>(4);
  void add(const Case& c, const Expected& e) {
    const GradientBounds bounds = gradient_bounds(c, e, 70);  // |j - i| <= 70
    const double each = 2 * std::expm1(unit * 139 * 84) * (1 + bounds.rho);
    d_slopes += each * bounds.pairs;
    for (int h = 0; h < 4; ++h) d_sink[h] += each * bounds.d_sink[h];
  }
};

using HandMaskOf = std::function<HandMask(const Problem&)>;

/// With a mod and a mask that read no b, which is 0 alone.
template <class MaskMod>
void expect_each_alone(const MaskMod& mask, const HandMaskOf& hand_mask, const Problem& p) {
  auto slopes = filled<float, 1>({4}, {0.5, 0.25, -0.125, 0});
  auto sink = filled<float, 1>({4}, {0.5, -2, 3, 0.25});
  const Distance distance{slopes};
  for (const auto& [q, kv] : shapes) {
    const Packed c(p, q, kv, 3);
    const Extras extras{&sink};
    const ForwardResult all = c.forward(distance, mask, extras);
    const BackwardResult grad = c.backward(distance, mask, extras);
    std::vector<double> d_slopes(4), d_sink(4);
    Rounding rounding;
    for (std::size_t b = 0; b < q.size(); ++b) {
      const Case one = c.alone(b);
      const ForwardResult want = reference::forward(
          one.in.q.view(), one.in.k.view(), one.in.v.view(), distance, mask, extras.options(p));
      expect_bits("o", c.rows(all.o, b, c.cu_q), want.o);
      expect_bits("lse", c.rows(all.lse, b, c.cu_q), want.lse);
      expect_bits("row_max", c.rows(all.row_max, b, c.cu_q), want.row_max);
      const BackwardResult g =
          reference::backward(one.in.q.view(), one.in.k.view(), one.in.v.view(), one.d_o.view(),
                              distance, mask, extras.options(p), one.d_lse.view());
      expect_bits("dq", c.rows(grad.dq, b, c.cu_q), g.dq);
      expect_bits("dk", c.rows(grad.dk, b, c.cu_kv), g.dk);
      expect_bits("dv", c.rows(grad.dv, b, c.cu_kv), g.dv);
      for (int h = 0; h < 4; ++h)
        d_slopes[h] += g.d_captured[0].values[h], d_sink[h] += g.d_sink[h];
      rounding.add(one,
                   expected(one.p, one.in, distance.by_hand(), hand_mask(one.p), extras.variant()));
    }
    for (int h = 0; h < 4; ++h) {
      EXPECT_LE(std::abs(grad.d_captured[0].values[h] - d_slopes[h]), rounding.d_slopes);
      EXPECT_LE(std::abs(grad.d_sink[h] - d_sink[h]), rounding.d_sink[h]);
    }
  }
}

TEST(PackedIsEachAlone, BitForBit) {
  expect_each_alone(
      All{}, [](const Problem&) { return hand_full; }, sizes_of(1, 4, 2, 0, 0, 3, 2));
  expect_each_alone(
      NotAfter{}, [](const Problem&) { return hand_causal; }, sizes_of(1, 4, 1, 0, 0, 16, 8));
  expect_each_alone(
      causal(bottom_right),
      [](const Problem& p) -> HandMask {
        return [off = p.skv - p.sq](int, int, int q, int kv) { return kv <= q + off; };
      },
      sizes_of(1, 4, 4, 0, 0, 5, 7));
}

TEST(PackedIsEachAlone, OneSequenceIsDense) {
  const Packed c(sizes_of(1, 4, 2, 0, 0, 3, 2), {70}, {9}, 3);
  const Extras extras{nullptr, {0.25, 8}};  // b = 0 in both: dropout draws the same
  expect_bits(c.forward(Plain{}, NotAfter{}, extras),
              reference::forward(c.in.q.view(), c.in.k.view(), c.in.v.view(), Plain{}, NotAfter{},
                                 extras.options(c.p)));
}

/// A dense batch of equal lengths, laid out as packed sequences.
TEST(PackedIsEachAlone, ABatchOfEqualLengthsIsDense) {
  const Case dense(sizes_of(3, 4, 2, 5, 6, 3, 2), 3);
  Packed c(sizes_of(1, 4, 2, 0, 0, 3, 2), {5, 5, 5}, {6, 6, 6}, 3);
  const auto pack = [](const Tensor4& from, Tensor4& to) {
    const auto [b, heads, s, d] = from.extents();
    for (int n = 0; n < b; ++n)
      for (int h = 0; h < heads; ++h)
        for (int i = 0; i < s; ++i)
          for (int x = 0; x < d; ++x) to(0, h, n * s + i, x) = from(n, h, i, x);
  };
  pack(dense.in.q, c.in.q), pack(dense.in.k, c.in.k), pack(dense.in.v, c.in.v);
  const Extras extras{nullptr, {0.25, 8}};  // b of dropout is the sequence
  const ForwardResult want = reference::forward(dense.in.q.view(), dense.in.k.view(),
                                                dense.in.v.view(), Plain{}, NotAfter{},
                                                extras.options(dense.p)),
                      got = c.forward(Plain{}, NotAfter{}, extras);
  Tensor4 o({1, 4, 15, 2});
  pack(want.o, o);
  expect_bits("o", got.o, o);
}

TEST(Packed, NothingLeaksFromOneSequenceToAnother) {
  const Problem p = sizes_of(1, 4, 2, 0, 0, 3, 2);
  const Packed clean(p, {3, 2, 4}, {2, 3, 5}, 3);
  const ForwardResult want = clean.forward();
  const BackwardResult grad = clean.backward();
  Packed c = clean;
  for (int h = 0; h < 2; ++h)
    for (int j = 2; j < 5; ++j)  // the keys of sequence 1
      c.in.k(0, h, j, 0) = c.in.v(0, h, j, 0) = std::numeric_limits<double>::quiet_NaN();
  const ForwardResult got = c.forward();
  const BackwardResult g = c.backward();
  for (int b : {0, 2}) {
    expect_bits("o", c.rows(got.o, b, c.cu_q), c.rows(want.o, b, c.cu_q));
    expect_bits("lse", c.rows(got.lse, b, c.cu_q), c.rows(want.lse, b, c.cu_q));
    expect_bits("dq", c.rows(g.dq, b, c.cu_q), c.rows(grad.dq, b, c.cu_q));
    expect_bits("dk", c.rows(g.dk, b, c.cu_kv), c.rows(grad.dk, b, c.cu_kv));
    expect_bits("dv", c.rows(g.dv, b, c.cu_kv), c.rows(grad.dv, b, c.cu_kv));
  }
  const Tensor3 lse = c.rows(got.lse, 1, c.cu_q);
  for (double x : lse.values()) EXPECT_TRUE(std::isnan(x));
}

TEST(Packed, NoSequencesAreValid) {
  const Packed none(sizes_of(1, 4, 2, 0, 0, 3, 2), {}, {}, 3);
  EXPECT_EQ(none.forward().o.extents(), (std::array<std::int64_t, 4>{1, 4, 0, 2}));
  EXPECT_EQ(none.backward().d_sink, (std::vector<double>{0, 0, 0, 0}));
}

}  // namespace
}  // namespace attn::reference
