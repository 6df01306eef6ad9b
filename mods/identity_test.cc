#include "mods/identity.h"

#include <gtest/gtest.h>

#include "mods/dense_construction.h"

namespace attn {
namespace {

TEST(Identity, gives_the_score_back) {
  EXPECT_EQ(first_difference(
                identity(), {2, 2, 1, 3, 4}, [](double s, int, int, int, int) { return s; },
                [](double, int, int, int, int) { return 1.0; }),
            "");
}

TEST(Identity, adds_no_rounding_and_loses_no_special_value) {
  RoundedEnv rounded;
  EXPECT_EQ(modified(identity(), rounded, {0.1, 0.25}, 0, 0, 0, 0).e, 0.25);
  ExactEnv exact;
  EXPECT_EQ(modified(identity(), exact, -infinity, 0, 0, 0, 0), -infinity);
  EXPECT_TRUE(std::isnan(modified(identity(), exact, std::nan(""), 0, 0, 0, 0)));
}

}  // namespace
}  // namespace attn
