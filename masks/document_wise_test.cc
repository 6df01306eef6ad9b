#include "masks/document_wise.h"

#include <gtest/gtest.h>

#include "masks/causal.h"
#include "masks/dense_construction.h"
#include "masks/window.h"

namespace attn {
namespace {

using Lengths = std::vector<std::int64_t>;
const Lengths of_q{2, 3, 0, 1}, of_kv{3, 4, 1, 0};

/// Which document a token is in, and its place in it, by counting.
struct Place {
  int document, from_start, from_end;
};
Place place(const Lengths& lengths, int at) {
  for (int d = 0;; ++d) {
    const int length = static_cast<int>(lengths[d]);
    if (at < length) return {d, at, at - length};
    at -= length;
  }
}

TEST(DocumentWise, from_the_start_of_each_document) {
  const auto q_ids = document_ids(of_q), kv_ids = document_ids(of_kv);
  const auto q_starts = document_starts(of_q), kv_starts = document_starts(of_kv);
  const auto mask = document_wise(document(q_ids, kv_ids), q_starts, kv_starts, window(1, 0));
  const Sizes sizes{2, 1, 1, 6, 8};
  EXPECT_EQ(first_difference(mask, sizes,
                             [](int, int, int i, int j) {
                               const Place q = place(of_q, i), kv = place(of_kv, j);
                               const int distance = kv.from_start - q.from_start;
                               return q.document == kv.document && -1 <= distance && distance <= 0;
                             }),
            "");
  EXPECT_EQ(first_wrong_box(mask, sizes, Verdicts::sound), "");
  EXPECT_NO_THROW(check_mask(mask, sizes));
}

TEST(DocumentWise, from_the_end_of_each_document) {
  const auto q_ids = document_ids(of_q), kv_ids = document_ids(of_kv);
  const auto q_ends = document_ends(of_q), kv_ends = document_ends(of_kv);
  const auto mask = document_wise(document(q_ids, kv_ids), q_ends, kv_ends, causal());
  const Sizes sizes{1, 2, 1, 6, 8};
  EXPECT_EQ(first_difference(mask, sizes,
                             [](int, int, int i, int j) {
                               const Place q = place(of_q, i), kv = place(of_kv, j);
                               return q.document == kv.document && kv.from_end <= q.from_end;
                             }),
            "");
  EXPECT_EQ(first_wrong_box(mask, sizes, Verdicts::sound), "");
}

TEST(DocumentWise, both_sides_alike) {
  const auto ids = document_ids({3, 2}), starts = document_starts({3, 2});
  EXPECT_EQ(picture(document_wise(ids, starts, causal()), {1, 1, 1, 5, 5}),
            "#....\n"
            "##...\n"
            "###..\n"
            "...#.\n"
            "...##\n");
}

TEST(DocumentWise, looks_like_its_pictures) {
  const auto q_ids = document_ids({2, 3}), kv_ids = document_ids({3, 4});
  const auto q_starts = document_starts({2, 3}), kv_starts = document_starts({3, 4});
  const auto q_ends = document_ends({2, 3}), kv_ends = document_ends({3, 4});
  const Document same = document(q_ids, kv_ids);
  EXPECT_EQ(picture(document_wise(same, q_starts, kv_starts, causal()), {1, 1, 1, 5, 7}),
            "#......\n"
            "##.....\n"
            "...#...\n"
            "...##..\n"
            "...###.\n");
  EXPECT_EQ(picture(document_wise(same, q_ends, kv_ends, causal()), {1, 1, 1, 5, 7}),
            "##.....\n"
            "###....\n"
            "...##..\n"
            "...###.\n"
            "...####\n");
}

TEST(DocumentWise, origins_from_lengths) {
  using Values = std::vector<std::int32_t>;
  EXPECT_EQ(document_starts({3, 0, 2}).values(), (Values{0, 0, 0, 3, 3}));
  EXPECT_EQ(document_ends({3, 0, 2}).values(), (Values{3, 3, 3, 5, 5}));
  EXPECT_THROW(document_starts({-1}), std::invalid_argument);
  EXPECT_THROW(document_ends({1, -1}), std::invalid_argument);
}

TEST(DocumentWise, refuses_a_short_table) {
  const auto ids = document_ids({4}), starts = document_starts({3});
  try {
    check_mask(document_wise(ids, starts, causal()), {1, 1, 1, 4, 4});
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(
        error.what(),
        "document_wise: q_origin has shape [1, 3], expected [1 or B = 1, at least Sq = 4]");
  }
  EXPECT_THROW(check_mask(document_wise(starts, ids, causal()), {1, 1, 1, 4, 4}),
               std::invalid_argument);
  EXPECT_THROW(check_mask(document_wise(ids, starts, causal()), {1, 1, 1, 3, 4}),
               std::invalid_argument);
}

}  // namespace
}  // namespace attn
