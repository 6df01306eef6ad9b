#include "reference/problem.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace attn {
namespace {

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

using Extents = std::array<std::int64_t, 4>;

float memory[1 << 12];

TensorInfo dense(const char* name, Extents extents, const void* data = memory) {
  return {name, data, DType::f32, 4, extents, contiguous_strides(extents)};
}

Problem problem(Extents q, Extents k, Extents v, Options options = {}) {
  return make_problem(dense("q", q), dense("k", k), dense("v", v), options);
}

TEST(Problem, TakesItsSizesFromTheShapes) {
  const Problem p = problem({2, 6, 5, 8}, {2, 3, 7, 8}, {2, 3, 7, 4});
  EXPECT_EQ(p.b, 2);
  EXPECT_EQ(p.hq, 6);
  EXPECT_EQ(p.hkv, 3);
  EXPECT_EQ(p.sq, 5);
  EXPECT_EQ(p.skv, 7);
  EXPECT_EQ(p.d, 8);
  EXPECT_EQ(p.dv, 4);
  EXPECT_EQ(p.group(), 2);
  EXPECT_EQ(p.dtype, DType::f32);
  EXPECT_EQ(p.o_extents(), (Extents{2, 6, 5, 4}));
  EXPECT_EQ(p.lse_extents(), (std::array<std::int64_t, 3>{2, 6, 5}));
  EXPECT_EQ(p.sizes().skv, 7);
  EXPECT_EQ(p.sizes().hkv, 3);
}

TEST(Problem, IsBuiltFromTypedViews) {
  Tensor<bfloat16, 4> q({1, 2, 3, 4}), k({1, 1, 5, 4}), v({1, 1, 5, 6});
  const Problem p = make_problem(std::as_const(q).view(), std::as_const(k).view(),
                                 std::as_const(v).view(), Options{});
  EXPECT_EQ(p.dtype, DType::bf16);
  EXPECT_EQ(p.dv, 6);
}

TEST(Problem, ScaleIsTheInverseRootOfDUnlessGiven) {
  const Extents x{1, 1, 2, 16};
  EXPECT_EQ(problem(x, x, x).scale, 0.25);
  for (double scale : {0.0, -3.0, 1e300, 1.0}) EXPECT_EQ(problem(x, x, x, {scale}).scale, scale);
  EXPECT_EQ(refusal([&] { problem(x, x, x, {std::nan("")}); }),
            "scale: nan, expected a finite number");
  EXPECT_EQ(refusal([&] { problem(x, x, x, {-std::numeric_limits<double>::infinity()}); }),
            "scale: -inf, expected a finite number");
}

TEST(Problem, ZeroSizesAreValid) {
  EXPECT_TRUE(problem({0, 2, 3, 4}, {0, 1, 5, 4}, {0, 1, 5, 6}).has_no_pair());
  EXPECT_TRUE(problem({1, 0, 3, 4}, {1, 0, 5, 4}, {1, 0, 5, 6}).has_no_pair());
  EXPECT_TRUE(problem({1, 0, 3, 4}, {1, 2, 5, 4}, {1, 2, 5, 6}).has_no_pair());
  EXPECT_TRUE(problem({1, 2, 0, 4}, {1, 1, 5, 4}, {1, 1, 5, 6}).has_no_pair());
  EXPECT_TRUE(problem({1, 2, 3, 4}, {1, 1, 0, 4}, {1, 1, 0, 6}).has_no_pair());
  EXPECT_FALSE(problem({1, 2, 3, 4}, {1, 1, 5, 4}, {1, 1, 5, 0}).has_no_pair());
  EXPECT_EQ(problem({1, 0, 3, 4}, {1, 0, 5, 4}, {1, 0, 5, 6}).group(), 1);
}

TEST(Problem, RefusesShapesThatDisagree) {
  EXPECT_EQ(refusal([] {
              problem({1, 2, 3, 0}, {1, 2, 5, 0}, {1, 2, 5, 6});
            }),
            "q: shape [1, 2, 3, 0], expected a head size D of at least 1");
  EXPECT_EQ(refusal([] {
              problem({2, 2, 3, 4}, {1, 2, 5, 4}, {2, 2, 5, 6});
            }),
            "k: shape [1, 2, 5, 4], expected [2, Hkv, Skv, 4] beside q [2, 2, 3, 4]");
  EXPECT_EQ(refusal([] {
              problem({2, 2, 3, 4}, {2, 2, 5, 8}, {2, 2, 5, 6});
            }),
            "k: shape [2, 2, 5, 8], expected [2, Hkv, Skv, 4] beside q [2, 2, 3, 4]");
  for (const Extents& v : {Extents{1, 2, 5, 6}, Extents{2, 1, 5, 6}, Extents{2, 2, 4, 6}})
    EXPECT_EQ(refusal([&] {
                problem({2, 2, 3, 4}, {2, 2, 5, 4}, v);
              }),
              "v: shape " + shape_string(v) + ", expected [2, 2, 5, Dv] beside k [2, 2, 5, 4]");
}

TEST(Problem, RefusesHeadCountsThatDoNotDivide) {
  EXPECT_EQ(
      refusal([] {
        problem({1, 4, 3, 4}, {1, 3, 5, 4}, {1, 3, 5, 6});
      }),
      "k: 3 heads in shape [1, 3, 5, 4], expected a divisor of the 4 heads of q [1, 4, 3, 4]");
  EXPECT_EQ(
      refusal([] {
        problem({1, 4, 3, 4}, {1, 8, 5, 4}, {1, 8, 5, 6});
      }),
      "k: 8 heads in shape [1, 8, 5, 4], expected a divisor of the 4 heads of q [1, 4, 3, 4]");
  EXPECT_EQ(
      refusal([] {
        problem({1, 4, 3, 4}, {1, 0, 5, 4}, {1, 0, 5, 6});
      }),
      "k: 0 heads in shape [1, 0, 5, 4], expected a divisor of the 4 heads of q [1, 4, 3, 4]");
}

TEST(Problem, RefusesExtentsOutside32Bits) {
  const std::int64_t big = std::int64_t{1} << 31;
  EXPECT_EQ(refusal([&] {
              problem({1, 1, big, 4}, {1, 1, 5, 4}, {1, 1, 5, 6});
            }),
            "q: extent 2147483648 in axis 2 of shape [1, 1, 2147483648, 4], "
            "expected 0 to 2147483647");
  EXPECT_EQ(refusal([&] {
              problem({1, 1, 3, 4}, {1, 1, -1, 4}, {1, 1, -1, 6});
            }),
            "k: extent -1 in axis 2 of shape [1, 1, -1, 4], expected 0 to 2147483647");
  EXPECT_EQ(refusal([&] {
              problem({1, 1, 3, 4}, {1, 1, 5, 4}, {1, 1, 5, big});
            }),
            "v: extent 2147483648 in axis 3 of shape [1, 1, 5, 2147483648], "
            "expected 0 to 2147483647");
  EXPECT_EQ(problem({1, 1, big - 1, 4}, {1, 1, 5, 4}, {1, 1, 5, 6}).sq, 2147483647);
}

TEST(Problem, RefusesNullDataAndStridesThatLeave64Bits) {
  const TensorInfo q = dense("q", {1, 1, 3, 4}), k = dense("k", {1, 1, 5, 4}),
                   v = dense("v", {1, 1, 5, 6});
  const auto null = [](TensorInfo t) {
    t.data = nullptr;
    return t;
  };
  const std::string expected = ", expected the address of its first element";
  EXPECT_EQ(refusal([&] { make_problem(null(q), k, v); }),
            "q: null data for shape [1, 1, 3, 4]" + expected);
  EXPECT_EQ(refusal([&] { make_problem(q, null(k), v); }),
            "k: null data for shape [1, 1, 5, 4]" + expected);
  EXPECT_EQ(refusal([&] { make_problem(q, k, null(v)); }),
            "v: null data for shape [1, 1, 5, 6]" + expected);
  EXPECT_EQ(make_problem(q, null(dense("k", {1, 1, 0, 4})), null(dense("v", {1, 1, 0, 6}))).skv, 0);
  TensorInfo far = k;
  far.strides[2] = std::int64_t{1} << 61;
  EXPECT_EQ(refusal([&] { make_problem(q, far, v); }),
            "k: strides [20, 20, 2305843009213693952, 1] for shape [1, 1, 5, 4], "
            "expected offsets that fit in 64 bits");
  far.strides[2] = std::int64_t{1} << 60;  // fits in elements, not in bytes
  EXPECT_NE(refusal([&] { make_problem(q, far, v); }), "nothing thrown");
}

// ---- outputs -----------------------------------------------------------------------------------

TEST(Outputs, MustHaveTheirShapeAndMemory) {
  const Problem p = problem({1, 2, 3, 4}, {1, 1, 5, 4}, {1, 1, 5, 6});
  check_tensor(dense("o", {1, 2, 3, 6}), p.o_extents());
  EXPECT_EQ(refusal([&] {
              check_tensor(dense("o", {1, 2, 3, 4}), p.o_extents());
            }),
            "o: shape [1, 2, 3, 4], expected [1, 2, 3, 6]");
  EXPECT_EQ(refusal([&] {
              check_tensor(dense("o", {1, 2, 3, 6}, nullptr), p.o_extents());
            }),
            "o: null data for shape [1, 2, 3, 6], expected the address of its first element");
  Tensor<float, 3> lse({1, 2, 4});
  EXPECT_EQ(refusal([&] { check_tensor(describe("lse", lse.view()), p.lse_extents()); }),
            "lse: shape [1, 2, 4], expected [1, 2, 3]");
}

TEST(Outputs, MustNotShareMemoryWithThemselves) {
  const auto shares = [](std::vector<std::int64_t> extents, std::vector<std::int64_t> strides) {
    return shares_memory_with_itself(extents, strides);
  };
  EXPECT_FALSE(shares({2, 3}, {3, 1}));
  EXPECT_FALSE(shares({2, 3}, {1, 2}));
  EXPECT_FALSE(shares({2, 3}, {-3, -1}));
  EXPECT_FALSE(shares({1, 3}, {0, 1}));
  EXPECT_FALSE(shares({0, 3}, {0, 0}));
  EXPECT_TRUE(shares({2, 3}, {0, 1}));
  EXPECT_TRUE(shares({2, 3}, {2, 1}));   // 0 1 2 and 2 3 4
  EXPECT_FALSE(shares({2, 3}, {3, 2}));  // 0 2 4 and 3 5 7
  EXPECT_TRUE(shares({3, 3}, {4, 2}));   // 0 2 4, 4 6 8
  EXPECT_TRUE(shares({2, 3}, {-2, 1}));
  TensorInfo o = dense("o", {1, 1, 2, 3});
  o.strides[2] = 0;
  EXPECT_EQ(refusal([&] { check_outputs(std::array{o}, {}); }),
            "o: strides [6, 6, 0, 1] for shape [1, 1, 2, 3], "
            "expected every element at an address of its own");
}

TEST(Outputs, MustNotShareMemoryWithInputsOrEachOther) {
  const TensorInfo q = dense("q", {1, 1, 3, 4}, memory);  // elements 0 to 11
  const TensorInfo after = dense("o", {1, 1, 3, 4}, memory + 12),
                   last = dense("o", {1, 1, 3, 4}, memory + 11);
  check_outputs(std::array{after}, std::array{q});
  EXPECT_EQ(refusal([&] { check_outputs(std::array{last}, std::array{q}); }),
            "o: shape [1, 1, 3, 4] overlaps q [1, 1, 3, 4], expected memory of its own");
  const TensorInfo lse{"lse", memory + 20, DType::f32, 3, {1, 1, 3}, {3, 3, 1}};
  EXPECT_EQ(refusal([&] {
              check_outputs(std::array{after, lse}, std::array{q});
            }),
            "lse: shape [1, 1, 3] overlaps o [1, 1, 3, 4], expected memory of its own");
}

TEST(Outputs, MayInterleaveInOneBuffer) {
  // dQ and dK side by side in rows of 8, as a packed gradient has them.
  TensorInfo dq = dense("dq", {1, 1, 3, 4}, memory), dk = dense("dk", {1, 1, 3, 4}, memory + 4);
  dq.strides[2] = dk.strides[2] = 8;
  check_outputs(std::array{dq, dk}, {});
  dk.data = memory + 3;
  EXPECT_NE(refusal([&] { check_outputs(std::array{dq, dk}, {}); }), "nothing thrown");
  // Rows of 4, one of the two read backwards from its last element.
  dk.data = memory + 7, dk.strides[3] = -1;
  check_outputs(std::array{dq, dk}, {});
  dk.data = memory + 6;
  EXPECT_NE(refusal([&] { check_outputs(std::array{dq, dk}, {}); }), "nothing thrown");
  // Even and odd elements, one of them backwards.
  TensorInfo even = dense("dq", {1, 1, 1, 4}, memory), odd = dense("dk", {1, 1, 1, 4}, memory + 7);
  even.strides[3] = 2, odd.strides[3] = -2;
  check_outputs(std::array{even, odd}, {});
  odd.data = memory + 6;
  EXPECT_NE(refusal([&] { check_outputs(std::array{even, odd}, {}); }), "nothing thrown");
  // Types of different size: two halves at the address of the second float.
  TensorInfo halves{"lse", memory + 1, DType::f16, 3, {1, 1, 2}, {2, 2, 1}};
  even.strides[3] = 2;
  check_outputs(std::array{even, halves}, {});
  halves.extents[2] = 3;
  EXPECT_NE(refusal([&] { check_outputs(std::array{even, halves}, {}); }), "nothing thrown");
}

TEST(Outputs, AnExpandedInputIsNoObstacle) {
  TensorInfo k = dense("k", {1, 8, 3, 4}, memory);
  k.strides[1] = 0;  // 12 elements seen by 8 heads
  check_outputs(std::array{dense("o", {1, 1, 3, 4}, memory + 12)}, std::array{k});
  EXPECT_NE(refusal([&] {
              check_outputs(std::array{dense("o", {1, 1, 3, 4}, memory + 11)}, std::array{k});
            }),
            "nothing thrown");
}

// ---- index arithmetic --------------------------------------------------------------------------

struct SquareDistance {
  template <class Score, class Index>
  Score operator()(Score s, Index, Index, Index q, Index kv) const {
    return s + (q - kv) * (q - kv);
  }
};
struct Remainder {
  int shift;
  template <class Index>
  auto operator()(Index, Index, Index q, Index kv) const {
    return kv % (q + shift) == 0;
  }
};
struct Scalars {
  float operator()(float s, int, int, int q, int kv) const { return s + (q - kv) * (q - kv); }
};
struct Chosen {  // does not fit a problem of more than `most` keys
  int most;
  template <class Index>
  auto operator()(Index, Index, Index, Index kv) const {
    return kv < most;
  }
  void check(const Sizes& sizes) const {
    if (sizes.skv > most) throw std::invalid_argument("chosen: too many keys");
  }
};

Problem of_lengths(int sq, int skv) {
  Problem p;
  p.b = p.hq = p.hkv = p.d = p.dv = 1;
  p.sq = sq;
  p.skv = skv;
  return p;
}

TEST(IndexArithmetic, IsRefusedWhereItCouldLeave32Bits) {
  check_index_arithmetic(SquareDistance{}, of_lengths(46341, 46341));  // 46340^2 < 2^31
  const std::string why =
      refusal([] { check_index_arithmetic(SquareDistance{}, of_lengths(46342, 1)); });
  EXPECT_EQ(why.rfind("score mod: ", 0), 0u) << why;
  EXPECT_NE(why.find("2147488281"), std::string::npos) << why;  // 46341^2
  check_index_arithmetic(Scalars{}, of_lengths(46342, 1));      // cannot be asked
}

TEST(IndexArithmetic, IsRefusedWhereADivisorMayBeZero) {
  check_index_arithmetic(Remainder{1}, of_lengths(10, 10));
  const std::string why =
      refusal([] { check_index_arithmetic(Remainder{-9}, of_lengths(10, 10)); });
  EXPECT_EQ(why.rfind("mask: divisor", 0), 0u) << why;
  check_index_arithmetic(Remainder{-9}, of_lengths(9, 10));
}

TEST(IndexArithmetic, IsNotAskedOfAProblemWithoutPairs) {
  check_index_arithmetic(Remainder{0}, of_lengths(10, 0));
  check_index_arithmetic(Remainder{0}, of_lengths(0, 10));
  EXPECT_NE(refusal([] { check_index_arithmetic(Remainder{0}, of_lengths(1, 1)); }),
            "nothing thrown");
}

TEST(Functors, AreAskedWhetherTheyFit) {
  check_functors(SquareDistance{}, Chosen{4}, of_lengths(3, 4));
  EXPECT_EQ(refusal([] { check_functors(SquareDistance{}, Chosen{4}, of_lengths(3, 5)); }),
            "chosen: too many keys");
  EXPECT_NE(refusal([] { check_functors(SquareDistance{}, Chosen{1}, of_lengths(50000, 1)); }),
            "nothing thrown");
  EXPECT_NE(refusal([] { check_functors(SquareDistance{}, Remainder{0}, of_lengths(2, 2)); }),
            "nothing thrown");
}

}  // namespace
}  // namespace attn
