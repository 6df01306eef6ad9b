// Each primitive of the layer against the tables of the PTX ISA, written out here as formulas.
#include "optimized/simt/conformance.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "optimized/simt/memory.h"

namespace attn {
namespace {

using simt::Access;
using simt::DeviceBuffer;
using simt::Grid;
using simt::LaunchOptions;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kMin = std::numeric_limits<float>::denorm_min();

// Same value, or both NaN; the sign of a zero counts.
template <class T>
bool same(T a, T b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

template <class T, class F>
DeviceBuffer<T> input(std::size_t n, F&& value) {
  DeviceBuffer<T> b(n, Access::input);
  for (std::size_t i = 0; i < n; ++i) b[i] = static_cast<T>(value(static_cast<int>(i)));
  return b;
}
template <class T>
DeviceBuffer<T> input(const std::vector<T>& values) {
  return DeviceBuffer<T>(values, Access::input);
}

TEST(Conformance, ThreadsKnowWhereTheyAre) {
  const Grid grid{2, 3, 2};
  DeviceBuffer<int> out(12 * 64 * 10);
  simt::launch(grid, 64, 0, {}, conformance::identity, out.data());
  for (int z = 0, i = 0; z < 2; ++z)
    for (int y = 0; y < 3; ++y)
      for (int x = 0; x < 2; ++x)
        for (int t = 0; t < 64; ++t, ++i) {
          const int expected[10] = {x, y, z, 2, 3, 2, 64, t / 32, t, t % 32};
          for (int k = 0; k < 10; ++k) ASSERT_EQ(out[i * 10 + k], expected[k]) << i << " " << k;
        }
}

template <class T>
void check_shuffles() {
  const auto in = input<T>(32, [](int i) { return 3 * i + 1; });
  const auto source = input<int>(32, [](int i) { return 7 * i + 40; });  // taken modulo 32
  DeviceBuffer<T> out(96);
  for (int m = 0; m < 32; m += 5) {
    simt::launch({}, 32, 0, {}, conformance::shuffles<T>, in.data(), source.data(), m, m,
                 out.data());
    for (int l = 0; l < 32; ++l) {
      EXPECT_EQ(out[l], in[(7 * l + 40) % 32]);
      EXPECT_EQ(out[32 + l], in[l ^ m]);
      EXPECT_EQ(out[64 + l], in[l + m < 32 ? l + m : l]);
    }
  }
}
TEST(Conformance, ShufflesOfFourBytes) { check_shuffles<std::uint32_t>(); }
TEST(Conformance, ShufflesOfFloats) { check_shuffles<float>(); }
TEST(Conformance, ShufflesOfEightBytes) { check_shuffles<double>(); }

TEST(Conformance, Votes) {
  for (const std::uint32_t mask : {0u, ~0u, 1u, 1u << 31, 0x12345678u}) {
    const auto in = input<int>(32, [&](int i) { return mask >> i & 1u ? i + 1 : 0; });
    DeviceBuffer<std::uint32_t> out(4);
    simt::launch({}, 32, 0, {}, conformance::votes, in.data(), out.data());
    EXPECT_EQ(out[0], mask != 0 ? 1u : 0u);
    EXPECT_EQ(out[1], mask == ~0u ? 1u : 0u);
    EXPECT_EQ(out[2], mask);
    EXPECT_EQ(out[3], mask & 1u);
  }
}

std::vector<float> special_values() {
  std::vector<float> v = {
      0.0f,      -0.0f,     1.0f,       -1.0f,     infinity,        -infinity, kNan,       kMin,
      -kMin,     0x1p-126f, -0x1p-126f, 0x1p-127f, 0x1.fffffep127f, -126.0f,   -127.0f,    -149.0f,
      -150.0f,   127.0f,    128.0f,     0.5f,      -0.5f,           127.5f,    128.5f,     1e-6f,
      65504.0f,  65519.0f,  65520.0f,   0x1p-14f,  0x1p-24f,        0x1p-25f,  0x1.8p-25f, 3.0f,
      0x1.01p0f, 0x1.03p0f};
  v.push_back(std::nextafter(-126.0f, -infinity));
  v.push_back(std::nextafter(128.0f, 0.0f));
  std::mt19937 random(1);
  for (int i = 0; i < 4000; ++i)
    v.push_back(static_cast<float>(static_cast<int>(random())) * 0x1p-24f);
  for (int i = 0; i < 4000; ++i)
    v.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
  return v;
}

TEST(Conformance, Arithmetic) {
  const auto a = special_values();
  const int n = static_cast<int>(a.size());
  std::vector<float> b = a, c = a;
  std::shuffle(b.begin(), b.end(), std::mt19937(2));
  std::shuffle(c.begin(), c.end(), std::mt19937(3));
  b[0] = -0.0f;  // max(+0, -0), max(-0, +0)
  b[1] = 0.0f;
  b[6] = 1.0f;  // max(NaN, 1), max(1, NaN)
  b[2] = kNan;
  const auto x = input(a), y = input(b), z = input(c);
  DeviceBuffer<float> out(6 * a.size());
  simt::launch({(n + 127) / 128}, 128, 0, {}, conformance::arithmetic, x.data(), y.data(), z.data(),
               out.data(), n);
  for (int i = 0; i < n; ++i) {
    const auto result = [&](int k) { return out[static_cast<std::size_t>(k * n + i)]; };
    // vexp2: subnormal results are 0
    const double e = std::exp2(static_cast<double>(a[i]));
    if (std::isnan(a[i])) {
      EXPECT_TRUE(std::isnan(result(0)));
    } else if (a[i] < -126.0f) {
      EXPECT_EQ(result(0), 0.0f) << a[i];
    } else if (a[i] >= 128.0f) {
      EXPECT_EQ(result(0), infinity) << a[i];
    } else {
      EXPECT_LE(std::fabs(result(0) - e), e * simt::kExp2RelativeError) << a[i];
      if (std::nearbyint(a[i]) == a[i]) {
        EXPECT_EQ(result(0), std::ldexp(1.0f, static_cast<int>(a[i])));
      }
    }
    // vlog2: within one unit in the last place
    const double l = std::log2(static_cast<double>(a[i]));
    const float nearest_log = static_cast<float>(l);
    if (std::isfinite(l)) {
      EXPECT_LE(std::fabs(result(1) - l), std::nextafter(nearest_log, infinity) - nearest_log)
          << a[i];
    } else {
      EXPECT_TRUE(same(result(1), nearest_log)) << a[i];
    }
    EXPECT_TRUE(same(result(2), static_cast<float>(1.0 / static_cast<double>(a[i])))) << a[i];
    const float larger = std::isnan(a[i]) ? b[i] : std::isnan(b[i]) ? a[i] : std::max(a[i], b[i]);
    if (a[i] == 0.0f && b[i] == 0.0f) {
      EXPECT_EQ(std::signbit(result(3)), std::signbit(a[i]) && std::signbit(b[i]));
    } else {
      EXPECT_TRUE(same(result(3), larger)) << a[i] << " " << b[i];
    }
    EXPECT_TRUE(same(result(4), std::fma(a[i], b[i], c[i])));
    EXPECT_TRUE(same(result(5), a[i] < b[i] ? a[i] : b[i]));
  }
}

// The nearest T by search among its neighbours, ties to the even significand.
template <class T>
std::uint16_t nearest(float x) {
  if (std::isnan(x)) return 0x7fff;
  const std::uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  const std::uint16_t inf = std::is_same_v<T, half> ? 0x7c00 : 0x7f80;
  // the value that the pattern after the largest finite one would have
  const double past = std::is_same_v<T, half> ? 65536.0 : 0x1p128;
  const auto value = [&](std::uint16_t bits) {
    return bits == inf ? past : static_cast<double>(to_float(T{bits}));
  };
  const double magnitude = std::fabs(static_cast<double>(x));
  if (magnitude >= past) return static_cast<std::uint16_t>(sign | inf);
  std::uint16_t low = 0, high = inf;
  while (high - low > 1) {
    const auto middle = static_cast<std::uint16_t>((low + high) / 2);
    (value(middle) <= magnitude ? low : high) = middle;
  }
  const double below = magnitude - value(low), above = value(high) - magnitude;
  const bool up = above < below || (above == below && low % 2 == 1);
  return static_cast<std::uint16_t>(sign | (up ? high : low));
}

template <class T>
void check_conversions() {
  const auto lo = special_values();
  std::vector<float> hi(lo.rbegin(), lo.rend());
  const int n = static_cast<int>(lo.size());
  const auto low = input(lo), high = input(hi);
  DeviceBuffer<std::uint32_t> packed(lo.size());
  DeviceBuffer<float> low_back(lo.size()), high_back(lo.size());
  simt::launch({(n + 63) / 64}, 64, 0, {}, conformance::conversions<T>, low.data(), high.data(),
               packed.data(), low_back.data(), high_back.data(), n);
  for (int i = 0; i < n; ++i) {
    const std::uint16_t l = nearest<T>(lo[i]), h = nearest<T>(hi[i]);
    ASSERT_EQ(packed[i], l | static_cast<std::uint32_t>(h) << 16) << lo[i] << " " << hi[i];
    EXPECT_TRUE(same(low_back[i], to_float(T{l})));
    EXPECT_TRUE(same(high_back[i], to_float(T{h})));
  }
}
TEST(Conformance, ConversionsOfHalf) { check_conversions<half>(); }
TEST(Conformance, ConversionsOfBfloat16) { check_conversions<bfloat16>(); }

// The nearest number of 11 significant bits, ties away from zero, from the two that enclose it.
std::uint32_t nearest_tf32(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t low = bits & 0xffffe000u, high = low + 0x2000u;
  const auto value = [](std::uint32_t b) {  // infinity stands where the next number would
    return (b & 0x7fffffffu) == 0x7f800000u
               ? 0x1p128
               : std::fabs(static_cast<double>(std::bit_cast<float>(b)));
  };
  const double magnitude = std::fabs(static_cast<double>(x));
  if (std::isinf(x)) return bits;
  return value(high) - magnitude <= magnitude - value(low) ? high : low;
}
TEST(Conformance, ConversionsToTf32) {
  auto values = special_values();
  for (const float x : {0x1.002p0f, 0x1.001fp0f, -0x1.002p0f, 0x1.ffefp127f, 0x1.fff001p3f})
    values.push_back(x);
  const int n = static_cast<int>(values.size());
  const auto in = input(values);
  DeviceBuffer<std::uint32_t> out(values.size());
  simt::launch({(n + 63) / 64}, 64, 0, {}, conformance::tf32_conversion, in.data(), out.data(), n);
  for (int i = 0; i < n; ++i) {
    if (std::isnan(values[i]))
      EXPECT_TRUE(std::isnan(std::bit_cast<float>(out[i])));
    else
      ASSERT_EQ(out[i], nearest_tf32(values[i])) << values[i];
    EXPECT_EQ(out[i] & 0x1fffu, 0u) << values[i];
  }
}

template <class T>
bool same_bytes(const T& a, const T& b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}
template <class T>
T numbered(int i) {
  T value;
  auto* bytes = reinterpret_cast<unsigned char*>(&value);
  for (std::size_t b = 0; b < sizeof(T); ++b)
    bytes[b] = static_cast<unsigned char>(37 * i + 11 * b + 1);
  return value;
}

template <class T>
void check_shared_memory() {
  DeviceBuffer<T> in(64, Access::input), out(64);
  for (int i = 0; i < 64; ++i) in[i] = numbered<T>(i);
  for (const int limit : {0, 1, 33, 64}) {
    simt::launch({}, 64, 64 * sizeof(T), {}, conformance::shared_memory<T>,
                 static_cast<const T*>(in.data()), out.data(), limit);
    for (int t = 0; t < 64; ++t) EXPECT_TRUE(same_bytes(out[t], t < limit ? in[63 - t] : T{}));
  }
}
TEST(Conformance, SharedMemory) {
  check_shared_memory<std::uint16_t>();
  check_shared_memory<half>();
  check_shared_memory<float>();
  check_shared_memory<double>();
  check_shared_memory<simt::Vec16>();
}

TEST(Conformance, PredicatedSharedStore) {
  const auto in = input<std::uint32_t>(32, [](int i) { return i + 100; });
  DeviceBuffer<std::uint32_t> out(32);
  simt::launch({}, 32, 128, {}, conformance::predicated_store, in.data(), out.data());
  for (int l = 0; l < 32; ++l) EXPECT_EQ(out[l], l % 2 == 1 ? in[l] : 0u);
}

// PTX ISA, "ldmatrix": row r of matrix i comes from the address of lane 8i + r.
TEST(Conformance, Ldmatrix) {
  const auto rows = input<std::uint16_t>(64 * 8, [](int i) { return i + 1; });
  const auto address = input<int>(32, [](int l) { return (l * 29 + 5) % 64; });
  DeviceBuffer<std::uint32_t> plain(128), transposed(128);
  simt::launch({}, 32, 1024, {}, conformance::ldmatrix<false>, rows.data(), address.data(),
               plain.data());
  simt::launch({}, 32, 1024, {}, conformance::ldmatrix<true>, rows.data(), address.data(),
               transposed.data());
  const auto at = [&](int matrix, int row, int column) {
    return static_cast<std::uint32_t>(rows[address[8 * matrix + row] * 8 + column]);
  };
  for (int i = 0; i < 4; ++i)
    for (int l = 0; l < 32; ++l) {
      const int row = l / 4, column = l % 4 * 2;
      EXPECT_EQ(plain[32 * i + l], at(i, row, column) | at(i, row, column + 1) << 16);
      EXPECT_EQ(transposed[32 * i + l], at(i, column, row) | at(i, column + 1, row) << 16);
    }
}

// PTX ISA, "Matrix Fragments for mma.m16n8k16": where lane l keeps element i of A, B and D.
struct Position {
  int row, column;
};
Position a_position(int l, int i) {
  return {l / 4 + (i < 2 || (i >= 4 && i < 6) ? 0 : 8), l % 4 * 2 + (i & 1) + (i >= 4 ? 8 : 0)};
}
Position b_position(int l, int i) { return {l % 4 * 2 + (i & 1) + (i >= 2 ? 8 : 0), l / 4}; }
Position d_position(int l, int i) { return {l / 4 + (i < 2 ? 0 : 8), l % 4 * 2 + (i & 1)}; }

template <class T>
struct MmaCase {
  float a[16][16] = {}, b[16][8] = {}, d[16][8] = {};

  // D as the kernel gives it.
  std::vector<std::vector<float>> run() const {
    DeviceBuffer<std::uint32_t> left(128, Access::input), right(64, Access::input);
    DeviceBuffer<float> sum(128, Access::in_out);
    const auto pair = [](float lo, float hi) {
      return from_float<T>(lo).bits | static_cast<std::uint32_t>(from_float<T>(hi).bits) << 16;
    };
    for (int l = 0; l < 32; ++l) {
      for (int r = 0; r < 4; ++r) {
        const Position lo = a_position(l, 2 * r), hi = a_position(l, 2 * r + 1);
        left[32 * r + l] = pair(a[lo.row][lo.column], a[hi.row][hi.column]);
        const Position p = d_position(l, r);
        sum[32 * r + l] = d[p.row][p.column];
      }
      for (int r = 0; r < 2; ++r) {
        const Position lo = b_position(l, 2 * r), hi = b_position(l, 2 * r + 1);
        right[32 * r + l] = pair(b[lo.row][lo.column], b[hi.row][hi.column]);
      }
    }
    simt::launch({}, 32, 0, {}, conformance::mma<T>, static_cast<const std::uint32_t*>(left.data()),
                 static_cast<const std::uint32_t*>(right.data()), sum.data());
    std::vector<std::vector<float>> result(16, std::vector<float>(8));
    for (int l = 0; l < 32; ++l)
      for (int r = 0; r < 4; ++r) {
        const Position p = d_position(l, r);
        result[p.row][p.column] = sum[32 * r + l];
      }
    return result;
  }
  // The exact sums; a double holds them for the small values used here.
  std::vector<std::vector<double>> exact() const {
    std::vector<std::vector<double>> result(16, std::vector<double>(8));
    for (int i = 0; i < 16; ++i)
      for (int j = 0; j < 8; ++j) {
        result[i][j] = d[i][j];
        for (int k = 0; k < 16; ++k) result[i][j] += static_cast<double>(a[i][k]) * b[k][j];
      }
    return result;
  }
  void expect_exact() const {
    const auto got = run();
    const auto expected = exact();
    for (int i = 0; i < 16; ++i)
      for (int j = 0; j < 8; ++j)
        EXPECT_TRUE(same(got[i][j], static_cast<float>(expected[i][j])))
            << i << " " << j << ": " << got[i][j] << ", expected " << expected[i][j];
  }
};

template <class T>
void check_mma() {
  MmaCase<T> small;  // integers: every sum is exact in fp32, in any order
  std::mt19937 random(4);
  const auto integer = [&] { return static_cast<float>(static_cast<int>(random() % 33) - 16); };
  for (auto& row : small.a)
    for (float& x : row) x = integer();
  for (auto& row : small.b)
    for (float& x : row) x = integer();
  for (auto& row : small.d)
    for (float& x : row) x = integer();
  small.expect_exact();

  MmaCase<T> tiny;  // the smallest subnormal of T against powers of two
  for (int i = 0; i < 16; ++i) tiny.a[i][i] = to_float(T{1});
  for (int k = 0; k < 16; ++k)
    for (int j = 0; j < 8; ++j) tiny.b[k][j] = std::ldexp(1.0f, j);
  tiny.expect_exact();

  MmaCase<T> special = small;  // NaN and infinity reach the rows and columns they stand in, only
  special.a[3][5] = kNan;
  special.a[4][6] = infinity;
  special.b[6][1] = 0.0f;  // infinity * 0
  special.b[6][0] = 2.0f;
  special.d[9][2] = -infinity;
  special.expect_exact();
}
TEST(Conformance, MmaOfHalf) { check_mma<half>(); }
TEST(Conformance, MmaOfBfloat16) { check_mma<bfloat16>(); }

// PTX ISA, "Matrix Fragments for mma.m16n8k8" for .tf32; D as above.
struct Tf32Case {
  float a[16][8] = {}, b[8][8] = {}, d[16][8] = {};

  // `low_bits` are set in every word of A and B: no product may depend on them.
  void expect_exact(std::uint32_t low_bits) const {
    DeviceBuffer<std::uint32_t> left(128, Access::input), right(64, Access::input);
    DeviceBuffer<float> sum(128, Access::in_out);
    for (int l = 0; l < 32; ++l) {
      const int g = l / 4, t = l % 4;
      const float lane_a[4] = {a[g][t], a[g + 8][t], a[g][t + 4], a[g + 8][t + 4]};
      for (int r = 0; r < 4; ++r) {
        left[32 * r + l] = std::bit_cast<std::uint32_t>(lane_a[r]) | low_bits;
        sum[32 * r + l] = d[d_position(l, r).row][d_position(l, r).column];
      }
      right[l] = std::bit_cast<std::uint32_t>(b[t][g]) | low_bits;
      right[32 + l] = std::bit_cast<std::uint32_t>(b[t + 4][g]) | low_bits;
    }
    simt::launch({}, 32, 0, {}, conformance::mma_tf32,
                 static_cast<const std::uint32_t*>(left.data()),
                 static_cast<const std::uint32_t*>(right.data()), sum.data());
    for (int l = 0; l < 32; ++l)
      for (int r = 0; r < 4; ++r) {
        const Position p = d_position(l, r);
        double exact = d[p.row][p.column];
        for (int k = 0; k < 8; ++k) exact += static_cast<double>(a[p.row][k]) * b[k][p.column];
        EXPECT_TRUE(same(sum[32 * r + l], static_cast<float>(exact)))
            << p.row << " " << p.column << ": " << sum[32 * r + l] << ", expected " << exact;
      }
  }
};

TEST(Conformance, MmaOfTf32) {
  Tf32Case small;  // whole numbers of at most 11 bits, sums of at most 24: exact in any order
  std::mt19937 random(6);
  const auto fill = [&](auto& matrix, int largest) {
    for (auto& row : matrix)
      for (float& x : row)
        x = static_cast<float>(static_cast<int>(random() % (2 * largest + 1)) - largest);
  };
  fill(small.a, 2047);
  fill(small.b, 1023);
  fill(small.d, 8191);
  small.expect_exact(0);
  small.expect_exact(0x1fff);

  Tf32Case special = small;  // NaN and infinity reach the rows and columns they stand in, only
  special.a[3][5] = kNan;
  special.a[4][6] = infinity;
  special.b[6][1] = 0.0f;  // infinity * 0
  special.b[6][0] = 2.0f;
  special.d[9][2] = -infinity;
  special.expect_exact(0);
}

template <int Bytes>
void check_async_copies() {
  // The buffer ends with the last valid byte: a copy that reads more is a fault.
  const auto valid = input<int>(32, [](int l) { return l % (Bytes + 1); });
  const int last = 31 * Bytes + 31 % (Bytes + 1);
  const auto in = input<std::uint8_t>(static_cast<std::size_t>(last), [](int i) { return i + 1; });
  for (const int limit : {0, 5, 31})
    for (const bool lazy : {false, true}) {
      DeviceBuffer<std::uint8_t> out(2 * 32 * Bytes);
      simt::launch({}, 32, 2 * 32 * Bytes, {.lazy_copies = lazy}, conformance::async_copies<Bytes>,
                   in.data(), valid.data(), limit, out.data());
      for (int l = 0; l < 32; ++l)
        for (int b = 0; b < Bytes; ++b) {
          EXPECT_EQ(out[l * Bytes + b], b < valid[l] ? in[l * Bytes + b] : 0);
          EXPECT_EQ(out[(32 + l) * Bytes + b], l < limit ? in[l * Bytes + b] : 0);
        }
    }
}
TEST(Conformance, AsyncCopies) {
  check_async_copies<4>();
  check_async_copies<8>();
  check_async_copies<16>();
}

TEST(Conformance, ConditionalAsyncCopy) {
  const auto in = input<std::uint32_t>(11, [](int i) { return i + 50; });
  DeviceBuffer<std::uint32_t> out(32);
  for (const int limit : {0, 11}) {
    simt::launch({}, 32, 128, {}, conformance::conditional_copy, in.data(), limit, out.data());
    for (int l = 0; l < 32; ++l) EXPECT_EQ(out[l], l < limit ? in[l] : 7u);
  }
}

template <class T>
void check_global_memory() {
  for (const int n : {1, 31, 32, 77}) {
    DeviceBuffer<T> in(static_cast<std::size_t>(n), Access::input),
        out(static_cast<std::size_t>(n) + 1);
    for (int i = 0; i < n; ++i) in[i] = numbered<T>(i);
    simt::launch({}, 32, 0, {}, conformance::global_memory<T>, static_cast<const T*>(in.data()),
                 out.data(), n);
    for (int i = 0; i < n; ++i) EXPECT_TRUE(same_bytes(out[i], in[n - 1 - i]));
    EXPECT_TRUE(same_bytes(out[n], in[0]));
  }
}
TEST(Conformance, GlobalMemory) {
  check_global_memory<std::uint8_t>();
  check_global_memory<bfloat16>();
  check_global_memory<float>();
  check_global_memory<std::int64_t>();
  check_global_memory<simt::Vec16>();
}
TEST(Conformance, WideGlobalMemory) {
  const auto in = input<std::uint16_t>(256, [](int i) { return i; });
  DeviceBuffer<std::uint16_t> out(256);
  simt::launch({}, 32, 0, {}, conformance::wide_global_memory, in.data(), out.data());
  for (int i = 0; i < 256; ++i) EXPECT_EQ(out[i], in[i / 8 * 8 + (3 - i % 8 / 2) * 2 + i % 2]);
}

template <class T>
void check_atomics() {
  const int n = 300;
  const auto in = input<T>(n, [](int i) { return i % 50 - 20; });
  T expected[3] = {1, 1, 1};
  for (int i = 0; i < n; ++i) expected[i % 3] = static_cast<T>(expected[i % 3] + in[i]);
  DeviceBuffer<T> sum(3, Access::in_out);
  std::fill(sum.begin(), sum.end(), T{1});
  simt::launch({5}, 64, 0, {.workers = 2, .schedule_seed = 3}, conformance::atomic_sums<T>,
               in.data(), sum.data(), n);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(sum[i], expected[i]);
}
template <class T>
void check_maxima() {
  const int n = 300;
  const auto in = input<T>(n, [](int i) { return (i * 31 + 7) % 1000 - 500; });
  T expected[3] = {0, 0, 0};
  for (int i = 0; i < n; ++i) expected[i % 3] = std::max(expected[i % 3], in[i]);
  DeviceBuffer<T> max(3, Access::in_out);
  std::fill(max.begin(), max.end(), T{0});
  simt::launch({5}, 64, 0, {.workers = 2}, conformance::atomic_maxima<T>, in.data(), max.data(), n);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(max[i], expected[i]);
}
TEST(Conformance, Atomics) {
  check_atomics<float>();
  check_atomics<std::int32_t>();
  check_atomics<std::uint32_t>();
  check_atomics<std::uint64_t>();
  check_maxima<std::int32_t>();
  check_maxima<std::uint32_t>();
}

TEST(Conformance, NamedBarriers) {
  const auto in = input<int>(64, [](int i) { return 5 * i; });
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    DeviceBuffer<int> out(64);
    simt::launch({}, 128, 512, {.schedule_seed = seed}, conformance::named_barriers, in.data(),
                 out.data());
    for (int t = 0; t < 64; ++t) EXPECT_EQ(out[t], 5 * (63 - t) + 1);
  }
}

}  // namespace
}  // namespace attn
