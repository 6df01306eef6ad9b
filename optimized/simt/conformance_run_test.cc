#include "optimized/simt/conformance_run.h"

#include <gtest/gtest.h>

#include <bit>

namespace attn {
namespace {

std::vector<ConformanceResult> of(float x, float result, Precision precision) {
  return {{"primitive", {std::bit_cast<std::uint32_t>(result)}, precision, {x}}};
}
bool accepts(float x, float result, Precision precision) {
  return conformance_differences(of(x, result, precision), of(x, 99, precision)).empty();
}

TEST(ConformanceRun, TheEnginesAgree) {
  HostMemory memory;
  const auto on_warps = warp::run_conformance(memory), on_threads = thread::run_conformance(memory);
  EXPECT_GT(on_warps.size(), 70u);
  EXPECT_EQ(conformance_differences(on_threads, on_warps), std::vector<std::string>{});
}

TEST(ConformanceRun, ADifferentWordIsNamed) {
  HostMemory memory;
  const auto right = warp::run_conformance(memory);
  for (std::size_t i = 0; i < right.size(); ++i) {
    if (right[i].precision != Precision::exact) continue;
    auto wrong = right;
    wrong[i].words.back() ^= 1;
    const auto lines = conformance_differences(wrong, right);
    ASSERT_EQ(lines.size(), 1u) << right[i].primitive;
    EXPECT_EQ(lines[0].find(right[i].primitive + ": word"), 0u);
  }
  auto fewer = right;
  fewer.pop_back();
  EXPECT_EQ(conformance_differences(fewer, right).size(), 1u);
  EXPECT_EQ(conformance_differences(right, fewer).size(), 1u);
  fewer = right;
  fewer[0].words.pop_back();
  EXPECT_EQ(conformance_differences(fewer, right).size(), 1u);
}

TEST(ConformanceRun, ApproximateFunctionsHaveTheirPrecisionAndNoMore) {
  constexpr float inf = std::numeric_limits<float>::infinity(),
                  nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(accepts(0.5f, 0x1.6a09e6p0f, Precision::exp2));  // nearest to sqrt(2)
  EXPECT_TRUE(accepts(0.5f, 0x1.6a09e8p0f, Precision::exp2));
  EXPECT_FALSE(accepts(0.5f, 0x1.6a09f0p0f, Precision::exp2));
  EXPECT_FALSE(accepts(0.5f, nan, Precision::exp2));
  EXPECT_TRUE(accepts(3, 8, Precision::exp2));
  EXPECT_FALSE(accepts(3, 0x1.000002p3f, Precision::exp2));  // whole powers are exact
  EXPECT_TRUE(accepts(-127, 0, Precision::exp2));
  EXPECT_FALSE(accepts(-127, 0x1p-127f, Precision::exp2));
  EXPECT_TRUE(accepts(128, inf, Precision::exp2));
  EXPECT_TRUE(accepts(nan, nan, Precision::exp2));
  EXPECT_FALSE(accepts(nan, 1, Precision::exp2));
  EXPECT_TRUE(accepts(8, 3, Precision::log2));
  EXPECT_TRUE(accepts(8, 0x1.800002p1f, Precision::log2));  // one unit in the last place
  EXPECT_FALSE(accepts(8, 0x1.800004p1f, Precision::log2));
  EXPECT_TRUE(accepts(0, -inf, Precision::log2));
  EXPECT_FALSE(accepts(0, -150, Precision::log2));
  EXPECT_TRUE(accepts(-1, nan, Precision::log2));
  EXPECT_FALSE(accepts(-1, 0, Precision::log2));
}

}  // namespace
}  // namespace attn
