#include "reference/decode.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "masks/causal.h"
#include "masks/window.h"
#include "reference/gradient_fixtures.h"

namespace attn::reference {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
using Lengths = std::vector<std::int32_t>;

/// Queries [B, Hq, Sq, D] and caches [B, Hkv, capacity, D]; what lies past a length is NaN.
struct Cached : Case {
  Cached(const Problem& p, Lengths filled, unsigned seed) : Case(p, seed), lengths(filled) {
    for (Tensor4* x : {&in.k, &in.v})
      for (int b = 0; b < p.b; ++b)
        for (int h = 0; h < p.hkv; ++h)
          for (int j = lengths[b]; j < p.skv; ++j)
            for (int d = 0; d < x->extents()[3]; ++d) (*x)(b, h, j, d) = nan;
  }
  template <class Mod = Plain, class MaskMod = All>
  ForwardResult run(const Mod& mod = {}, const MaskMod& mask = {},
                    const Extras& extras = {}) const {
    return decode(in.q.view(), in.k.view(), in.v.view(), lengths, mod, mask, extras.options(p));
  }
  Lengths lengths;
};

/// The same caches in pages of `page_size` slots, in a random order among `spare` unused pages;
/// unused slots hold NaN, unused entries of the table a page that does not exist.
struct Paged {
  Paged(const Cached& c, int page_size, int spare, unsigned seed) {
    const Problem& p = c.p;
    const auto pages_for = [&](int length) { return (length + page_size - 1) / page_size; };
    std::vector<std::int32_t> free;
    int used = 0;
    for (std::int32_t n : c.lengths) used += pages_for(n);
    for (int page = 0; page < used + spare; ++page) free.push_back(page);
    std::shuffle(free.begin(), free.end(), std::mt19937(seed));
    k = Tensor4({used + spare, p.hkv, page_size, p.d});
    v = Tensor4({used + spare, p.hkv, page_size, p.dv});
    for (Tensor4* x : {&k, &v})
      for (double& value : x->values()) value = nan;
    table = Tensor<std::int32_t, 2>({p.b, pages_for(p.skv) + 1});
    for (auto& page : table.values()) page = -1000000;
    for (int b = 0; b < p.b; ++b)
      for (int j = 0; j < c.lengths[b]; ++j) {
        std::int32_t& page = table(b, j / page_size);
        if (j % page_size == 0) page = free.back(), free.pop_back();
        for (int h = 0; h < p.hkv; ++h) {
          for (int d = 0; d < p.d; ++d) k(page, h, j % page_size, d) = c.in.k(b, h, j, d);
          for (int d = 0; d < p.dv; ++d) v(page, h, j % page_size, d) = c.in.v(b, h, j, d);
        }
      }
  }
  template <class Mod = Plain, class MaskMod = All>
  ForwardResult run(const Cached& c, const Mod& mod = {}, const MaskMod& mask = {},
                    const Extras& extras = {}) const {
    return decode_paged(c.in.q.view(), k.view(), v.view(), table.view(), c.lengths, mod, mask,
                        extras.options(c.p));
  }
  Tensor4 k, v;
  Tensor<std::int32_t, 2> table;
};

// ---- by hand -----------------------------------------------------------------------------------

TEST(DecodeByHand, AveragesWhatIsFilled) {
  // q = 0 and lengths 0, 2, 4 of capacity 4
  Cached c(sizes_of(3, 1, 1, 1, 4, 1, 1), {0, 2, 4}, 1);
  for (double& q : c.in.q.values()) q = 0;
  for (double& k : c.in.k.values()) k = std::isnan(k) ? k : 1;
  for (int j : {0, 1}) c.in.v(1, 0, j, 0) = 2 + 4 * j;     // 2, 6
  for (int j = 0; j < 4; ++j) c.in.v(2, 0, j, 0) = 8 * j;  // 0, 8, 16, 24
  const auto out = c.run();
  EXPECT_EQ(out.o.values(), (std::vector<double>{0, 4, 12}));
  EXPECT_EQ(out.lse.values(), (std::vector<double>{masked, std::log(2.0), std::log(4.0)}));
}

struct Asks {  // one number for what a functor sees
  template <class Score, class Index>
  Score operator()(Score s, Index b, Index, Index q, Index kv) const {
    const Sizes& n = sizes(q);
    return s * 0 + (b * 10000 + (q + 50) * 100 + kv) * 1000 + n.b * 100 + n.sq * 10 + n.skv;
  }
};
struct LastKey {
  template <class Index>
  auto operator()(Index, Index, Index q, Index kv) const {
    return kv == sizes(q).skv - 1;
  }
};
TEST(DecodeByHand, FunctorsSeeThePlaceInTheSequence) {
  // Sq = 2, lengths 5 and 1: q = 3, 4 and -1, 0; the last key of each row: t = LSE
  const auto out = Cached(sizes_of(2, 1, 1, 2, 6, 1, 1), {5, 1}, 1).run(Asks{}, LastKey{});
  EXPECT_EQ(out.lse.values(), (std::vector<double>{5304225, 5404225, 14900221, 15000221}));
}

TEST(DecodeByHand, CausalStepsSeeTheirPast) {
  // q = 0, length 5, the last two queries: keys 0..3 and 0..4
  Cached c(sizes_of(1, 1, 1, 2, 8, 1, 1), {5}, 1);
  for (double& q : c.in.q.values()) q = 0;
  const std::vector<double> want{std::log(4.0), std::log(5.0)};
  EXPECT_EQ(c.run(Plain{}, causal(bottom_right)).lse.values(), want);
  EXPECT_EQ(c.run(Plain{}, NotAfter{}).lse.values(), want);
}

// ---- a decode step is a row of the whole -------------------------------------------------------

/// For every sequence: the whole forward of its keys, the decode's queries being its last rows.
template <class Mod, class MaskMod>
void expect_rows_of_the_whole(const Cached& c, const Mod& mod, const MaskMod& mask,
                              const Extras& extras = {}) {
  const ForwardResult got = c.run(mod, mask, extras);
  for (int b = 0; b < c.p.b; ++b) {
    const int n = c.lengths[b];
    ASSERT_GE(n, c.p.sq);
    Problem whole = c.p;
    whole.sq = whole.skv = n;
    Case all(whole, 99);
    for (int h = 0; h < whole.hq; ++h)
      for (int i = 0; i < c.p.sq; ++i)
        for (int d = 0; d < whole.d; ++d) all.in.q(b, h, n - c.p.sq + i, d) = c.in.q(b, h, i, d);
    for (int h = 0; h < whole.hkv; ++h)
      for (int j = 0; j < n; ++j) {
        for (int d = 0; d < whole.d; ++d) all.in.k(b, h, j, d) = c.in.k(b, h, j, d);
        for (int d = 0; d < whole.dv; ++d) all.in.v(b, h, j, d) = c.in.v(b, h, j, d);
      }
    const ForwardResult want = forward(all.in.q.view(), all.in.k.view(), all.in.v.view(), mod, mask,
                                       extras.options(whole));
    for (int h = 0; h < whole.hq; ++h)
      for (int i = 0; i < c.p.sq; ++i) {
        const int row = n - c.p.sq + i;
        EXPECT_EQ(got.lse(b, h, i), want.lse(b, h, row)) << b << ", " << row << " of " << n;
        EXPECT_EQ(got.row_max(b, h, i), want.row_max(b, h, row));
        for (int d = 0; d < whole.dv; ++d)
          EXPECT_EQ(got.o(b, h, i, d), want.o(b, h, row, d)) << b << ", " << row << " of " << n;
      }
  }
}

TEST(DecodeIsARowOfTheWhole, BitForBit) {
  auto slopes = filled<float, 1>({4}, {0.5, 0.25, -0.125, 0});
  auto sink = filled<float, 1>({4}, {0.5, -2, 3, 0.25});
  const Distance distance{slopes};
  const Extras extras{&sink, {0.25, 11}};  // dropout draws by the index q
  for (int sq : {1, 2, 7})
    for (const Problem& p : {sizes_of(4, 4, 2, sq, 150, 3, 2), sizes_of(4, 4, 1, sq, 150, 33, 17),
                             sizes_of(4, 4, 4, sq, 150, 64, 1)}) {
      Cached c(p, {7, 64, 129, 150}, 3);
      for (Tensor4* x : {&c.in.q, &c.in.k, &c.in.v})  // so that products and sums round
        for (double& value : x->values()) value /= 3;
      expect_rows_of_the_whole(c, Plain{}, All{});
      expect_rows_of_the_whole(c, distance, NotAfter{}, extras);
      expect_rows_of_the_whole(c, distance, causal(bottom_right));
      expect_rows_of_the_whole(c, Plain{}, window(5, 0, bottom_right), extras);
    }
}

TEST(DecodeIsARowOfTheWhole, AllRowsAreTheForward) {
  const Case c(sizes_of(2, 4, 2, 9, 9, 3, 2), 3);
  const Lengths lengths{9, 9};
  expect_bits(decode(c.in.q.view(), c.in.k.view(), c.in.v.view(), lengths, Plain{}, NotAfter{},
                     Options{c.p.scale}),
              forward(c.in.q.view(), c.in.k.view(), c.in.v.view(), Plain{}, NotAfter{},
                      Options{c.p.scale}));
}

TEST(Decode, MayHaveMoreQueriesThanKeys) {
  // Sq = 3, length 1: q = -2, -1, 0; of a causal mask the first two rows have no key.
  const Cached c(sizes_of(1, 2, 1, 3, 4, 2, 2), {1}, 1);
  const auto out = c.run(Plain{}, NotAfter{});
  for (int h : {0, 1}) {
    EXPECT_EQ(out.lse(0, h, 0), masked);
    EXPECT_EQ(out.lse(0, h, 1), masked);
    for (int d : {0, 1}) EXPECT_EQ(out.o(0, h, 2, d), c.in.v(0, 0, 0, d));
  }
}

TEST(Decode, MayHaveNothing) {
  for (const Problem& p : {sizes_of(2, 2, 1, 1, 0, 3, 2), sizes_of(2, 2, 1, 0, 4, 3, 2)}) {
    const auto out = Cached(p, {0, 0}, 1).run();
    EXPECT_EQ(out.o.extents(), p.o_extents());
    for (double x : out.lse.values()) EXPECT_EQ(x, masked);
  }
  EXPECT_EQ(Cached(sizes_of(0, 2, 1, 1, 4, 3, 2), {}, 1).run().lse.values().size(), 0u);
}

// ---- pages -------------------------------------------------------------------------------------

TEST(PagedByHand, RowsFollowTheTable) {
  // pages of 2 slots, page 1 before page 0, length 4 of 6: V = 1, 3, 5, 7 and q = 0
  const auto q = filled<double, 4>({1, 1, 1, 1}, {0});
  const auto k = filled<double, 4>({2, 1, 2, 1}, {1, 1, 1, 1}),
             v = filled<double, 4>({2, 1, 2, 1}, {5, 7, 1, 3});
  const auto table = filled<std::int32_t, 2>({1, 3}, {1, 0, -7});
  const auto run = [&](std::int32_t length, const auto& mask) {
    return decode_paged(q.view(), k.view(), v.view(), table.view(), Lengths{length}, Plain{}, mask)
        .o(0, 0, 0, 0);
  };
  EXPECT_EQ(run(4, All{}), 4);
  EXPECT_EQ(run(2, All{}), 2);
  EXPECT_EQ(run(1, LastKey{}), 1);
  EXPECT_EQ(run(2, LastKey{}), 3);
  EXPECT_EQ(run(3, LastKey{}), 5);
  EXPECT_EQ(run(4, LastKey{}), 7);
}

TEST(PagedIsContiguous, BitForBitForAnyTable) {
  auto slopes = filled<float, 1>({4}, {0.5, 0.25, -0.125, 0});
  auto sink = filled<float, 1>({4}, {0.5, -2, 3, 0.25});
  const Distance distance{slopes};
  const Extras extras{&sink, {0.25, 11}};
  unsigned seed = 20;
  for (int sq : {1, 3})
    for (const Lengths& lengths : {Lengths{0, 7, 48, 1}, Lengths{48, 16, 0, 33}}) {
      const Cached c(sizes_of(4, 4, 2, sq, 48, 5, 3), lengths, 3);
      for (int page_size : {1, 3, 16})
        for (int spare : {0, 4}) {
          const Paged paged(c, page_size, spare, ++seed);
          expect_bits(paged.run(c), c.run());
          expect_bits(paged.run(c, distance, NotAfter{}, extras),
                      c.run(distance, NotAfter{}, extras));
        }
    }
}

TEST(PagedIsContiguous, SequencesMayShareAPage) {
  Cached c(sizes_of(2, 2, 1, 1, 4, 2, 2), {4, 4}, 3);
  for (Tensor4* x : {&c.in.k, &c.in.v})  // the same first two rows
    for (int j : {0, 1})
      for (int d : {0, 1}) (*x)(1, 0, j, d) = (*x)(0, 0, j, d);
  Paged paged(c, 2, 0, 1);
  paged.table(1, 0) = paged.table(0, 0);
  expect_bits(paged.run(c), c.run());
}

TEST(PagedIsContiguous, OfAnyStridesAndType) {
  const Cached c(sizes_of(2, 2, 1, 1, 12, 4, 3), {12, 5}, 3);
  Paged paged(c, 4, 2, 1);
  // [pages, page_size, Hkv, D] memory in half precision, and a table column-major
  const auto [pages, heads, slots, d] = paged.k.extents();
  Tensor<half, 4> k({pages, slots, heads, d}), v(paged.v.extents());
  for (int page = 0; page < pages; ++page)
    for (int slot = 0; slot < slots; ++slot) {
      for (int x = 0; x < 4; ++x) k(page, slot, 0, x) = stored<half>(paged.k(page, 0, slot, x));
      for (int x = 0; x < 3; ++x) v(page, 0, slot, x) = stored<half>(paged.v(page, 0, slot, x));
    }
  Tensor<half, 4> q(c.in.q.extents());
  std::transform(c.in.q.values().begin(), c.in.q.values().end(), q.values().begin(), stored<half>);
  Tensor<std::int32_t, 2> turned({4, 2});
  for (int b : {0, 1})
    for (int n = 0; n < 4; ++n) turned(n, b) = paged.table(b, n);
  const TensorView<const half, 4> k_view{
      k.view().data, {pages, heads, slots, d}, {slots * heads * d, d, heads * d, 1}};
  const TensorView<const std::int32_t, 2> table{turned.view().data, {2, 4}, {1, 2}};
  expect_bits(decode_paged(q.view(), k_view, v.view(), table, c.lengths, Plain{}, All{},
                           Options{c.p.scale}),
              c.run());
}

}  // namespace
}  // namespace attn::reference
