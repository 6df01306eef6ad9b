// The arithmetic of the CPU engines that a GPU does in special units: tensor-core products,
// 2^x, and conversions between fp32 and the 16-bit types.
//
// The scalar functions and `portable` say what is meant. `avx2` (cpu_math_avx2.h) gives the same
// bits faster, and is used where the processor that the unit is compiled for has AVX2, FMA and
// F16C. All of it stands in an inline namespace named after that choice, so that units compiled for
// different processors do not share one definition.
#pragma once
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "mods/lang/storage.h"
#include "optimized/simt/cpu_inline.h"
#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#define ATTN_CPU_AVX2 1
#define ATTN_CPU_ISA x86_64_v3
#else
#define ATTN_CPU_ISA baseline
#endif

namespace attn::simt::cpu::math {
inline namespace ATTN_CPU_ISA {

// ---- conversions -------------------------------------------------------------------------------

/// fp32 to 16 bits, round to nearest even, overflow to infinity; a NaN becomes 0x7fff, as cvt.rn
/// gives on a GPU.
template <class T>
ATTN_FORCE_INLINE std::uint32_t narrow(float x) {
  return x != x ? 0x7fffu : from_float<T>(x).bits;
}
/// lo in bits 0..15, hi in bits 16..31.
template <class T>
ATTN_FORCE_INLINE std::uint32_t pack2(float lo, float hi) {
  return narrow<T>(lo) | narrow<T>(hi) << 16;
}
template <class T>
ATTN_FORCE_INLINE float low_of(std::uint32_t packed) {
  return to_float(T{static_cast<std::uint16_t>(packed)});
}
template <class T>
ATTN_FORCE_INLINE float high_of(std::uint32_t packed) {
  return to_float(T{static_cast<std::uint16_t>(packed >> 16)});
}

/// fp32 to TF32, 8 bits of exponent and 10 of fraction in the place that fp32 has them: round to
/// nearest, ties away from zero, overflow to infinity, the low 13 bits zero.
ATTN_FORCE_INLINE std::uint32_t round_to_tf32(float x) {
  return x != x ? 0x7fffe000u : (std::bit_cast<std::uint32_t>(x) + 0x1000u) & 0xffffe000u;
}
/// The value of a TF32 operand: the low 13 bits are not looked at.
ATTN_FORCE_INLINE float from_tf32(std::uint32_t bits) {
  return std::bit_cast<float>(bits & 0xffffe000u);
}

// ---- 2^x ---------------------------------------------------------------------------------------

/// 2^f - 1 = sum of kExp2[k] f^(k+1) on [-1/2, 1/2] to 2^-26.7: the polynomial that agrees with it
/// at the six Chebyshev nodes, coefficients rounded to fp32.
inline constexpr float kExp2[6] = {0x1.62e43p-1f,  0x1.ebfbep-3f,  0x1.c6af6cp-5f,
                                   0x1.3b2a54p-7f, 0x1.5f089p-10f, 0x1.44138ap-13f};
inline constexpr float kRoundToInteger = 0x1.8p23f;  // adding it leaves no bits for a fraction

/// 2^x with relative error below 2^-22: x = n + f with n the nearest integer, 2^f by a polynomial.
/// Exact at integers; 0 below -126 (the result would be subnormal, as in ex2.approx.ftz); infinity
/// from 128; NaN for NaN.
ATTN_FORCE_INLINE float exp2(float x) {
  float y = x < 128.0f ? x : 128.0f;
  y = y > -127.0f ? y : -127.0f;
  const float shifted = y + kRoundToInteger;
  const float f = y - (shifted - kRoundToInteger);
  float p = kExp2[5];
  for (int k = 4; k >= 0; --k) p = std::fma(p, f, kExp2[k]);
  p = std::fma(p, f, 1.0f);
  const std::uint32_t n =
      std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(kRoundToInteger);
  float r = std::bit_cast<float>(std::bit_cast<std::uint32_t>(p) + (n << 23));
  r = x < -126.0f ? 0.0f : r;
  r = x >= 128.0f ? infinity : r;
  return x != x ? x : r;
}

// ---- max ---------------------------------------------------------------------------------------

/// max.f32 of PTX: a NaN loses against a number, and +0 is greater than -0.
ATTN_FORCE_INLINE float max_number(float a, float b) {
  float m = a > b ? a : b;
  const auto both = std::bit_cast<std::uint32_t>(a) & std::bit_cast<std::uint32_t>(b);
  m = a == b ? std::bit_cast<float>(both) : m;
  return b != b ? a : m;
}

// ---- fragments in shared memory ----------------------------------------------------------------

/// Four 8x8 matrices of 16-bit values; lanes 8i to 8i+7 give the addresses of the rows of matrix i.
/// Lane l receives row l / 4, columns 2 (l % 4) and the next; transposed, the roles are exchanged.
template <bool Transposed>
inline void ldmatrix_x4(std::uint32_t* const* r, const char* smem, const std::uint32_t* address) {
  for (int i = 0; i < 4; ++i) {
    std::uint16_t m[8][8];
    for (int row = 0; row < 8; ++row) std::memcpy(m[row], smem + address[8 * i + row], 16);
    if constexpr (!Transposed) {
      std::memcpy(r[i], m, 128);
    } else {
      for (int l = 0; l < 32; ++l) {
        const int row = 2 * (l % 4), column = l / 4;
        r[i][l] = m[row][column] | static_cast<std::uint32_t>(m[row + 1][column]) << 16;
      }
    }
  }
}

// ---- eight at a time, and tensor-core products -------------------------------------------------

namespace portable {

template <class T>
ATTN_FORCE_INLINE void pack2_row(std::uint32_t* packed, const float* lo, const float* hi) {
  for (int i = 0; i < 8; ++i) packed[i] = pack2<T>(lo[i], hi[i]);
}
ATTN_FORCE_INLINE void exp2_row(float* y, const float* x) {
  for (int i = 0; i < 8; ++i) y[i] = math::exp2(x[i]);
}

/// Two packed 16-bit values for each of four lanes, widened to eight floats in order of column.
template <class T>
ATTN_FORCE_INLINE void widen_row(float* row, const std::uint32_t* packed) {
  for (int i = 0; i < 4; ++i) {
    row[2 * i] = low_of<T>(packed[i]);
    row[2 * i + 1] = high_of<T>(packed[i]);
  }
}
/// d = a b + d on fragments: the operands of lane l are element l of each array.
///
/// With g = l / 4 and t = l % 4 (PTX ISA, "Matrix Fragments for mma.m16n8k16"), lane l holds
///   a[0], a[1]: A[g][2t, 2t+1], A[g+8][2t, 2t+1]     a[2], a[3]: the same rows, columns + 8
///   b[0], b[1]: B[2t, 2t+1][g], B[2t+8, 2t+9][g]     d[0..3]: D[g][2t], D[g][2t+1], D[g+8][..]
/// Products of 16-bit values are exact in fp32. They are added one after the other, k = 0 to 15,
/// each with one rounding to nearest even, starting from d. (A GPU adds groups of products with
/// fewer bits and truncates: the bits differ, and the error bounds of the oracle cover both.)
template <class T>
inline void mma_m16n8k16(float* const* d, const std::uint32_t* const* a,
                         const std::uint32_t* const* b) {
  float left[16][16], right[8][16];  // A by row, B by column
  for (int g = 0; g < 8; ++g) {
    widen_row<T>(left[g], a[0] + 4 * g);
    widen_row<T>(left[g] + 8, a[2] + 4 * g);
    widen_row<T>(left[g + 8], a[1] + 4 * g);
    widen_row<T>(left[g + 8] + 8, a[3] + 4 * g);
    widen_row<T>(right[g], b[0] + 4 * g);
    widen_row<T>(right[g] + 8, b[1] + 4 * g);
  }
  for (int row = 0; row < 16; ++row)
    for (int column = 0; column < 8; ++column) {
      float& sum = d[row / 8 * 2 + column % 2][row % 8 * 4 + column / 2];
      for (int k = 0; k < 16; ++k) sum = std::fma(left[row][k], right[column][k], sum);
    }
}
/// The same for the fragments of TF32 (PTX ISA, "Matrix Fragments for mma.m16n8k8"): lane l holds
///   a[0], a[1]: A[g][t], A[g+8][t]     a[2], a[3]: the same rows, column t + 4
///   b[0], b[1]: B[t][g], B[t+4][g]     d[0..3]: as above
inline void mma_m16n8k8_tf32(float* const* d, const std::uint32_t* const* a,
                             const std::uint32_t* const* b) {
  float left[16][8], right[8][8];  // A by row, B by column
  for (int l = 0; l < 32; ++l)
    for (int i = 0; i < 4; ++i) {
      left[l / 4 + i % 2 * 8][l % 4 + i / 2 * 4] = from_tf32(a[i][l]);
      if (i < 2) right[l / 4][l % 4 + i * 4] = from_tf32(b[i][l]);
    }
  for (int row = 0; row < 16; ++row)
    for (int column = 0; column < 8; ++column) {
      float& sum = d[row / 8 * 2 + column % 2][row % 8 * 4 + column / 2];
      for (int k = 0; k < 8; ++k) sum = std::fma(left[row][k], right[column][k], sum);
    }
}

}  // namespace portable
}  // namespace ATTN_CPU_ISA
}  // namespace attn::simt::cpu::math

#if defined(ATTN_CPU_AVX2)
#include "optimized/simt/cpu_math_avx2.h"
#endif

namespace attn::simt::cpu::math {
inline namespace ATTN_CPU_ISA {
#if defined(ATTN_CPU_AVX2)
using namespace avx2;
#else
using namespace portable;
#endif
}  // namespace ATTN_CPU_ISA

// ---- atomics -----------------------------------------------------------------------------------

template <class T>
concept atomic_addable = std::is_same_v<T, float> || std::is_same_v<T, std::int32_t> ||
    std::is_same_v<T, std::uint32_t> || std::is_same_v<T, std::uint64_t>;
template <class T>
concept atomic_comparable = std::is_same_v<T, std::int32_t> || std::is_same_v<T, std::uint32_t>;

/// What atomic_add does to a number.
struct AtomicAdd {
  template <class T>
  void operator()(T& target, T value) const {
    std::atomic_ref<T>(target).fetch_add(value, std::memory_order_relaxed);
  }
};
/// What atomic_max does to a number.
struct AtomicMax {
  template <class T>
  void operator()(T& target, T value) const {
    std::atomic_ref<T> a(target);
    T old = a.load(std::memory_order_relaxed);
    while (old < value && !a.compare_exchange_weak(old, value, std::memory_order_relaxed)) {
    }
  }
};

}  // namespace attn::simt::cpu::math
