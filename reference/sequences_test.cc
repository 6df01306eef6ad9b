#include "reference/sequences.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "reference/decode.h"
#include "reference/packed.h"

namespace attn {
namespace {

using Entries = std::vector<std::int32_t>;

/// The message of the refusal; "nothing thrown" if there is none.
template <class F>
std::string refusal(F f) {
  try {
    f();
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return "nothing thrown";
}

Problem problem_of(int b, int hq, int hkv, int sq, int skv) {
  Problem p;
  p.b = b, p.hq = hq, p.hkv = hkv, p.sq = sq, p.skv = skv, p.d = 4, p.dv = 4;
  return p;
}

// ---- cumulative lengths ------------------------------------------------------------------------

TEST(PackedSequences, AreTheStretchesBetweenTheEntries) {
  const auto sequences =
      packed_sequences(problem_of(1, 4, 2, 5, 7), Entries{0, 2, 2, 5}, Entries{0, 0, 6, 7});
  ASSERT_EQ(sequences.size(), 3u);
  const Sequence& last = sequences[2];
  EXPECT_EQ(last.b, 2);
  EXPECT_EQ(last.sizes.b, 3);
  EXPECT_EQ(last.sizes.hq, 4);
  EXPECT_EQ(last.sizes.hkv, 2);
  EXPECT_EQ(last.sizes.sq, 3);
  EXPECT_EQ(last.sizes.skv, 1);
  EXPECT_EQ(last.sizes.q_start, 2);
  EXPECT_EQ(last.sizes.kv_start, 6);
  EXPECT_EQ(last.sizes.q_offset, 0);
  EXPECT_EQ(last.queries.batch, 0);
  EXPECT_EQ(last.queries.first, 2);
  EXPECT_EQ(last.queries.count, 3);
  EXPECT_EQ(last.keys.first, 6);
  EXPECT_EQ(last.keys.count, 1);
  EXPECT_EQ(sequences[1].queries.count, 0);
}

std::string packed(Entries cu_q, Entries cu_kv, int b = 1) {
  return refusal([&] { packed_sequences(problem_of(b, 2, 1, 5, 7), cu_q, cu_kv); });
}
TEST(PackedSequences, RefuseWhatDoesNotFit) {
  EXPECT_EQ(packed({0, 2, 5}, {0, 7, 7}), "nothing thrown");
  EXPECT_EQ(packed({}, {0, 7}), "cu_q: no entries, expected one more than sequences");
  EXPECT_EQ(packed({0, 5}, {}), "cu_kv: no entries, expected one more than sequences");
  EXPECT_EQ(packed({1, 5}, {0, 7}), "cu_q: entry 0 is 1, expected 0");
  EXPECT_EQ(packed({0, 5}, {-1, 7}), "cu_kv: entry 0 is -1, expected 0");
  EXPECT_EQ(packed({0, 3, 2, 5}, {0, 1, 2, 7}), "cu_q: entry 2 is 2, expected at least 3");
  EXPECT_EQ(packed({0, 6}, {0, 7}),
            "cu_q: entry 1 is 6, expected the length of the packed axis, 5");
  EXPECT_EQ(packed({0, 5}, {0, 6}),
            "cu_kv: entry 1 is 6, expected the length of the packed axis, 7");
  EXPECT_EQ(packed({0, 5}, {0, 3, 7}), "cu_kv: 3 entries, expected 2 as in cu_q");
  EXPECT_EQ(packed({0, 5}, {0, 7}, 2), "q: 2 batch entries, expected packed sequences in 1");
}

// ---- lengths -----------------------------------------------------------------------------------

TEST(CachedSequences, EndOnTheirLastQuery) {
  const auto sequences = cached_sequences(problem_of(2, 4, 2, 3, 8), Entries{8, 1});
  ASSERT_EQ(sequences.size(), 2u);
  EXPECT_EQ(sequences[0].sizes.q_offset, 5);
  EXPECT_EQ(sequences[1].sizes.q_offset, -2);
  EXPECT_EQ(sequences[1].sizes.sq, 3);
  EXPECT_EQ(sequences[1].sizes.skv, 1);
  EXPECT_EQ(sequences[1].sizes.b, 2);
  EXPECT_EQ(sequences[1].b, 1);
  EXPECT_EQ(sequences[1].keys.batch, 1);
  EXPECT_EQ(sequences[1].keys.count, 1);
  EXPECT_EQ(sequences[1].queries.count, 3);
}

TEST(CachedSequences, RefuseWhatDoesNotFit) {
  const auto cached = [](Entries lengths) {
    return refusal([&] { cached_sequences(problem_of(2, 2, 1, 1, 8), lengths); });
  };
  EXPECT_EQ(cached({0, 8}), "nothing thrown");
  EXPECT_EQ(cached({8}), "lengths: 1 entries, expected one a batch entry, 2");
  EXPECT_EQ(cached({8, 9}), "lengths: entry 1 is 9, expected 0 to the capacity 8");
  EXPECT_EQ(cached({-1, 8}), "lengths: entry 0 is -1, expected 0 to the capacity 8");
}

// ---- pages -------------------------------------------------------------------------------------

struct Pages {
  std::int64_t pages = 4, page_size = 3;
  Entries table{0, 3, 9, 1, 9, 9};  // [2, 3]
  std::array<std::int64_t, 2> table_extents{2, 3};
  Entries lengths{6, 2};

  std::string refused() const {
    const Tensor<float, 4> q({2, 2, 1, 4}), k({pages, 1, page_size, 4});
    const TensorView<const std::int32_t, 2> view{
        table.empty() ? nullptr : table.data(), table_extents, {3, 1}};
    return refusal([&] {
      const Problem p = make_paged_problem(describe("q", q.view()), describe("k", k.view()),
                                           describe("v", k.view()), view);
      check_page_table(view, cached_sequences(p, lengths), pages, static_cast<int>(page_size));
    });
  }
};

TEST(PageTable, IsCheckedAsFarAsTheLengthsNeed) {
  Pages x;
  EXPECT_EQ(x.refused(), "nothing thrown");
  x.lengths = {7, 2};
  EXPECT_EQ(x.refused(), "page_table: entry [0, 2] is 9, expected 0 to 3");
  x.lengths = {6, 4};
  EXPECT_EQ(x.refused(), "page_table: entry [1, 1] is 9, expected 0 to 3");
  x.lengths = {6, 3};
  EXPECT_EQ(x.refused(), "nothing thrown");
  x.table[1] = -1;
  EXPECT_EQ(x.refused(), "page_table: entry [0, 1] is -1, expected 0 to 3");
  x.lengths = {10, 3};
  EXPECT_EQ(x.refused(), "lengths: entry 0 is 10, expected 0 to the capacity 9");
}

TEST(PageTable, HasOneRowASequence) {
  Pages x;
  x.table_extents = {3, 2};
  EXPECT_EQ(x.refused(), "page_table: shape [3, 2], expected [2, max_pages] beside q [2, 2, 1, 4]");
  x.table_extents = {2, -1};
  EXPECT_EQ(x.refused(),
            "page_table: shape [2, -1], expected [2, max_pages] beside q [2, 2, 1, 4]");
  x = {};
  x.table = {};
  EXPECT_EQ(x.refused(),
            "page_table: shape [2, 3] and null data, expected the address of its "
            "first element");
  x.table_extents = {2, 0};
  x.lengths = {0, 0};
  EXPECT_EQ(x.refused(), "nothing thrown");
  x = {};
  x.table_extents = {2, 1000000000};
  EXPECT_EQ(x.refused(),
            "page_table: shape [2, 1000000000] with pages of 3 slots, expected at "
            "most 2147483647 slots a sequence");
  x = {};
  x.page_size = 0;
  EXPECT_EQ(x.refused(), "k: shape [4, 1, 0, 4], expected pages of at least 1 slot");
}

TEST(PageTable, PagesAreCheckedBesideTheQueries) {
  const Tensor<float, 4> q({2, 2, 1, 4}), k({4, 1, 3, 5}), v({3, 1, 3, 4});
  const Tensor<std::int32_t, 2> table({2, 3});
  const auto refused = [&](const auto& k, const auto& v) {
    return refusal([&] {
      make_paged_problem(describe("q", q.view()), describe("k", k.view()), describe("v", v.view()),
                         table.view());
    });
  };
  EXPECT_EQ(refused(k, v),
            "k: shape [4, 1, 3, 5], expected [4, Hkv, page_size, 4] beside q [2, 2, 1, 4]");
  const Tensor<float, 4> good({4, 1, 3, 4});
  EXPECT_EQ(refused(good, v),
            "v: shape [3, 1, 3, 4], expected [4, 1, 3, Dv] beside k [4, 1, 3, 4]");
  EXPECT_EQ(refused(good, good), "nothing thrown");
}

// ---- sink and dropout --------------------------------------------------------------------------

TEST(Options, SinkAndDropoutAreChecked) {
  const Tensor<float, 4> x({1, 2, 3, 4});
  const auto refused = [&](const Options& options) {
    return refusal([&] { make_problem(x.view(), x.view(), x.view(), options); });
  };
  const Tensor<float, 1> two({2}), three({3});
  Options options;
  options.sink = two.view();
  EXPECT_EQ(refused(options), "nothing thrown");
  options.sink = three.view();
  EXPECT_EQ(refused(options), "sink: shape [3], expected one logit a query head, [2]");
  options.sink = TensorView<const float, 1>{nullptr, {2}, {1}};
  EXPECT_EQ(refused(options),
            "sink: null data for shape [2], expected the address of its first element");
  options.sink = {};
  for (double p : {0.0, 0.5, 1 - 0x1p-53}) {
    options.dropout.p = p;
    EXPECT_EQ(refused(options), "nothing thrown");
  }
  options.dropout.p = 1;
  EXPECT_EQ(refused(options), "dropout: p = 1.000000, expected 0 <= p < 1");
  options.dropout.p = -0.25;
  EXPECT_EQ(refused(options), "dropout: p = -0.250000, expected 0 <= p < 1");
  options.dropout.p = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(refused(options), "dropout: p = nan, expected 0 <= p < 1");
}

TEST(Options, AreRefusedByAnImplementationWithoutThem) {
  const Tensor<float, 1> sink({2});
  const auto refused = [&](const Options& options) {
    return refusal([&] { refuse_sink_and_dropout(options, "some_kernel"); });
  };
  EXPECT_EQ(refused({}), "nothing thrown");
  EXPECT_EQ(refused({0.5}), "nothing thrown");
  EXPECT_EQ(refused({{}, sink.view()}), "sink: given, expected none in some_kernel");
  EXPECT_EQ(refused({{}, {}, {0.5, 1}}), "dropout: p = 0.500000, expected 0 in some_kernel");
}

// ---- functors ----------------------------------------------------------------------------------

struct Plain {
  template <class Score, class Index>
  Score operator()(Score s, Index, Index, Index, Index) const {
    return s;
  }
};
/// Fits sequences of at most two queries, and overflows from index 2^10 on.
struct Picky {
  template <class Index>
  auto operator()(Index, Index, Index q, Index kv) const {
    return q * 2097152 >= kv;
  }
  void check(const Sizes& sizes) const {
    if (sizes.sq > 2) throw std::invalid_argument("picky: too long");
  }
};

TEST(SequenceFunctors, AreCheckedForEverySequence) {
  const auto check = [](const Problem& p, Entries q, Entries kv) {
    return refusal([&] { check_functors(Plain{}, Picky{}, packed_sequences(p, q, kv)); });
  };
  EXPECT_EQ(check(problem_of(1, 2, 1, 4, 4), {0, 2, 4}, {0, 2, 4}), "nothing thrown");
  EXPECT_EQ(check(problem_of(1, 2, 1, 4, 4), {0, 1, 4}, {0, 2, 4}), "picky: too long");
  EXPECT_EQ(check(problem_of(1, 2, 1, 4, 4), {0, 4, 4}, {0, 0, 4}), "picky: too long");
  // In decode the index box begins at q_offset.
  const Problem cached = problem_of(1, 2, 1, 2, 2000);
  EXPECT_EQ(
      refusal([&] { check_functors(Plain{}, Picky{}, cached_sequences(cached, Entries{1024})); }),
      "nothing thrown");
  EXPECT_NE(
      refusal([&] { check_functors(Plain{}, Picky{}, cached_sequences(cached, Entries{1025})); }),
      "nothing thrown");
}

TEST(PublicFunctions, CheckTheirArgumentsFirst) {
  const Tensor<float, 4> q({1, 2, 3, 4}), k({1, 1, 5, 4}), bad({1, 2, 3, 5});
  const Tensor<std::int32_t, 2> table({1, 2});
  using namespace reference;
  EXPECT_EQ(refusal([&] {
              forward_packed(q.view(), k.view(), k.view(), Entries{0, 2}, Entries{0, 5}, Plain{},
                             Picky{});
            }),
            "cu_q: entry 1 is 2, expected the length of the packed axis, 3");
  EXPECT_EQ(refusal([&] {
              forward_packed(q.view(), k.view(), k.view(), Entries{0, 3}, Entries{0, 5}, Plain{},
                             Picky{});
            }),
            "picky: too long");
  EXPECT_EQ(refusal([&] {
              backward_packed(q.view(), k.view(), k.view(), Entries{0, 3}, Entries{0, 4}, q.view(),
                              Plain{}, Picky{});
            }),
            "cu_kv: entry 1 is 4, expected the length of the packed axis, 5");
  EXPECT_EQ(refusal([&] {
              backward_packed(q.view(), k.view(), k.view(), Entries{0, 3}, Entries{0, 5},
                              bad.view(), Plain{}, Picky{});
            }),
            "d_o: shape [1, 2, 3, 5], expected [1, 2, 3, 4]");
  EXPECT_EQ(refusal([&] { decode(q.view(), k.view(), k.view(), Entries{6}, Plain{}, Picky{}); }),
            "lengths: entry 0 is 6, expected 0 to the capacity 5");
  EXPECT_EQ(refusal([&] { decode(q.view(), k.view(), k.view(), Entries{5}, Plain{}, Picky{}); }),
            "picky: too long");
  EXPECT_EQ(refusal([&] {
              decode_paged(q.view(), k.view(), k.view(), table.view(), Entries{11}, Plain{},
                           Picky{});
            }),
            "lengths: entry 0 is 11, expected 0 to the capacity 10");
  Tensor<std::int32_t, 2> other({1, 2});
  other(0, 1) = 1;
  EXPECT_EQ(refusal([&] {
              decode_paged(q.view(), k.view(), k.view(), other.view(), Entries{6}, Plain{},
                           Picky{});
            }),
            "page_table: entry [0, 1] is 1, expected 0 to 0");
}

}  // namespace
}  // namespace attn
