#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "mods/lang/host_device.h"

namespace attn {

/// IEEE 754 binary16: 1 sign, 5 exponent, 10 fraction bits; unit roundoff 2^-11.
struct half {
  std::uint16_t bits;  ///< in the order of IEEE 754, the sign highest
};
/// The upper 16 bits of a binary32: 8 exponent, 7 fraction bits; unit roundoff 2^-8.
struct bfloat16 {
  std::uint16_t bits;  ///< the upper half of the float's
};

/// What masks a score, with a minus before it.
inline constexpr float infinity = std::numeric_limits<float>::infinity();

/// The widening conversions are exact.
ATTN_INLINE constexpr float to_float(bfloat16 x) {
  return std::bit_cast<float>(std::uint32_t{x.bits} << 16);
}
/// The same for binary16.
ATTN_INLINE constexpr float to_float(half x) {
  const std::uint32_t sign = (x.bits & 0x8000u) << 16;
  const std::uint32_t exponent = (x.bits >> 10) & 31u, fraction = x.bits & 0x3ffu;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | fraction << 13);
  if (exponent == 0) {  // zero or subnormal: fraction * 2^-24
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
  }
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
}
/// An fp32 number is what it is.
ATTN_INLINE constexpr float to_float(float x) { return x; }

/// Narrowing rounds to nearest even; NaN stays NaN, overflow becomes infinity.
template <class T>
ATTN_INLINE constexpr T from_float(float x) {
  const std::uint32_t u = std::bit_cast<std::uint32_t>(x), sign = u >> 16 & 0x8000u;
  std::uint32_t magnitude = u & 0x7fffffffu;
  if constexpr (std::is_same_v<T, float>) {
    return x;
  } else if constexpr (std::is_same_v<T, bfloat16>) {
    if (magnitude > 0x7f800000u) return {static_cast<std::uint16_t>(u >> 16 | 0x40u)};
    return {static_cast<std::uint16_t>((u + 0x7fffu + (u >> 16 & 1u)) >> 16)};
  } else {
    static_assert(std::is_same_v<T, half>, "storage types are float, half and bfloat16");
    if (magnitude > 0x7f800000u) return {static_cast<std::uint16_t>(sign | 0x7e00u)};
    if (magnitude >= 0x477ff000u) return {static_cast<std::uint16_t>(sign | 0x7c00u)};
    if (magnitude < 0x38800000u) {  // below 2^-14 the result is subnormal: count units of 2^-24
      const float scaled = std::bit_cast<float>(magnitude) * 0x1p24f;
      std::uint32_t units = static_cast<std::uint32_t>(scaled);
      const float rest = scaled - static_cast<float>(units);
      if (rest > 0.5f || (rest == 0.5f && (units & 1u))) ++units;
      return {static_cast<std::uint16_t>(sign | units)};
    }
    magnitude += 0xfffu + (magnitude >> 13 & 1u);
    return {static_cast<std::uint16_t>(sign | (magnitude - 0x38000000u) >> 13)};
  }
}

/// The storage types that tensors may have.
enum class DType { f64, f32, f16, bf16 };

/// The name of the storage type `T`.
template <class T>
inline constexpr DType dtype_of = std::is_same_v<T, double>  ? DType::f64
                                  : std::is_same_v<T, float> ? DType::f32
                                  : std::is_same_v<T, half>  ? DType::f16
                                                             : DType::bf16;

/// As it is spelled in messages and cases: "bf16".
constexpr const char* name_of(DType t) {
  switch (t) {
    case DType::f64:
      return "fp64";
    case DType::f32:
      return "fp32";
    case DType::f16:
      return "fp16";
    case DType::bf16:
      return "bf16";
  }
  return "?";
}

/// Of one number.
constexpr std::size_t bytes_of(DType t) { return t == DType::f64 ? 8 : t == DType::f32 ? 4 : 2; }

/// Half the distance from 1 to the next number: the largest relative error of rounding to `t`.
constexpr double unit_roundoff(DType t) {
  switch (t) {
    case DType::f64:
      return 0x1p-53;
    case DType::f32:
      return 0x1p-24;
    case DType::f16:
      return 0x1p-11;
    case DType::bf16:
      return 0x1p-8;
  }
  return 1;
}

}  // namespace attn
