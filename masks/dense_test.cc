#include "masks/dense.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <random>

#include "masks/dense_construction.h"

namespace attn {
namespace {

/// A boolean tensor of any rank with its memory (std::vector<bool> has none to point at).
template <int Rank>
struct Booleans {
  std::array<std::int64_t, Rank> extents;
  std::unique_ptr<bool[]> values;

  explicit Booleans(std::array<std::int64_t, Rank> shape, std::uint32_t seed = 1) : extents(shape) {
    std::mt19937 random(seed);
    values = std::make_unique<bool[]>(static_cast<std::size_t>(view().size()));
    for (std::int64_t n = 0; n < view().size(); ++n) values[n] = random() % 3 != 0;
  }
  TensorView<bool, Rank> view() const {
    return {values.get(), extents, contiguous_strides(extents)};
  }
};

TEST(Dense, rank_2_is_queries_by_keys) {
  for (const Sizes& sizes :
       {Sizes{2, 3, 1, 4, 7}, Sizes{2, 3, 1, 7, 4}, Sizes{1, 1, 1, 1, 5}, Sizes{1, 1, 1, 5, 1}}) {
    const Booleans<2> table({sizes.sq, sizes.skv});
    const Dense mask = dense(table.view());
    EXPECT_NO_THROW(check_mask(mask, sizes));
    EXPECT_EQ(
        first_difference(mask, sizes,
                         [&](int, int, int i, int j) { return table.values[i * sizes.skv + j]; }),
        "");
    EXPECT_EQ(first_wrong_box(mask, sizes, Verdicts::exact), "");
  }
}

TEST(Dense, the_first_axis_of_rank_3_is_the_head) {
  for (const Sizes& sizes : {Sizes{2, 3, 1, 4, 5}, Sizes{3, 3, 3, 4, 4}}) {
    const Booleans<3> table({3, sizes.sq, sizes.skv});
    const Dense mask = dense(table.view());
    EXPECT_NO_THROW(check_mask(mask, sizes));
    EXPECT_EQ(first_difference(mask, sizes,
                               [&](int, int h, int i, int j) {
                                 return table.values[(h * sizes.sq + i) * sizes.skv + j];
                               }),
              "");
  }
}

TEST(Dense, every_set_of_axes_of_rank_4_broadcasts) {
  const Sizes sizes{2, 3, 1, 4, 5};
  for (int set = 0; set < 16; ++set) {
    const std::int64_t b_n = set & 1 ? 1 : 2, h_n = set & 2 ? 1 : 3, q_n = set & 4 ? 1 : 4,
                       kv_n = set & 8 ? 1 : 5;
    const Booleans<4> table({b_n, h_n, q_n, kv_n}, 7u + set);
    const Dense mask = dense(table.view());
    EXPECT_NO_THROW(check_mask(mask, sizes));
    const auto formula = [&](int b, int h, int i, int j) {
      const std::int64_t at_b = b_n == 1 ? 0 : b, at_h = h_n == 1 ? 0 : h, at_q = q_n == 1 ? 0 : i,
                         at_kv = kv_n == 1 ? 0 : j;
      return table.values[((at_b * h_n + at_h) * q_n + at_q) * kv_n + at_kv];
    };
    EXPECT_EQ(first_difference(mask, sizes, formula), "") << set;
    EXPECT_EQ(first_wrong_box(mask, sizes, Verdicts::exact), "") << set;
  }
}

TEST(Dense, strides_are_the_views_own) {
  // The transpose of a [Skv, Sq] tensor, one row padded.
  const int sq = 3, skv = 4, pitch = 5;
  const Booleans<2> memory({skv, pitch});
  const TensorView<const bool, 2> view{memory.values.get(), {sq, skv}, {1, pitch}};
  EXPECT_EQ(first_difference(dense(view), {1, 2, 1, sq, skv},
                             [&](int, int, int i, int j) { return memory.values[j * pitch + i]; }),
            "");
}

TEST(Dense, looks_like_its_picture) {
  const bool keys[] = {true, true, false, true, false};
  const TensorView<const bool, 4> padding{keys, {1, 1, 1, 5}, {5, 5, 5, 1}};
  EXPECT_EQ(picture(dense(padding), {1, 1, 1, 3, 5}),
            "##.#.\n"
            "##.#.\n"
            "##.#.\n");
  EXPECT_EQ(picture(!dense(padding), {1, 1, 1, 1, 5}), "..#.#\n");
}

TEST(Dense, refuses_shapes_that_do_not_broadcast) {
  const Booleans<3> table({2, 5, 6});
  const Dense mask = dense(Captured<3, bool>(table.view()));
  EXPECT_NO_THROW(check_mask(mask, {4, 2, 1, 5, 6}));
  try {
    check_mask(mask, {2, 4, 1, 5, 6});  // rank 3 is [Hq, ...]: B = 2 does not help
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(),
                 "dense: mask has shape [1, 2, 5, 6] (axes missing on the left read as 1), "
                 "expected each axis 1 or as in [B, Hq, Sq, Skv] = [2, 4, 5, 6]");
  }
  EXPECT_THROW(check_mask(mask, {4, 2, 1, 6, 6}), std::invalid_argument);
  EXPECT_THROW(check_mask(mask, {4, 2, 1, 5, 7}), std::invalid_argument);
  EXPECT_THROW(check_mask(mask, {4, 2, 1, 5, 5}), std::invalid_argument);  // longer is not fine
  EXPECT_THROW(check_mask(dense(Booleans<4>({2, 1, 1, 6}).view()), {3, 2, 1, 5, 6}),
               std::invalid_argument);
}

}  // namespace
}  // namespace attn
