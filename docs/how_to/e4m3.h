#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "mods/lang/host_device.h"

/// The storage type of docs/how_to_dtype.md.
namespace how_to {

//! [type]
/// OCP 8-bit floating point, E4M3: 1 sign, 4 exponent, 3 fraction bits; largest 448, no infinities;
/// unit roundoff 2^-4. (P. Micikevicius et al., "FP8 Formats for Deep Learning", 2022, section 3.)
struct e4m3 {
  std::uint8_t bits;  ///< the sign highest
};
//! [type]

//! [conversions]
/// Widening is exact.
ATTN_INLINE constexpr float to_float(e4m3 x) {
  const std::uint32_t sign = (x.bits & 0x80u) << 24, exponent = (x.bits >> 3) & 15u,
                      fraction = x.bits & 7u;
  if (exponent == 15 && fraction == 7) return std::bit_cast<float>(sign | 0x7fc00000u);  // NaN
  if (exponent == 0) {  // zero or subnormal: fraction * 2^-9
    const float magnitude = static_cast<float>(fraction) * 0x1p-9f;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
  }
  return std::bit_cast<float>(sign | (exponent + 120) << 23 | fraction << 20);
}
/// Narrowing rounds to nearest even and stops at the largest number, as PTX
/// `cvt.rn.satfinite.e4m3x2.f32` does; NaN stays NaN.
ATTN_INLINE constexpr e4m3 to_e4m3(float x) {
  const std::uint32_t u = std::bit_cast<std::uint32_t>(x), sign = u >> 24 & 0x80u;
  std::uint32_t magnitude = u & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return {static_cast<std::uint8_t>(sign | 0x7fu)};
  if (magnitude >= 0x43e00000u) return {static_cast<std::uint8_t>(sign | 0x7eu)};  // 448
  if (magnitude < 0x3c800000u) {  // below 2^-6 the result is subnormal: count units of 2^-9
    const float scaled = std::bit_cast<float>(magnitude) * 0x1p9f;
    std::uint32_t units = static_cast<std::uint32_t>(scaled);
    const float rest = scaled - static_cast<float>(units);
    if (rest > 0.5f || (rest == 0.5f && (units & 1u))) ++units;
    return {static_cast<std::uint8_t>(sign | units)};
  }
  magnitude += 0x7ffffu + (magnitude >> 20 & 1u);
  return {static_cast<std::uint8_t>(sign | (magnitude - 0x3c000000u) >> 20)};
}
//! [conversions]

}  // namespace how_to
