#include "docs/lessons/01_three_passes.h"

#include <gtest/gtest.h>

#include "masks/full.h"
#include "mods/identity.h"
#include "reference/forward.h"

namespace lesson {
namespace {

// The lesson is the reference, on one row.
TEST(ThreePasses, AgreesWithTheReference) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    const Problem x = random_problem(seed);
    const auto tensor = [](const std::vector<Row>& rows) {
      attn::Tensor<double, 4> t(
          {1, 1, static_cast<int>(rows.size()), static_cast<int>(rows[0].size())});
      std::size_t at = 0;
      for (const Row& row : rows)
        for (const double value : row) t.values()[at++] = value;
      return t;
    };
    const auto q = tensor({x.q}), k = tensor(x.k), v = tensor(x.v);
    attn::Options options;
    options.scale = x.scale;
    const auto truth = attn::reference::forward(q.view(), k.view(), v.view(), attn::identity(),
                                                attn::full(), options);
    const Answer answer = three_passes(x);
    for (std::size_t d = 0; d < answer.o.size(); ++d)
      EXPECT_LE(std::abs(answer.o[d] - truth.o.values()[d]), rounding_bound(x)) << "seed " << seed;
    EXPECT_LE(std::abs(answer.lse - truth.lse.values()[0]), rounding_bound(x)) << "seed " << seed;
  }
}

TEST(ThreePasses, EqualScoresGiveTheMean) {
  const Problem x{{0}, {{1}, {2}, {3}, {4}}, {{1}, {3}, {5}, {7}}, 1};
  EXPECT_EQ(three_passes(x).o[0], 4);
  EXPECT_EQ(three_passes(x).lse, std::log(4.0));
}

// The exercise: from which score on does it fail, and how?
TEST(ThreePasses, OverflowsWhereTheDefinitionDoesNot) {
  const Problem x{{1}, {{710}, {709}}, {{1}, {2}}, 1};
  EXPECT_TRUE(std::isnan(three_passes(x).o[0]));  // inf / inf
}

}  // namespace
}  // namespace lesson
