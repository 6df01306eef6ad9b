#include "masks/shift.h"

#include <gtest/gtest.h>

#include "masks/causal.h"
#include "masks/dense_construction.h"

namespace attn {
namespace {

TEST(Shift, moves_rows_and_keys) {
  for (const Sizes& sizes : {Sizes{1, 2, 1, 5, 7}, Sizes{1, 1, 1, 7, 4}, Sizes{1, 1, 1, 1, 5}})
    for (const int rows : {-3, 0, 2})
      for (const int keys : {-2, 0, 4}) {
        EXPECT_EQ(first_difference(shift(causal(), rows, keys), sizes,
                                   [=](int, int, int i, int j) { return j + keys <= i + rows; }),
                  "");
        EXPECT_EQ(first_wrong_box(shift(causal(), rows, keys), sizes, Verdicts::exact), "");
      }
}

TEST(Shift, reads_tables_at_the_shifted_position) {
  const bool bits[] = {false, true, true, false, true};
  const Captured<1, bool> table(TensorView<const bool, 1>{bits, {5}, {1}});
  const auto listed = [table](auto, auto, auto, auto kv) { return table(kv); };
  EXPECT_EQ(picture(shift(listed, 0, 1), {1, 1, 1, 1, 4}), "##.#\n");
  EXPECT_THROW(attends<ExactEnv>(shift(listed, 0, 1), {1, 1, 1, 1, 5}, 0, 0, 0, 4),
               std::invalid_argument);
}

TEST(Shift, looks_like_its_picture) {
  EXPECT_EQ(picture(shift(causal(), 0, -2), {1, 1, 1, 4, 8}),
            "###.....\n"
            "####....\n"
            "#####...\n"
            "######..\n");
}

TEST(Shift, check_passes_on) {
  Tensor<std::int32_t, 1> offsets({2});
  EXPECT_THROW(check_mask(shift(causal(diagonal_offset(offsets)), 1, 1), {3, 1, 1, 4, 4}),
               std::invalid_argument);
}

}  // namespace
}  // namespace attn
