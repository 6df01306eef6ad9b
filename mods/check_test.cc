#include "mods/check.h"

#include <gtest/gtest.h>

#include "mods/alibi.h"
#include "mods/compose.h"
#include "mods/identity.h"
#include "mods/soft_cap.h"

namespace attn {
namespace {

const Sizes sizes{1, 4, 2, 3, 3};

/// A mod that fits two heads.
Alibi of_two_heads() {
  static const Tensor<float, 1> slopes({2});
  return alibi(slopes);
}

TEST(CheckMod, asks_a_mod_that_has_a_check) {
  EXPECT_THROW(check_mod(of_two_heads(), sizes), std::invalid_argument);
  EXPECT_NO_THROW(check_mod(of_two_heads(), {1, 2, 2, 3, 3}));
}

TEST(CheckMod, takes_a_mod_without_one) {
  EXPECT_NO_THROW(check_mod(identity(), sizes));
  EXPECT_NO_THROW(check_mod([](auto s, auto, auto, auto, auto) { return s; }, sizes));
}

TEST(CheckMod, reaches_every_part) {
  EXPECT_THROW(check_mod(then(of_two_heads(), identity()), sizes), std::invalid_argument);
  EXPECT_THROW(check_mod(then(identity(), of_two_heads()), sizes), std::invalid_argument);
  EXPECT_THROW(check_mod(then(identity(), identity(), SoftCap{0}), sizes), std::invalid_argument);
  EXPECT_NO_THROW(check_mod(then(identity(), soft_cap(3), identity()), sizes));
}

}  // namespace
}  // namespace attn
