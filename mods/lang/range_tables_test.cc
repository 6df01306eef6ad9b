#include "mods/lang/range_tables.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace attn {
namespace {

template <class T>
T value(std::mt19937& random) {
  return static_cast<T>(static_cast<int>(random() % 2001) - 1000);
}
template <>
half value<half>(std::mt19937& random) {
  return from_float<half>(value<float>(random));
}

/// Boxes of a tensor, asked in any order, against a look at each entry.
template <class T, int Rank>
void check_boxes(RangeTables& tables, const TensorView<const T, Rank>& tensor, std::mt19937& random,
                 int questions) {
  for (int n = 0; n < questions; ++n) {
    std::int64_t first[Rank], last[Rank];
    for (int axis = 0; axis < Rank; ++axis) {
      first[axis] = random() % tensor.extents[axis];
      last[axis] = first[axis] + random() % (tensor.extents[axis] - first[axis]);
    }
    const Extremes<T> got = tables.box(tensor, first, last);
    const Extremes<T> expected = extremes_of_box(tensor, first, last);
    ASSERT_EQ(got.low, expected.low);
    ASSERT_EQ(got.high, expected.high);
  }
}

template <class T, int Rank>
void check_tensor(std::array<std::int64_t, Rank> extents) {
  std::mt19937 random(1);
  Tensor<T, Rank> tensor(extents);
  for (T& x : tensor.values()) x = value<T>(random);
  RangeTables tables;
  check_boxes(tables, std::as_const(tensor).view(), random, 500);
}

TEST(RangeTables, lines_of_any_length) {
  for (const std::int64_t n : {1, 2, 31, 32, 33, 63, 64, 65, 96, 97, 129, 1000})
    check_tensor<std::int32_t, 1>({n});
}

TEST(RangeTables, any_rank_and_type) {
  check_tensor<std::int32_t, 2>({5, 300});
  check_tensor<std::int32_t, 2>({300, 5});
  check_tensor<float, 3>({3, 100, 4});
  check_tensor<double, 4>({2, 3, 4, 70});
  check_tensor<half, 2>({3, 200});
  bool flags[200];
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) flags[i] = i < 90 || random() % 16 > 0;
  RangeTables tables;
  check_boxes(tables, TensorView<const bool, 1>{flags, {200}, {1}}, random, 500);
}

TEST(RangeTables, views_of_one_memory_are_told_apart) {
  std::mt19937 random(1);
  Tensor<std::int32_t, 1> memory({600});
  for (auto& x : memory.values()) x = value<std::int32_t>(random);
  const std::int32_t* data = memory.values().data();
  RangeTables tables;
  for (int round = 0; round < 3; ++round) {
    check_boxes(tables, TensorView<const std::int32_t, 1>{data, {600}, {1}}, random, 50);
    check_boxes(tables, TensorView<const std::int32_t, 1>{data, {300}, {2}}, random, 50);
    check_boxes(tables, TensorView<const std::int32_t, 1>{data + 599, {600}, {-1}}, random, 50);
    check_boxes(tables, TensorView<const std::int32_t, 2>{data, {3, 200}, {200, 1}}, random, 50);
    check_boxes(tables, TensorView<const std::int32_t, 2>{data, {3, 200}, {0, 1}}, random, 50);
    check_boxes(tables, TensorView<const std::int32_t, 2>{data, {200, 3}, {3, 1}}, random, 50);
  }
}

TEST(RangeTables, one_not_a_number_makes_everything_around_it_unknown) {
  Tensor<float, 1> values({500});
  for (auto& x : values.values()) x = 1;
  values(77) = std::numeric_limits<float>::quiet_NaN();
  RangeTables tables;
  const auto ask = [&](std::int64_t from, std::int64_t to) {
    const std::int64_t first[] = {from}, last[] = {to};
    return tables.box(std::as_const(values).view(), first, last);
  };
  EXPECT_EQ(ask(0, 76).high, 1);
  EXPECT_EQ(ask(78, 499).low, 1);
  for (const auto& seen : {ask(0, 77), ask(77, 77), ask(64, 128), ask(0, 499)}) {
    EXPECT_EQ(seen.low, -infinity);
    EXPECT_EQ(seen.high, infinity);
  }
}

}  // namespace
}  // namespace attn
