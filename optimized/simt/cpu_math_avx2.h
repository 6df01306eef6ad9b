// The AVX2 versions of the functions of cpu_math.h, bit for bit the same as `portable`.
#pragma once
#include <immintrin.h>

#include "optimized/simt/cpu_math.h"

namespace attn::simt::cpu::math {
inline namespace ATTN_CPU_ISA {
namespace avx2 {

template <class T>
ATTN_FORCE_INLINE __m256i narrow8(__m256 x) {
  const __m256 nan = _mm256_cmp_ps(x, x, _CMP_UNORD_Q);
  __m256i bits;
  if constexpr (std::is_same_v<T, bfloat16>) {
    const __m256i u = _mm256_castps_si256(x);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
    const __m256i half_ulp = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
    bits = _mm256_srli_epi32(_mm256_add_epi32(u, half_ulp), 16);
  } else {
    bits = _mm256_cvtepu16_epi32(_mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
  }
  return _mm256_blendv_epi8(bits, _mm256_set1_epi32(0x7fff), _mm256_castps_si256(nan));
}
template <class T>
ATTN_FORCE_INLINE void pack2_row(std::uint32_t* packed, const float* lo, const float* hi) {
  const __m256i low = narrow8<T>(_mm256_loadu_ps(lo)), high = narrow8<T>(_mm256_loadu_ps(hi));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(packed),
                      _mm256_or_si256(low, _mm256_slli_epi32(high, 16)));
}

ATTN_FORCE_INLINE void exp2_row(float* result, const float* argument) {
  const __m256 x = _mm256_loadu_ps(argument);
  // min and max give their second operand for a NaN, which the last blend replaces
  const __m256 y = _mm256_max_ps(_mm256_min_ps(x, _mm256_set1_ps(128.0f)), _mm256_set1_ps(-127.0f));
  const __m256 round = _mm256_set1_ps(kRoundToInteger);
  const __m256 shifted = _mm256_add_ps(y, round);
  const __m256 f = _mm256_sub_ps(y, _mm256_sub_ps(shifted, round));
  __m256 p = _mm256_set1_ps(kExp2[5]);
  for (int k = 4; k >= 0; --k) p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(kExp2[k]));
  p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(1.0f));
  const __m256i n = _mm256_sub_epi32(_mm256_castps_si256(shifted), _mm256_castps_si256(round));
  __m256 r =
      _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), _mm256_slli_epi32(n, 23)));
  r = _mm256_andnot_ps(_mm256_cmp_ps(x, _mm256_set1_ps(-126.0f), _CMP_LT_OQ), r);
  r = _mm256_blendv_ps(r, _mm256_set1_ps(infinity),
                       _mm256_cmp_ps(x, _mm256_set1_ps(128.0f), _CMP_GE_OQ));
  r = _mm256_blendv_ps(r, x, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  _mm256_storeu_ps(result, r);
}

// The low and the high values of eight pairs, as fp32.
template <class T>
ATTN_FORCE_INLINE void widen_pairs(__m256i packed, __m256& lo, __m256& hi) {
  if constexpr (std::is_same_v<T, bfloat16>) {
    lo = _mm256_castsi256_ps(_mm256_slli_epi32(packed, 16));
    hi = _mm256_castsi256_ps(_mm256_and_si256(packed, _mm256_set1_epi32(-65536)));
  } else {
    const __m256i low = _mm256_and_si256(packed, _mm256_set1_epi32(0xffff));
    const __m256i grouped = _mm256_packus_epi32(low, _mm256_srli_epi32(packed, 16));
    const __m256 first = _mm256_cvtph_ps(_mm256_castsi256_si128(grouped));
    const __m256 second = _mm256_cvtph_ps(_mm256_extracti128_si256(grouped, 1));
    lo = _mm256_permute2f128_ps(first, second, 0x20);
    hi = _mm256_permute2f128_ps(first, second, 0x31);
  }
}

/// B as eight columns wide rows: row k as {B[k][0], B[k][2], B[k][4], B[k][6]} twice, then the odd
/// columns twice, as the lanes of two neighbouring rows of D hold them.
struct SplitRow {
  __m256 even, odd;
};
// From even columns | odd columns of a row.
ATTN_FORCE_INLINE SplitRow split(__m256 row) {
  return {_mm256_permute2f128_ps(row, row, 0x00), _mm256_permute2f128_ps(row, row, 0x11)};
}
// Vector m of b holds columns 2m | 2m+1, and in each the words of t = 0..3: a 4x4 transposition
// gives for each t the words of columns 0, 2, 4, 6 | 1, 3, 5, 7.
ATTN_FORCE_INLINE void words_by_t(__m256 (&words)[4], const std::uint32_t* b) {
  const auto load = [b](int m) {
    return _mm256_loadu_ps(reinterpret_cast<const float*>(b + 8 * m));
  };
  const __m256 v0 = load(0), v1 = load(1), v2 = load(2), v3 = load(3);
  const __m256 a = _mm256_unpacklo_ps(v0, v1), c = _mm256_unpackhi_ps(v0, v1);
  const __m256 e = _mm256_unpacklo_ps(v2, v3), g = _mm256_unpackhi_ps(v2, v3);
  words[0] = _mm256_shuffle_ps(a, e, 0x44);
  words[1] = _mm256_shuffle_ps(a, e, 0xee);
  words[2] = _mm256_shuffle_ps(c, g, 0x44);
  words[3] = _mm256_shuffle_ps(c, g, 0xee);
}
template <class T>
ATTN_FORCE_INLINE void split_rows(SplitRow* rows, const std::uint32_t* b) {
  __m256 pairs[4];
  words_by_t(pairs, b);
  for (int t = 0; t < 4; ++t) {
    __m256 lo, hi;
    widen_pairs<T>(_mm256_castps_si256(pairs[t]), lo, hi);
    rows[2 * t] = split(lo);
    rows[2 * t + 1] = split(hi);
  }
}

// Eight steps of k for 2 x 4 rows of D: `part` of the pairs of A gives two rows of eight values.
template <class T>
ATTN_FORCE_INLINE void add_products(__m256 (&even)[4], __m256 (&odd)[4], const std::uint32_t* part,
                                    const SplitRow* rows) {
  __m256 lo[4], hi[4];
  for (int j = 0; j < 4; ++j)
    widen_pairs<T>(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(part + 8 * j)), lo[j],
                   hi[j]);
#define ATTN_STEP(a, t, row)                               \
  for (int j = 0; j < 4; ++j) {                            \
    const __m256 x = _mm256_permute_ps(a[j], 0x55 * t);    \
    even[j] = _mm256_fmadd_ps(x, rows[row].even, even[j]); \
    odd[j] = _mm256_fmadd_ps(x, rows[row].odd, odd[j]);    \
  }
  ATTN_STEP(lo, 0, 0)
  ATTN_STEP(hi, 0, 1)
  ATTN_STEP(lo, 1, 2)
  ATTN_STEP(hi, 1, 3)
  ATTN_STEP(lo, 2, 4)
  ATTN_STEP(hi, 2, 5)
  ATTN_STEP(lo, 3, 6)
  ATTN_STEP(hi, 3, 7)
#undef ATTN_STEP
}

/// As portable::mma_m16n8k16, in the order of the fragments: a vector of eight lanes holds the even
/// (or odd) columns of two rows of D, so D is never rearranged.
template <class T>
inline void mma_m16n8k16(float* const* d, const std::uint32_t* const* a,
                         const std::uint32_t* const* b) {
  SplitRow rows[16];
  split_rows<T>(rows, b[0]);
  split_rows<T>(rows + 8, b[1]);
  for (int upper = 0; upper < 2; ++upper) {  // rows 0..7 of D, then 8..15
    __m256 even[4], odd[4];
    for (int j = 0; j < 4; ++j) {
      even[j] = _mm256_loadu_ps(d[2 * upper] + 8 * j);
      odd[j] = _mm256_loadu_ps(d[2 * upper + 1] + 8 * j);
    }
    add_products<T>(even, odd, a[upper], rows);
    add_products<T>(even, odd, a[upper + 2], rows + 8);
    for (int j = 0; j < 4; ++j) {
      _mm256_storeu_ps(d[2 * upper] + 8 * j, even[j]);
      _mm256_storeu_ps(d[2 * upper + 1] + 8 * j, odd[j]);
    }
  }
}

// The value of eight TF32 operands: the low 13 bits are cleared.
ATTN_FORCE_INLINE __m256 from_tf32_8(__m256 words) {
  return _mm256_and_ps(words, _mm256_castsi256_ps(_mm256_set1_epi32(~0x1fff)));
}
/// As portable::mma_m16n8k8_tf32, in the order of the fragments.
inline void mma_m16n8k8_tf32(float* const* d, const std::uint32_t* const* a,
                             const std::uint32_t* const* b) {
  SplitRow rows[8];
  for (int i = 0; i < 2; ++i) {
    __m256 words[4];
    words_by_t(words, b[i]);
    for (int t = 0; t < 4; ++t) rows[4 * i + t] = split(from_tf32_8(words[t]));
  }
  for (int upper = 0; upper < 2; ++upper)  // rows 0..7 of D, then 8..15
    for (int j = 0; j < 4; ++j) {          // two rows of D
      __m256 even = _mm256_loadu_ps(d[2 * upper] + 8 * j);
      __m256 odd = _mm256_loadu_ps(d[2 * upper + 1] + 8 * j);
      for (int i = 0; i < 2; ++i) {
        const float* part = reinterpret_cast<const float*>(a[upper + 2 * i] + 8 * j);
        const __m256 left = from_tf32_8(_mm256_loadu_ps(part));  // k = 4 i + t of the two rows
#define ATTN_STEP(t)                                       \
  {                                                        \
    const __m256 x = _mm256_permute_ps(left, 0x55 * t);    \
    even = _mm256_fmadd_ps(x, rows[4 * i + t].even, even); \
    odd = _mm256_fmadd_ps(x, rows[4 * i + t].odd, odd);    \
  }
        ATTN_STEP(0)
        ATTN_STEP(1)
        ATTN_STEP(2)
        ATTN_STEP(3)
#undef ATTN_STEP
      }
      _mm256_storeu_ps(d[2 * upper] + 8 * j, even);
      _mm256_storeu_ps(d[2 * upper + 1] + 8 * j, odd);
    }
}

}  // namespace avx2
}  // namespace ATTN_CPU_ISA
}  // namespace attn::simt::cpu::math
