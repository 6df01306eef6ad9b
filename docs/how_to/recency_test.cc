#include "docs/how_to/recency.h"

#include <gtest/gtest.h>

#include "mods/dense_construction.h"
#include "mods/lang/parse.h"
#include "mods/lang/tree_functor.h"

namespace how_to {
namespace {

const attn::Sizes shapes[] = {{2, 2, 1, 4, 6}, {2, 2, 2, 6, 3}, {1, 2, 1, 1, 5}, {1, 2, 1, 5, 1}};

//! [test]
TEST(Recency, follows_its_formula) {
  for (const attn::Sizes& sizes : shapes)
    for (const float rate : {1.0f, 0.5f, -2.0f})
      EXPECT_EQ(attn::first_difference(
                    Recency{rate}, sizes,
                    [=](double s, int, int, int i, int j) {
                      return s - rate * std::log(1.0 + std::abs(i - j));
                    },
                    [](double, int, int, int, int) { return 1.0; }),
                "");
}
//! [test]

//! [expression]
TEST(Recency, says_the_same_as_its_expression) {
  const attn::Tables none;
  const attn::TreeMod text(attn::parse_mod("score - 0.5 * log(1 + abs(q - kv))"), none);
  for (const attn::Sizes& sizes : shapes)
    EXPECT_EQ(attn::first_difference(
                  Recency{0.5f}, sizes,
                  [&](double s, int b, int h, int i, int j) {
                    attn::ExactEnv env{sizes};
                    return attn::modified(text, env, s, b, h, i, j);
                  },
                  [](double, int, int, int, int) { return 1.0; }),
              "");
}
//! [expression]

}  // namespace
}  // namespace how_to
