#include "masks/document.h"

#include <gtest/gtest.h>

#include "masks/causal.h"
#include "masks/dense_construction.h"

namespace attn {
namespace {

using Ids = std::vector<std::int32_t>;

Tensor<std::int32_t, 1> table(const Ids& ids) {
  Tensor<std::int32_t, 1> tensor({static_cast<std::int64_t>(ids.size())});
  tensor.values() = ids;
  return tensor;
}
Tensor<std::int32_t, 2> table(const std::vector<Ids>& rows) {
  Tensor<std::int32_t, 2> tensor(
      {static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(rows[0].size())});
  for (std::size_t b = 0; b < rows.size(); ++b)
    for (std::size_t i = 0; i < rows[b].size(); ++i) tensor(b, i) = rows[b][i];
  return tensor;
}

TEST(Document, sorted_ids_give_exact_verdicts) {
  const Ids ids{0, 0, 0, 3, 3, 7, 7, 7, 8};  // gaps between ids, a document of one token
  const auto tensor = table(ids);
  const Document mask = document(tensor);
  // One table serves both sides; it may be longer than either.
  for (const Sizes& sizes : {Sizes{2, 2, 1, 9, 9}, Sizes{1, 1, 1, 4, 9}, Sizes{1, 1, 1, 9, 5},
                             Sizes{1, 1, 1, 1, 9}, Sizes{1, 1, 1, 9, 1}}) {
    EXPECT_EQ(
        first_difference(mask, sizes, [&](int, int, int i, int j) { return ids[i] == ids[j]; }),
        "");
    EXPECT_EQ(first_wrong_box(mask, sizes, Verdicts::exact), "");
    EXPECT_NO_THROW(check_mask(mask, sizes));
  }
}

TEST(Document, ids_in_any_order_and_of_any_sign) {
  const Ids ids{5, -1, 5, 2000000000, -1, -2000000000, 5};
  const auto tensor = table(ids);
  EXPECT_EQ(first_difference(document(tensor), {1, 1, 1, 7, 7},
                             [&](int, int, int i, int j) { return ids[i] == ids[j]; }),
            "");
  EXPECT_EQ(first_wrong_box(document(tensor), {1, 1, 1, 7, 7}, Verdicts::sound), "");
}

TEST(Document, a_table_a_side) {
  const Ids of_q{0, 0, 1, 2}, of_kv{0, 1, 1, 1, 1, 3, 0};
  const auto q_ids = table(of_q), kv_ids = table(of_kv);
  const Sizes sizes{2, 1, 1, 4, 7};
  EXPECT_EQ(first_difference(document(q_ids, kv_ids), sizes,
                             [&](int, int, int i, int j) { return of_q[i] == of_kv[j]; }),
            "");
  EXPECT_EQ(first_wrong_box(document(q_ids, kv_ids), sizes, Verdicts::sound), "");
  EXPECT_EQ(first_difference(document(kv_ids, q_ids), {2, 1, 1, 7, 4},
                             [&](int, int, int i, int j) { return of_kv[i] == of_q[j]; }),
            "");
}

TEST(Document, tables_a_batch_entry) {
  const std::vector<Ids> of_q{{0, 0, 1}, {0, 1, 1}}, of_kv{{0, 1, 1, 1, 1}, {0, 0, 0, 1, 2}};
  const auto q_ids = table(of_q), kv_ids = table(of_kv);
  const Sizes sizes{2, 2, 1, 3, 5};
  EXPECT_EQ(first_difference(document(q_ids, kv_ids), sizes,
                             [&](int b, int, int i, int j) { return of_q[b][i] == of_kv[b][j]; }),
            "");
  EXPECT_EQ(first_wrong_box(document(q_ids, kv_ids), sizes, Verdicts::sound), "");
  EXPECT_EQ(first_difference(document(kv_ids), {2, 1, 1, 5, 5},
                             [&](int b, int, int i, int j) { return of_kv[b][i] == of_kv[b][j]; }),
            "");
  EXPECT_EQ(first_wrong_box(document(kv_ids), {2, 1, 1, 5, 5}, Verdicts::exact), "");
}

TEST(Document, a_table_may_be_a_strided_view) {
  // Every second entry is another tensor's: 0 _ 0 _ 1 _
  Tensor<std::int32_t, 1> memory({6});
  memory.values() = {0, 90, 0, 91, 1, 92};
  const TensorView<const std::int32_t, 1> ids{memory.values().data(), {3}, {2}};
  EXPECT_EQ(picture(document(Captured<1, std::int32_t>(ids)), {1, 1, 1, 3, 3}),
            "##.\n"
            "##.\n"
            "..#\n");
}

TEST(Document, looks_like_its_picture) {
  const auto ids = document_ids({3, 2, 3});
  EXPECT_EQ(picture(document(ids), {1, 1, 1, 8, 8}),
            "###.....\n"
            "###.....\n"
            "###.....\n"
            "...##...\n"
            "...##...\n"
            ".....###\n"
            ".....###\n"
            ".....###\n");
  EXPECT_EQ(picture(causal() && document(ids), {1, 1, 1, 8, 8}),
            "#.......\n"
            "##......\n"
            "###.....\n"
            "...#....\n"
            "...##...\n"
            ".....#..\n"
            ".....##.\n"
            ".....###\n");
}

TEST(Document, ids_from_lengths) {
  EXPECT_EQ(document_ids({3, 0, 2}).values(), (Ids{0, 0, 0, 2, 2}));
  EXPECT_EQ(document_ids({}).values(), Ids{});
  EXPECT_THROW(document_ids({3, -1}), std::invalid_argument);
}

TEST(Document, refuses_a_short_table) {
  const auto four = table(Ids{0, 0, 1, 1}), one = table(Ids{0});
  try {
    check_mask(document(four), {2, 1, 1, 4, 5});
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(),
                 "document: kv_ids has shape [1, 4], expected [1 or B = 2, at least Skv = 5]");
  }
  EXPECT_THROW(check_mask(document(four), {2, 1, 1, 5, 4}), std::invalid_argument);
  // An axis of extent 1 broadcasts when read: a table of one id must not pass for all.
  EXPECT_THROW(check_mask(document(one), {1, 1, 1, 4, 4}), std::invalid_argument);
  EXPECT_THROW(check_mask(document(four, one), {1, 1, 1, 4, 4}), std::invalid_argument);
  EXPECT_NO_THROW(check_mask(document(four, one), {1, 1, 1, 4, 1}));
}

TEST(Document, refuses_another_number_of_rows) {
  const auto ids = table(std::vector<Ids>{{0, 1}, {0, 0}});
  EXPECT_NO_THROW(check_mask(document(ids), {2, 1, 1, 2, 2}));
  EXPECT_THROW(check_mask(document(ids), {3, 1, 1, 2, 2}), std::invalid_argument);
  EXPECT_THROW(check_mask(document(ids), {1, 1, 1, 2, 2}), std::invalid_argument);
}

}  // namespace
}  // namespace attn
