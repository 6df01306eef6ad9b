#include "mods/masked.h"

#include <gtest/gtest.h>

#include "mods/alibi.h"
#include "mods/check.h"
#include "mods/dense_construction.h"

namespace attn {
namespace {

const Sizes shapes[] = {{2, 2, 1, 4, 6}, {2, 2, 2, 6, 3}, {1, 2, 1, 1, 5}, {1, 2, 1, 5, 1}};

struct NotFuture {
  template <class Index>
  auto operator()(Index, Index, Index q, Index kv) const {
    return kv <= q;
  }
};

TEST(Masked, hides_pairs_and_keeps_the_rest) {
  Tensor<float, 1> slopes({2});
  slopes.values() = {0.5f, 0.25f};
  for (const Sizes& sizes : shapes) {
    ExactEnv exact{sizes};
    DualEnv dual{sizes};
    for (int h = 0; h < sizes.hq; ++h)
      for (int i = 0; i < sizes.sq; ++i)
        for (int j = 0; j < sizes.skv; ++j) {
          const auto mod = masked(NotFuture{}, alibi(slopes));
          const double expected = j <= i ? 1.5 + slopes(h) * (j - i) : -infinity;
          EXPECT_EQ(modified(mod, exact, 1.5, 0, h, i, j), expected);
          const Dual<double> got = modified(mod, dual, {1.5, 1.0}, 0, h, i, j);
          EXPECT_EQ(got.v, expected);
          EXPECT_EQ(got.d, j <= i ? 1 : 0);
        }
  }
}

TEST(Masked, the_range_of_a_hidden_box_is_one_number) {
  RangeEnv env{{1, 1, 1, 8, 8}};
  const auto all = [&](int first, int last) {
    return Index<RangeEnv>{RangeEnv::Int(first, last), &env};
  };
  Tensor<float, 1> slopes({1});
  const Range<double> hidden = call_mod(masked(NotFuture{}, alibi(slopes)), Range<double>(1.0),
                                        all(0, 0), all(0, 0), all(0, 3), all(4, 7));
  EXPECT_EQ(hidden.low, -infinity);
  EXPECT_EQ(hidden.high, -infinity);
}

TEST(Masked, check_reaches_mask_and_mod) {
  Tensor<float, 1> slopes({2});
  EXPECT_THROW(check_mod(masked(NotFuture{}, alibi(slopes)), {1, 3, 1, 4, 4}),
               std::invalid_argument);
  struct Refusing : NotFuture {
    void check(const Sizes&) const { throw std::invalid_argument("no"); }
  };
  EXPECT_THROW(check_mod(masked(Refusing{}, alibi(slopes)), {1, 2, 1, 4, 4}),
               std::invalid_argument);
}

}  // namespace
}  // namespace attn
