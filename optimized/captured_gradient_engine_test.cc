// The fixed point in which gradients of captured tensors are summed: the sum cannot overflow, and
// the quantum is as fine as that allows.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "optimized/captured_gradient.h"
#include "optimized/simt/memory.h"

namespace attn {
inline namespace ATTN_TARGET {
namespace captured_gradient_test {

std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }

const float magnitudes[] = {std::numeric_limits<float>::denorm_min(),
                            std::numeric_limits<float>::min(),
                            0x1.fffffep-10f,
                            0x1p-10f,
                            0.75f,
                            1,
                            1.5f,
                            0x1.000002p20f,
                            std::numeric_limits<float>::max()};
const std::uint32_t counts[] = {1,    2,    3,          4,           5,           1023,
                                1024, 1025, 0x7fffffff, 0x80000000u, 0x80000001u, 0xffffffffu};

TEST(FixedPoint, SumsCannotOverflow) {
  for (const float max : magnitudes)
    for (const std::uint32_t count : counts) {
      const int shift = fixed_point_shift(bits(max), count);
      // Every contribution as large as the largest, rounded up to a whole quantum.
      const long double largest = std::ceil(std::ldexp(static_cast<long double>(max), shift));
      EXPECT_LE(largest * count, std::ldexp(1.0L, 62)) << max << " " << count;
    }
}

/// The quantum is at most 2^(ceil(log2 max) + ceil(log2 count) - 61).
TEST(FixedPoint, TheQuantumIsFine) {
  for (const float max : magnitudes)
    for (const std::uint32_t count : counts) {
      int log2_max = std::ilogb(max), log2_count = 0;
      if (std::ldexp(1.0, log2_max) < max) ++log2_max;
      while (std::ldexp(1.0, log2_count) < count) ++log2_count;
      EXPECT_GE(fixed_point_shift(bits(max), count), 61 - log2_max - log2_count)
          << max << " " << count;
    }
}

TEST(FixedPoint, ASingleContributionIsExact) {
  for (const float max : magnitudes) {
    const int shift = fixed_point_shift(bits(max), 1);
    const double scaled = std::ldexp(static_cast<double>(max), shift);
    EXPECT_EQ(scaled, std::rint(scaled));
    EXPECT_EQ(std::ldexp(scaled, -shift), static_cast<double>(max));
  }
}

// ---- the passes on one entry, without a mod
// ------------------------------------------------------

struct AddArgs {
  CapturedSums sums;
  const float* x = nullptr;  // [32 * blocks]
  std::int64_t entry = 0;
  bool second_pass = false;
};

ATTN_KERNEL add_numbers(const ATTN_GRID_CONSTANT AddArgs args) {
  DualKernelEnv env{};
  env.entry = simt::lane<std::int64_t>(args.entry);
  const simt::lane<std::int64_t> i =
      simt::lane<std::int64_t>(simt::thread_id()) + std::int64_t{32} * simt::block_x();
  add_captured(args.sums, env, simt::ldg(args.x, i), args.second_pass);
}

/// The sum of numbers, 32 to a block, as both passes give it; an entry beside it stays 0.
float sum_of(const std::vector<float>& x, std::uint64_t schedule_seed = 0) {
  const simt::DeviceBuffer<float> numbers(x, simt::Access::input);
  simt::DeviceBuffer<CapturedEntry> entries(std::vector<CapturedEntry>(3));
  simt::DeviceBuffer<float> result(3);
  CapturedSums sums;
  sums.count = 1;
  sums.entries = entries.data();
  simt::LaunchOptions options;
  options.schedule_seed = schedule_seed;
  for (const bool second : {false, true})
    simt::launch({static_cast<int>(x.size() / 32), 1, 1}, 32, 0, options, add_numbers,
                 AddArgs{sums, numbers.data(), 1, second});
  simt::launch({1, 1, 1}, 32, 0, options, captured_result_kernel,
               CapturedResultArgs{entries.data(), result.data(), 3});
  EXPECT_EQ(result[0], 0);
  EXPECT_EQ(result[2], 0);
  return result[1];
}

TEST(CapturedSums, AreExactWhereTheQuantumIsFine) {
  std::vector<float> x(96, 0.0f);
  EXPECT_EQ(sum_of(x), 0);
  x[40] = 0x1.fffffep-100f;
  EXPECT_EQ(sum_of(x), x[40]);
  for (int i = 0; i < 96; ++i) x[static_cast<std::size_t>(i)] = static_cast<float>(i - 40) / 8;
  EXPECT_EQ(sum_of(x), (95 * 48 - 40 * 96) / 8.0f);
  x.assign(64, 1.0f);  // cancellation that fp32 would not survive
  x[3] = 0x1p30f, x[50] = -0x1p30f;
  EXPECT_EQ(sum_of(x), 62);
}

TEST(CapturedSums, HaveTheSameBitsInEveryOrder) {
  std::vector<float> x(320);
  std::uint32_t seed = 1;
  for (float& entry : x) {
    seed = seed * 1664525u + 1013904223u;
    entry = std::ldexp(static_cast<float>(seed >> 8) - 0x1p23f, static_cast<int>(seed % 40) - 40);
  }
  const float first = sum_of(x);
  for (const std::uint64_t order : {1, 2, 3}) EXPECT_EQ(bits(sum_of(x, order)), bits(first));
}

TEST(CapturedSums, AContributionThatIsNotFiniteMakesTheEntryNaN) {
  for (const float bad :
       {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
        std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> x(64, 1.0f);
    x[45] = bad;
    EXPECT_TRUE(std::isnan(sum_of(x))) << bad;
  }
}

}  // namespace captured_gradient_test
}  // namespace ATTN_TARGET
}  // namespace attn
