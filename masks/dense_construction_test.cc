#include "masks/dense_construction.h"

#include <gtest/gtest.h>

#include "masks/causal.h"

namespace attn {
namespace {

const Sizes sizes{1, 1, 1, 4, 5};

/// Right on every element; on boxes it answers `said`, whatever the question.
struct CausalWithVerdict {
  Maybe said;
  bool operator()(const Index<ExactEnv>&, const Index<ExactEnv>&, const Index<ExactEnv>& q,
                  const Index<ExactEnv>& kv) const {
    return kv <= q;
  }
  Maybe operator()(const Index<RangeEnv>&, const Index<RangeEnv>&, const Index<RangeEnv>&,
                   const Index<RangeEnv>&) const {
    return said;
  }
};

TEST(DenseConstruction, names_the_first_pair_that_differs) {
  EXPECT_EQ(first_difference(causal(), sizes, [](int, int, int i, int j) { return j < i; }),
            "b0 h0 q0 kv0: expected false");
  EXPECT_EQ(first_difference(causal(), sizes, [](int, int, int i, int j) { return j <= i + 1; }),
            "b0 h0 q0 kv1: expected true");
}

TEST(DenseConstruction, tells_a_wrong_verdict_from_an_undecided_one) {
  EXPECT_EQ(first_wrong_box(CausalWithVerdict{{true, true}}, sizes, Verdicts::sound), "");
  EXPECT_EQ(first_wrong_box(CausalWithVerdict{{true, true}}, sizes, Verdicts::exact),
            "undecided on b0..0 h0..0 q0..0 kv0..0");
  EXPECT_EQ(first_wrong_box(CausalWithVerdict{true}, sizes, Verdicts::sound),
            "wrong on b0..0 h0..0 q0..0 kv0..1");
  EXPECT_EQ(first_wrong_box(CausalWithVerdict{false}, sizes, Verdicts::sound),
            "wrong on b0..0 h0..0 q0..0 kv0..0");
}

TEST(DenseConstruction, asks_about_several_heads_at_once) {
  // Differs between heads, and claims otherwise for a box of both.
  const auto first_head = [](auto, auto h, auto, auto) {
    if constexpr (std::is_same_v<decltype(h), Index<RangeEnv>>)
      return h.value.single() ? h == 0 : Maybe(true);
    else
      return h == 0;
  };
  EXPECT_EQ(first_wrong_box(first_head, {1, 2, 1, 2, 2}, Verdicts::exact),
            "wrong on b0..0 h0..1 q0..0 kv0..0");
}

}  // namespace
}  // namespace attn
