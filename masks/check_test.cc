#include "masks/check.h"

#include <gtest/gtest.h>

#include "masks/causal.h"
#include "masks/full.h"
#include "masks/window.h"

namespace attn {
namespace {

const Sizes sizes{3, 1, 1, 4, 4};

/// A mask that fits two batch entries.
Causal of_two_entries() {
  static const Tensor<std::int32_t, 1> offsets({2});
  return causal(diagonal_offset(offsets));
}

TEST(CheckMask, asks_a_mask_that_has_a_check) {
  EXPECT_THROW(check_mask(of_two_entries(), sizes), std::invalid_argument);
  EXPECT_NO_THROW(check_mask(of_two_entries(), {2, 1, 1, 4, 4}));
}

TEST(CheckMask, takes_a_mask_without_one) {
  EXPECT_NO_THROW(check_mask(full(), sizes));
  EXPECT_NO_THROW(check_mask([](auto, auto, auto, auto kv) { return kv > 0; }, sizes));
}

TEST(CheckMask, reaches_every_part) {
  const Causal bad = of_two_entries();
  EXPECT_THROW(check_mask(bad && full(), sizes), std::invalid_argument);
  EXPECT_THROW(check_mask(full() && bad, sizes), std::invalid_argument);
  EXPECT_THROW(check_mask(bad || full(), sizes), std::invalid_argument);
  EXPECT_THROW(check_mask(full() || bad, sizes), std::invalid_argument);
  EXPECT_THROW(check_mask(bad != full(), sizes), std::invalid_argument);
  EXPECT_THROW(check_mask(full() != bad, sizes), std::invalid_argument);
  EXPECT_THROW(check_mask(!bad, sizes), std::invalid_argument);
  EXPECT_THROW(check_mask(full() && !(window(1, 1) || bad), sizes), std::invalid_argument);
  EXPECT_NO_THROW(check_mask(full() && !(window(1, 1) || causal()), sizes));
}

}  // namespace
}  // namespace attn
