#include "masks/algebra.h"

#include <gtest/gtest.h>

#include "masks/causal.h"
#include "masks/dense_construction.h"
#include "masks/document.h"
#include "masks/full.h"
#include "masks/window.h"

namespace elsewhere {  // a user's own code: no using-directive, so that operators need lookup

struct EvenKeys : attn::MaskBase {
  template <class Index>
  auto operator()(Index, Index, Index, Index kv) const {
    return attn::floor_mod(kv, 2) == 0;
  }
};
struct KeysFrom : attn::MaskBase {
  int first;
  template <class Index>
  auto operator()(Index, Index, Index, Index kv) const {
    return kv >= first;
  }
};
/// Neither templated nor opted in.
struct PlainOddRows {
  bool operator()(int, int, int q, int) const { return q % 2 == 1; }
};

const auto both = EvenKeys{} && KeysFrom{{}, 2};
const auto neither = !(EvenKeys{} || KeysFrom{{}, 2});

}  // namespace elsewhere

namespace attn {
namespace {

const Sizes shapes[] = {
    {1, 2, 1, 5, 7}, {1, 1, 1, 7, 5}, {1, 1, 1, 1, 6}, {1, 1, 1, 6, 1}, {2, 1, 1, 6, 6}};

TEST(Algebra, operators) {
  const Causal a = causal();
  const Window b = window(1, 3);
  const auto in_a = [](int i, int j) { return j <= i; };
  const auto in_b = [](int i, int j) { return i - 1 <= j && j <= i + 3; };
  for (const Sizes& sizes : shapes) {
    EXPECT_EQ(first_difference(a && b, sizes,
                               [&](int, int, int i, int j) { return in_a(i, j) && in_b(i, j); }),
              "");
    EXPECT_EQ(first_difference(a || b, sizes,
                               [&](int, int, int i, int j) { return in_a(i, j) || in_b(i, j); }),
              "");
    EXPECT_EQ(first_difference(a != b, sizes,
                               [&](int, int, int i, int j) { return in_a(i, j) != in_b(i, j); }),
              "");
    EXPECT_EQ(first_difference(!a, sizes, [&](int, int, int i, int j) { return !in_a(i, j); }), "");
    EXPECT_EQ(first_wrong_box(a && b, sizes, Verdicts::sound), "");
    EXPECT_EQ(first_wrong_box(a || b, sizes, Verdicts::sound), "");
    EXPECT_EQ(first_wrong_box(a != b, sizes, Verdicts::sound), "");
    EXPECT_EQ(first_wrong_box(!a, sizes, Verdicts::exact), "");
  }
}

TEST(Algebra, named_functions_take_any_mask) {
  const auto even_keys = [](auto, auto, auto, auto kv) { return kv % 2 == 0; };
  const auto late_rows = [](auto, auto, auto q, auto) { return q >= 3; };
  for (const Sizes& sizes : shapes) {
    EXPECT_EQ(first_difference(all_of(even_keys, late_rows), sizes,
                               [](int, int, int i, int j) { return j % 2 == 0 && i >= 3; }),
              "");
    EXPECT_EQ(first_difference(any_of(even_keys, late_rows), sizes,
                               [](int, int, int i, int j) { return j % 2 == 0 || i >= 3; }),
              "");
    EXPECT_EQ(first_difference(exactly_one_of(even_keys, late_rows), sizes,
                               [](int, int, int i, int j) { return (j % 2 == 0) != (i >= 3); }),
              "");
    EXPECT_EQ(
        first_difference(negate(even_keys), sizes, [](int, int, int, int j) { return j % 2 != 0; }),
        "");
    EXPECT_EQ(first_wrong_box(all_of(even_keys, late_rows), sizes, Verdicts::sound), "");
    EXPECT_EQ(first_wrong_box(any_of(even_keys, late_rows), sizes, Verdicts::sound), "");
    EXPECT_EQ(first_wrong_box(exactly_one_of(even_keys, late_rows), sizes, Verdicts::sound), "");
    EXPECT_EQ(first_wrong_box(negate(even_keys), sizes, Verdicts::sound), "");
  }
}

TEST(Algebra, boxes_clear_of_both_boundaries_are_decided) {
  const Sizes sizes{1, 1, 1, 64, 64};
  const auto ids = document_ids({32, 32});
  const auto mask = causal() && document(ids);
  const auto box = [](int q0, int q1, int k0, int k1) {
    return Box{{0, 0, q0, k0}, {0, 0, q1, k1}};
  };
  EXPECT_TRUE(verdict(mask, sizes, box(16, 31, 0, 15)).yes());
  EXPECT_TRUE(verdict(mask, sizes, box(32, 47, 0, 31)).no());   // another document
  EXPECT_TRUE(verdict(mask, sizes, box(32, 47, 48, 63)).no());  // the future
  EXPECT_FALSE(verdict(mask, sizes, box(16, 31, 16, 31)).yes());
  EXPECT_FALSE(verdict(mask, sizes, box(16, 31, 16, 31)).no());
  EXPECT_TRUE(verdict(causal() || full(), sizes, box(0, 63, 0, 63)).yes());
  EXPECT_TRUE(verdict(causal() != causal(), sizes, box(40, 47, 0, 15)).no());
  EXPECT_TRUE(verdict(causal() != full(), sizes, box(0, 15, 40, 47)).yes());
}

TEST(Algebra, masks_of_a_user_opt_in_by_deriving) {
  const Sizes sizes{1, 1, 1, 3, 6};
  EXPECT_EQ(first_difference(elsewhere::both, sizes,
                             [](int, int, int, int j) { return j % 2 == 0 && j >= 2; }),
            "");
  EXPECT_EQ(first_difference(elsewhere::neither, sizes,
                             [](int, int, int, int j) { return j % 2 == 1 && j < 2; }),
            "");
}

TEST(Algebra, one_side_that_opted_in_is_enough) {
  const Sizes sizes{1, 1, 1, 5, 5};
  const auto late_rows = [](auto, auto, auto q, auto) { return q >= 3; };
  EXPECT_EQ(first_difference(causal() && late_rows, sizes,
                             [](int, int, int i, int j) { return j <= i && i >= 3; }),
            "");
  EXPECT_EQ(first_difference(late_rows || causal(), sizes,
                             [](int, int, int i, int j) { return j <= i || i >= 3; }),
            "");
}

TEST(Algebra, plain_functors_run_element_by_element) {
  const Sizes sizes{1, 1, 1, 4, 4};
  EXPECT_EQ(picture(causal() && elsewhere::PlainOddRows{}, sizes),
            "....\n"
            "##..\n"
            "....\n"
            "####\n");
}

TEST(Algebra, nests) {
  const auto mask = (!(causal() && !window(1, 0))) != (full() || causal());
  EXPECT_EQ(first_difference(mask, {1, 1, 1, 6, 6},
                             [](int, int, int i, int j) {
                               const bool old = j <= i && !(i - 1 <= j && j <= i);
                               return !old != true;
                             }),
            "");
}

TEST(Algebra, both_sides_run_whatever_the_first_says) {
  Tensor<std::int32_t, 1> two_ids({2});
  const auto none = !full();
  EXPECT_THROW(attends<ExactEnv>(none && document(two_ids), {1, 1, 1, 4, 4}, 0, 0, 3, 3),
               std::invalid_argument);
  EXPECT_THROW(attends<ExactEnv>(full() || document(two_ids), {1, 1, 1, 4, 4}, 0, 0, 3, 3),
               std::invalid_argument);
}

}  // namespace
}  // namespace attn
