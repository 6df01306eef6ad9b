#include "masks/shared_prefix.h"

#include <gtest/gtest.h>

#include "masks/dense_construction.h"
#include "masks/document.h"

namespace attn {
namespace {

Tensor<std::int32_t, 1> table(const std::vector<std::int32_t>& values) {
  Tensor<std::int32_t, 1> tensor({static_cast<std::int64_t>(values.size())});
  tensor.values() = values;
  return tensor;
}

TEST(SharedPrefix, follows_its_formula) {
  const auto ids = document_ids({2, 3, 1, 2}), offsets = table({0, 2, 5, 6, 8}),
             prefix = table({0, 0, 2, 1});
  const auto mask = shared_prefix(ids, offsets, prefix);
  for (const Sizes& sizes : {Sizes{1, 2, 1, 8, 8}, Sizes{1, 1, 1, 8, 3}, Sizes{1, 1, 1, 4, 8}}) {
    EXPECT_EQ(first_difference(mask, sizes,
                               [&](int, int, int i, int j) {
                                 const int d = ids(i), p = prefix(d);
                                 const bool own = offsets(d) <= j && j <= i;
                                 return own || (p != d && offsets(p) <= j && j < offsets(p + 1));
                               }),
              "");
    EXPECT_EQ(first_wrong_box(mask, sizes, Verdicts::sound), "");
    EXPECT_NO_THROW(check_mask(mask, sizes));
  }
}

TEST(SharedPrefix, looks_like_its_picture) {
  const auto ids = document_ids({2, 3, 2}), offsets = table({0, 2, 5, 7}),
             prefix = table({0, 0, 0});
  EXPECT_EQ(picture(shared_prefix(ids, offsets, prefix), {1, 1, 1, 7, 7}),
            "#......\n"
            "##.....\n"
            "###....\n"
            "####...\n"
            "#####..\n"
            "##...#.\n"
            "##...##\n");
}

TEST(SharedPrefix, refuses_tables_that_do_not_fit) {
  const auto ids = document_ids({2, 2}), offsets = table({0, 2, 4}), prefix = table({0, 0});
  EXPECT_THROW(check_mask(shared_prefix(ids, offsets, prefix), {1, 1, 1, 5, 4}),
               std::invalid_argument);
  EXPECT_THROW(check_mask(shared_prefix(ids, prefix, offsets), {1, 1, 1, 4, 4}),
               std::invalid_argument);
}

}  // namespace
}  // namespace attn
