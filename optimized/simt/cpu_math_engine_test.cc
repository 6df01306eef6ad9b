// The vector arithmetic gives the bits of the portable one.
#include "optimized/simt/cpu_math.h"

#include <gtest/gtest.h>

#include <random>

namespace attn::simt::cpu::math {
namespace {

#if defined(ATTN_CPU_AVX2)

// A sample of all fp32 patterns that walks through every exponent, and every pattern near 0 and
// 128.
template <class F>
void for_rows_of_floats(F&& f) {
  float row[8];
  const auto patterns = [&](std::uint64_t first, std::uint64_t last, std::uint64_t step) {
    for (std::uint64_t u = first; u < last; u += 8 * step) {
      for (std::uint64_t i = 0; i < 8; ++i)
        row[i] = std::bit_cast<float>(static_cast<std::uint32_t>(u + i * step));
      f(row);
    }
  };
  patterns(0, std::uint64_t{1} << 32, 9973);
  for (const float x : {128.0f, -126.0f, 65520.0f, 0x1p-14f, 0x1p-25f, infinity}) {
    const auto centre = std::bit_cast<std::uint32_t>(x);
    patterns(centre - 4096u, centre + 4096u, 1);
  }
}

TEST(CpuMath, Exp2) {
  for_rows_of_floats([](const float* x) {
    float fast[8], plain[8];
    avx2::exp2_row(fast, x);
    portable::exp2_row(plain, x);
    for (int i = 0; i < 8; ++i)
      ASSERT_EQ(std::bit_cast<std::uint32_t>(fast[i]), std::bit_cast<std::uint32_t>(plain[i]))
          << x[i];
  });
}

template <class T>
void check_pack2() {
  for_rows_of_floats([](const float* lo) {
    float hi[8];
    for (int i = 0; i < 8; ++i) hi[i] = -lo[7 - i];
    std::uint32_t fast[8], plain[8];
    avx2::pack2_row<T>(fast, lo, hi);
    portable::pack2_row<T>(plain, lo, hi);
    for (int i = 0; i < 8; ++i) ASSERT_EQ(fast[i], plain[i]) << lo[i] << " " << hi[i];
  });
}
TEST(CpuMath, Pack2) {
  check_pack2<half>();
  check_pack2<bfloat16>();
}

/// The same bits from both products, on registers of random bits: `one` with sign and fraction at
/// random, and in one round of four any bits at all.
template <class Fast, class Plain>
void check_mma(std::uint32_t seed, std::uint32_t one, std::uint32_t at_random, Fast fast_product,
               Plain plain_product) {
  std::mt19937 random(seed);
  for (int round = 0; round < 2000; ++round) {
    std::uint32_t a[4][32], b[2][32];
    float fast[4][32], plain[4][32];
    const auto bits = [&] {
      const auto u = static_cast<std::uint32_t>(random());
      return round % 4 == 0 ? u : one | (u & at_random);
    };
    for (auto& r : a)
      for (auto& x : r) x = bits();
    for (auto& r : b)
      for (auto& x : r) x = bits();
    for (int i = 0; i < 4; ++i)
      for (int l = 0; l < 32; ++l)
        fast[i][l] = plain[i][l] = static_cast<float>(random() % 1000) * 0.01f - 5.0f;
    const std::uint32_t* ap[4] = {a[0], a[1], a[2], a[3]};
    const std::uint32_t* bp[2] = {b[0], b[1]};
    float* fp[4] = {fast[0], fast[1], fast[2], fast[3]};
    float* pp[4] = {plain[0], plain[1], plain[2], plain[3]};
    fast_product(fp, ap, bp);
    plain_product(pp, ap, bp);
    for (int i = 0; i < 4; ++i)
      for (int l = 0; l < 32; ++l) {
        const float f = fast[i][l], p = plain[i][l];
        ASSERT_TRUE((f != f && p != p) ||
                    std::bit_cast<std::uint32_t>(f) == std::bit_cast<std::uint32_t>(p))
            << "d[" << i << "] of lane " << l << ": " << f << " and " << p;
      }
  }
}
TEST(CpuMath, MmaOfHalf) {
  check_mma(5, 0x3c003c00u, 0x807f807fu, avx2::mma_m16n8k16<half>, portable::mma_m16n8k16<half>);
}
TEST(CpuMath, MmaOfBfloat16) {
  check_mma(5, 0x3f803f80u, 0x807f807fu, avx2::mma_m16n8k16<bfloat16>,
            portable::mma_m16n8k16<bfloat16>);
}
TEST(CpuMath, MmaOfTf32) {
  check_mma(7, 0x3f800000u, 0x807fffffu, avx2::mma_m16n8k8_tf32, portable::mma_m16n8k8_tf32);
}

#else

TEST(CpuMath, VectorArithmetic) {
  GTEST_SKIP() << "compiled without AVX2, FMA and F16C: only the portable arithmetic exists here";
}

#endif

}  // namespace
}  // namespace attn::simt::cpu::math
