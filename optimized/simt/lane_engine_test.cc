// lane<T>: promotes as C++ does, and agrees lane by lane with the scalar code that the thread
// engine runs. On the thread engine lane<T> is T, and the same text checks that the language is the
// same.
#include <gtest/gtest.h>

#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "mods/lang/number.h"
#include "optimized/simt/simt.h"

namespace attn {
namespace {

using simt::lane;

static_assert(std::same_as<decltype(lane<float>() * 2.0), lane<double>>);
static_assert(std::same_as<decltype(2 * lane<float>()), lane<float>>);
static_assert(std::same_as<decltype(lane<bool>() + lane<bool>()), lane<int>>);
static_assert(std::same_as<decltype(lane<int>() + std::int64_t{1}), lane<std::int64_t>>);
static_assert(std::same_as<decltype(lane<int>() + lane<std::uint32_t>()), lane<std::uint32_t>>);
static_assert(std::same_as<decltype(-lane<std::uint8_t>()), lane<int>>);
static_assert(std::same_as<decltype(lane<int>() < 3.0f), lane<bool>>);
static_assert(std::same_as<decltype(!lane<bool>() && lane<bool>()), lane<bool>>);
static_assert(std::same_as<decltype(select(lane<bool>(), lane<float>(), 1.0)), lane<double>>);
static_assert(std::same_as<decltype(select(lane<bool>(), 1, 2)), lane<int>>);
static_assert(std::same_as<decltype(select(true, lane<float>(), 2)), lane<float>>);
static_assert(std::same_as<decltype(tanh(lane<float>())), lane<float>>);
static_assert(std::same_as<decltype(exp(lane<int>())), lane<double>>);
static_assert(std::is_trivially_copyable_v<lane<float>>);

// Operands of one lane: signs, zeros, NaN, infinities and numbers near the ends of the range.
constexpr float kFloats[8] = {
    0.0f,     -0.0f, 1.5f, -2.25f, 1e30f, -infinity, std::numeric_limits<float>::quiet_NaN(),
    0x1p-149f};
constexpr int kInts[8] = {1, -1, 7, -7, 31, -12345, 2147483, -64};

#if defined(ATTN_ENGINE_WARP)
template <class T, class F>
lane<T> make(F f) {
  lane<T> r;
  for (int i = 0; i < 32; ++i) r.set(i, f(i));
  return r;
}
template <class L, class F>
void expect_lanes(const L& got, F expected) {
  for (int i = 0; i < 32; ++i) {
    const auto e = expected(i);
    const auto g = got[i];
    static_assert(std::same_as<decltype(g), decltype(e)>);
    EXPECT_EQ(std::memcmp(&g, &e, sizeof e), 0) << i << ": " << g << ", expected " << e;
  }
}
// f on whole lanes must give what f gives on the elements of each lane.
template <class A, class B, class F>
void agree(F f) {
  const auto element = []<class T>(T, int i) {
    if constexpr (std::is_same_v<T, float>)
      return kFloats[i % 8];
    else
      return kInts[i % 8];
  };
  const auto a = [&](int i) { return element(A{}, i); };
  const auto b = [&](int i) { return element(B{}, i / 3 + i); };
  expect_lanes(f(make<A>(a), make<B>(b)), [&](int i) { return f(a(i), b(i)); });
  expect_lanes(f(make<A>(a), b(3)), [&](int i) { return f(a(i), b(3)); });
  expect_lanes(f(a(2), make<B>(b)), [&](int i) { return f(a(2), b(i)); });
}

TEST(Lane, ArithmeticAgreesWithScalars) {
  const auto for_types = [](auto f) {
    agree<float, float>(f);
    agree<float, int>(f);
    agree<int, float>(f);
    agree<int, int>(f);
  };
  for_types([](const auto& a, const auto& b) { return a + b; });
  for_types([](const auto& a, const auto& b) { return a - b; });
  for_types([](const auto& a, const auto& b) { return a * 0.125 + b; });
  for_types([](const auto& a, const auto& b) { return a / b; });
  for_types([](const auto& a, const auto& b) { return (a < b) == (b >= a); });
  for_types([](const auto& a, const auto& b) { return !(a == b) && (a > b || a != b); });
  for_types([](const auto& a, const auto& b) { return select(a <= b, a, b); });
  for_types([](const auto& a, const auto& b) { return max(a, b) - min(a, b); });
}
TEST(Lane, IntegersAgreeWithScalars) {
  agree<int, int>([](const auto& a, const auto& b) { return a % b; });
  agree<int, int>([](const auto& a, const auto& b) { return (a & b) | (~a ^ b); });
  agree<int, int>([](const auto& a, const auto& b) { return (a & 15) << (b & 7) >> 2; });
  agree<int, int>([](const auto& a, const auto& b) { return floor_div(a, b) + floor_mod(a, b); });
  agree<int, int>([](const auto& a, const auto& b) { return abs(a) + b; });
}
TEST(Lane, ElementaryFunctionsRunLaneByLane) {
  agree<float, int>([](const auto& a, const auto& b) { return tanh(a) + b; });
  agree<float, float>([](const auto& a, const auto& b) { return sigmoid(a) * exp(b); });
  agree<int, float>([](const auto& a, const auto& b) { return sin(a) + b; });
  agree<int, float>([](const auto& a, const auto& b) { return abs(a) * b; });
}
TEST(Lane, AssignmentKeepsTheType) {
  lane<float> x = 1;
  x += 0.1;
  lane<int> i = 7;
  i /= 2;
  i <<= 3;
  i -= lane<int>(1);
  float y = 1;
  y += 0.1;
  expect_lanes(x, [&](int) { return y; });
  expect_lanes(i, [&](int) { return 23; });
}
TEST(Lane, ConversionsAgreeWithScalars) {
  const auto ints = make<int>([](int l) { return kInts[l % 8]; });
  expect_lanes(lane<float>(ints), [](int l) { return static_cast<float>(kInts[l % 8]); });
  expect_lanes(lane<std::uint32_t>(ints),
               [](int l) { return static_cast<std::uint32_t>(kInts[l % 8]); });
  expect_lanes(lane<int>(ints > 0), [](int l) { return static_cast<int>(kInts[l % 8] > 0); });
  const lane<std::int64_t> wide = ints;
  expect_lanes(wide, [](int l) { return static_cast<std::int64_t>(kInts[l % 8]); });
}
#else
TEST(Lane, IsTheScalarItself) {
  static_assert(std::same_as<lane<float>, float>);
  EXPECT_EQ(select(kInts[0] > 0, kFloats[2], 0.0f), 1.5f);
}
#endif

}  // namespace
}  // namespace attn
