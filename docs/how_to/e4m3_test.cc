#include "docs/how_to/e4m3.h"

#include <gtest/gtest.h>

namespace how_to {
namespace {

// The formula of the format, apart from the code: (-1)^s 2^(e - 7) (1 + f / 8).
TEST(E4m3, every_number_is_what_the_format_says) {
  for (int bits = 0; bits < 256; ++bits) {
    const int e = bits >> 3 & 15, f = bits & 7;
    const float got = to_float(e4m3{static_cast<std::uint8_t>(bits)});
    if (e == 15 && f == 7) {
      EXPECT_TRUE(std::isnan(got));
      continue;
    }
    const double magnitude = e == 0 ? std::ldexp(f, -9) : std::ldexp(8 + f, e - 10);
    EXPECT_EQ(got, bits & 128 ? -magnitude : magnitude) << bits;
  }
}

//! [test]
TEST(E4m3, narrowing_gives_the_nearest_number_and_the_even_one_between) {
  for (int bits = 0; bits < 126; ++bits) {  // and the number above it, up to 448
    const float low = to_float(e4m3{static_cast<std::uint8_t>(bits)});
    const float high = to_float(e4m3{static_cast<std::uint8_t>(bits + 1)});
    const float middle = low / 2 + high / 2;  // exact: one bit more
    EXPECT_EQ(to_e4m3(low).bits, bits);
    EXPECT_EQ(to_e4m3(std::nextafter(middle, low)).bits, bits);
    EXPECT_EQ(to_e4m3(middle).bits, bits % 2 == 0 ? bits : bits + 1);
    EXPECT_EQ(to_e4m3(std::nextafter(middle, high)).bits, bits + 1);
    EXPECT_EQ(to_e4m3(-low).bits, bits | 128);
  }
}
//! [test]

TEST(E4m3, stops_at_the_largest_and_keeps_nan) {
  for (const float x : {448.0f, 449.0f, 470.0f, 1e30f, INFINITY})
    EXPECT_EQ(to_float(to_e4m3(x)), 448);
  EXPECT_EQ(to_float(to_e4m3(-INFINITY)), -448);
  EXPECT_TRUE(std::isnan(to_float(to_e4m3(NAN))));
}

}  // namespace
}  // namespace how_to
