#include "mods/lang/storage.h"

#include <gtest/gtest.h>

#include <Eigen/Core>
#include <cmath>
#include <random>

namespace attn {
namespace {

std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }

/// The independent computations: Eigen's 16-bit types.
float eigen_value(half x) {
  return static_cast<float>(Eigen::numext::bit_cast<Eigen::half>(x.bits));
}
float eigen_value(bfloat16 x) {
  return static_cast<float>(Eigen::numext::bit_cast<Eigen::bfloat16>(x.bits));
}
template <class T>
using EigenOf = std::conditional_t<std::is_same_v<T, half>, Eigen::half, Eigen::bfloat16>;

template <class T>
class Storage : public testing::Test {};
using StorageTypes = testing::Types<half, bfloat16>;
TYPED_TEST_SUITE(Storage, StorageTypes);

TYPED_TEST(Storage, EveryBitPatternWidensAndComesBack) {
  using T = TypeParam;
  for (std::uint32_t u = 0; u < 65536; ++u) {
    const T x{static_cast<std::uint16_t>(u)};
    const float wide = to_float(x);
    if (std::isnan(wide)) {
      EXPECT_TRUE(std::isnan(eigen_value(x))) << u;
      EXPECT_TRUE(std::isnan(to_float(from_float<T>(wide)))) << u;
    } else {
      ASSERT_EQ(bits(wide), bits(eigen_value(x))) << u;
      ASSERT_EQ(from_float<T>(wide).bits, u);
    }
  }
}

/// Between two neighbours: the middle goes to the even one, its neighbours to the nearer one.
TYPED_TEST(Storage, RoundsToNearestEven) {
  using T = TypeParam;
  for (std::uint32_t u = 0; u < 0x7fff; ++u) {
    const T low{static_cast<std::uint16_t>(u)}, high{static_cast<std::uint16_t>(u + 1)};
    if (!std::isfinite(to_float(high))) break;
    for (float sign : {1.0f, -1.0f}) {
      const std::uint32_t negative = sign < 0 ? 0x8000u : 0;
      // In double the middle of any two neighbours is exact, and it is a float.
      const double middle = (double{to_float(low)} + double{to_float(high)}) / 2;
      const float tie = static_cast<float>(middle);
      ASSERT_EQ(double{tie}, middle);
      const float below = std::nextafter(tie, 0.0f), above = std::nextafter(tie, infinity);
      ASSERT_EQ(from_float<T>(sign * tie).bits, (u % 2 ? u + 1 : u) | negative) << u;
      ASSERT_EQ(from_float<T>(sign * below).bits, u | negative) << u;
      ASSERT_EQ(from_float<T>(sign * above).bits, (u + 1) | negative) << u;
    }
  }
}

TYPED_TEST(Storage, AgreesWithEigenOnRandomFloats) {
  using T = TypeParam;
  std::mt19937 random(7);
  for (int i = 0; i < 1000000; ++i) {
    const float x = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    const T mine = from_float<T>(x);
    if (std::isnan(x)) {
      ASSERT_TRUE(std::isnan(to_float(mine)));
    } else {
      const auto theirs = EigenOf<T>(x);
      ASSERT_EQ(mine.bits, Eigen::numext::bit_cast<std::uint16_t>(theirs)) << x;
    }
  }
}

TYPED_TEST(Storage, OverflowBecomesInfinityAndNaNStays) {
  using T = TypeParam;
  const std::uint16_t pattern = std::is_same_v<T, half> ? 0x7bff : 0x7f7f;
  const float largest = to_float(T{pattern});
  EXPECT_TRUE(std::isfinite(largest));
  EXPECT_EQ(to_float(from_float<T>(largest)), largest);
  EXPECT_EQ(to_float(from_float<T>(infinity)), infinity);
  EXPECT_EQ(to_float(from_float<T>(-infinity)), -infinity);
  EXPECT_EQ(to_float(from_float<T>(std::numeric_limits<float>::max())), infinity);
  for (std::uint32_t payload : {0x7f800001u, 0x7fc00000u, 0xff800001u, 0xffffffffu})
    EXPECT_TRUE(std::isnan(to_float(from_float<T>(std::bit_cast<float>(payload)))));
}

TEST(Storage, RoundoffIsHalfTheStepAboveOne) {
  EXPECT_EQ(2 * unit_roundoff(DType::f16), to_float(half{0x3c01}) - 1);
  EXPECT_EQ(2 * unit_roundoff(DType::bf16), to_float(bfloat16{0x3f81}) - 1);
  EXPECT_EQ(2 * unit_roundoff(DType::f32), std::numeric_limits<float>::epsilon());
  EXPECT_EQ(2 * unit_roundoff(DType::f64), std::numeric_limits<double>::epsilon());
}

TEST(Storage, TypesHaveNames) {
  EXPECT_STREQ(name_of(dtype_of<half>), "fp16");
  EXPECT_STREQ(name_of(dtype_of<bfloat16>), "bf16");
  EXPECT_STREQ(name_of(dtype_of<float>), "fp32");
  EXPECT_STREQ(name_of(dtype_of<double>), "fp64");
}

}  // namespace
}  // namespace attn
