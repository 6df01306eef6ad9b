#include "mods/lang/range.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "mods/lang/call.h"
#include "mods/lang/environments.h"

namespace attn {
namespace {

using Integers = Range<std::int64_t>;

/// Every range within [-6, 6].
std::vector<Integers> small_ranges() {
  std::vector<Integers> all;
  for (int low = -6; low <= 6; ++low)
    for (int high = low; high <= 6; ++high) all.emplace_back(low, high);
  return all;
}
template <class Visit>
void for_each(const Integers& a, const Integers& b, Visit visit) {
  for (std::int64_t x = a.low; x <= a.high; ++x)
    for (std::int64_t y = b.low; y <= b.high; ++y) visit(static_cast<int>(x), static_cast<int>(y));
}
bool has_zero(const Integers& a) { return a.low <= 0 && a.high >= 0; }

/// Compares f on ranges with f on every pair of their elements. `tight`: no bound lies outside.
template <class F>
void expect_encloses(const char* name, F f, bool divides, bool tight) {
  for (const Integers& a : small_ranges())
    for (const Integers& b : small_ranges()) {
      if (divides && has_zero(b)) continue;
      const Integers r = f(a, b);
      std::int64_t low = 1000, high = -1000;
      for_each(a, b, [&](int x, int y) {
        low = std::min<std::int64_t>(low, f(x, y));
        high = std::max<std::int64_t>(high, f(x, y));
      });
      ASSERT_LE(r.low, low) << name << " of " << a.low << ".." << a.high << ", " << b.low << ".."
                            << b.high;
      ASSERT_GE(r.high, high) << name << " of " << a.low << ".." << a.high << ", " << b.low << ".."
                              << b.high;
      if (tight) {
        ASSERT_EQ(r.low, low) << name;
        ASSERT_EQ(r.high, high) << name;
      }
    }
}

TEST(Range, IntegerArithmeticEnclosesEveryElement) {
  expect_encloses("+", [](auto a, auto b) { return a + b; }, false, true);
  expect_encloses("-", [](auto a, auto b) { return a - b; }, false, true);
  expect_encloses("*", [](auto a, auto b) { return a * b; }, false, true);
  expect_encloses("/", [](auto a, auto b) { return a / b; }, true, true);
  expect_encloses("%", [](auto a, auto b) { return a % b; }, true, false);
  expect_encloses("floor_div", [](auto a, auto b) { return attn::floor_div(a, b); }, true, true);
  expect_encloses("floor_mod", [](auto a, auto b) { return attn::floor_mod(a, b); }, true, false);
  expect_encloses("min", [](auto a, auto b) { return attn::min(a, b); }, false, true);
  expect_encloses("max", [](auto a, auto b) { return attn::max(a, b); }, false, true);
  expect_encloses("clamp", [](auto a, auto b) { return attn::clamp(a + b, -2, 3); }, false, true);
  expect_encloses("negate", [](auto a, auto) { return -a; }, false, true);
  expect_encloses("select", [](auto a, auto b) { return attn::select(a < b, a, b - 1); }, false,
                  false);
}

template <class F>
void expect_decides(const char* name, F f) {
  for (const Integers& a : small_ranges())
    for (const Integers& b : small_ranges()) {
      const Maybe r = f(a, b);
      bool some = false, all = true;
      for_each(a, b, [&](int x, int y) {
        some |= f(x, y);
        all &= f(x, y);
      });
      ASSERT_EQ(r.can_be_true, some) << name;  // comparisons of intervals are exact
      ASSERT_EQ(r.can_be_false, !all) << name;
    }
}

TEST(Range, ComparisonsDecideExactly) {
  expect_decides("<", [](auto a, auto b) { return a < b; });
  expect_decides("<=", [](auto a, auto b) { return a <= b; });
  expect_decides(">", [](auto a, auto b) { return a > b; });
  expect_decides(">=", [](auto a, auto b) { return a >= b; });
  expect_decides("==", [](auto a, auto b) { return a == b; });
  expect_decides("!=", [](auto a, auto b) { return a != b; });
}

TEST(Range, ConditionsFollowThreeValuedLogic) {
  const Maybe yes(true), no(false), open(true, true);
  EXPECT_TRUE((yes && yes).yes());
  EXPECT_TRUE((no && open).no());
  EXPECT_FALSE((yes && open).yes() || (yes && open).no());
  EXPECT_TRUE((yes || open).yes());
  EXPECT_FALSE((no || open).yes() || (no || open).no());
  EXPECT_TRUE((!no).yes());
  EXPECT_TRUE((yes == yes).yes() && (yes == no).no() && (no == no).yes() && (yes != no).yes());
  EXPECT_FALSE((yes == open).yes() || (yes == open).no());
}

TEST(Range, IntegersBeyond32BitsThrow) {
  const Integers huge(0, 2147483647), low(-2147483647 - 1, 0);
  EXPECT_EQ((huge + 0).high, 2147483647);
  EXPECT_THROW(huge + 1, std::invalid_argument);
  EXPECT_THROW(low - 1, std::invalid_argument);
  EXPECT_THROW(-low, std::invalid_argument);
  EXPECT_THROW(huge * 2, std::invalid_argument);
  EXPECT_THROW(low / -1, std::invalid_argument);
  EXPECT_THROW(low % -1, std::invalid_argument);
  EXPECT_THROW(attn::floor_div(low, Integers(-1)), std::invalid_argument);
}

TEST(Range, DivisorsThatMayBeZeroThrow) {
  const Integers a(1, 5), b(-1, 1), zero(0);
  EXPECT_THROW(a / b, std::invalid_argument);
  EXPECT_THROW(a % b, std::invalid_argument);
  EXPECT_THROW(attn::floor_div(a, zero), std::invalid_argument);
  EXPECT_THROW(attn::floor_mod(a, b), std::invalid_argument);
}

TEST(Range, IndicesAnswerAsTheirValues) {
  RangeEnv env;
  const Index<RangeEnv> i{Integers(0, 127), &env}, late{Integers(70, 100), &env};
  EXPECT_EQ(attn::floor_div(i, 64).value.low, 0);
  EXPECT_EQ(attn::floor_div(i, 64).value.high, 1);
  EXPECT_EQ(attn::floor_mod(late, 64).value.low, 6);
  EXPECT_EQ(attn::floor_mod(late, 64).value.high, 36);
  EXPECT_EQ(attn::floor_mod(i, 64).value.high, 63);
  EXPECT_EQ(attn::floor_div(256, late).value.high, 3);
}

/// Real ranges, held against both precisions at points drawn inside them.
TEST(Range, RealFunctionsEncloseBothPrecisions) {
  std::mt19937_64 random(1);
  const auto draw = [&] {
    return static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 64;
  };
  const auto holds = [](const Range<double>& r, double y) { return r.low <= y && y <= r.high; };
  for (int i = 0; i < 3000; ++i) {
    const float a = draw(), b = a + std::abs(draw()), c = draw(), d = c + std::abs(draw());
    const Range<double> x(a, b), y(c, d);
    for (float t : {0.0f, 0.25f, 0.7f, 1.0f}) {
      const float u = std::min(b, a + t * (b - a)), v = std::min(d, c + (1 - t) * (d - c));
      const auto check = [&](auto f) {
        const Range<double> r = f(x, y);
        return holds(r, f(u, v)) && holds(r, f(double{u}, double{v}));
      };
      ASSERT_TRUE(check([](auto p, auto q) { return p + q; }));
      ASSERT_TRUE(check([](auto p, auto q) { return p - q; }));
      ASSERT_TRUE(check([](auto p, auto q) { return p * q; }));
      ASSERT_TRUE(v == 0 || check([](auto p, auto q) { return p / q; }));
      ASSERT_TRUE(check([](auto p, auto) { return attn::tanh(p); }));
      ASSERT_TRUE(check([](auto p, auto) { return attn::sigmoid(p * 8); }));
      ASSERT_TRUE(check([](auto p, auto) { return attn::exp(p); }));
      ASSERT_TRUE(check([](auto p, auto) { return attn::sin(p); }));
      ASSERT_TRUE(check([](auto p, auto) { return attn::cos(p); }));
      ASSERT_TRUE(check([](auto p, auto) { return attn::abs(p); }));
      ASSERT_TRUE(check([](auto p, auto) { return attn::floor(p); }));
      ASSERT_TRUE(check([](auto p, auto q) { return attn::max(p, q); }));
      ASSERT_TRUE(u <= 0 || check([](auto p, auto) { return attn::log(p); }));
    }
  }
}

TEST(Range, UnknownResultsAreEverything) {
  const Range<double> r = Range<double>(1.0, 2.0) / Range<double>(-1.0, 1.0);
  EXPECT_EQ(r.low, -infinity);
  EXPECT_EQ(r.high, infinity);
  const Range<double> undefined = attn::log(Range<double>(-2.0, -1.0));
  EXPECT_EQ(undefined.low, -infinity);
  EXPECT_EQ(undefined.high, infinity);
}

/// -inf to inf holds NaN, for which every comparison but != is false.
TEST(Range, UnknownStaysUnknown) {
  const Range<double> r(-infinity, infinity), one(1.0), top(infinity), part(0.0, infinity);
  const auto open = [](Maybe m) { return m.can_be_true && m.can_be_false; };
  EXPECT_TRUE(open(r <= top) && open(r >= -top) && open(top > r) && open(r == r) && open(r != one));
  for (const Range<double>& x :
       {attn::tanh(r), attn::sigmoid(r), attn::abs(r), attn::sin(r), attn::sin(part), r * 0.0,
        0.0 * part, attn::max(r, 1.0), attn::max(1.0, r), attn::min(r, 1.0), part - part,
        attn::select(Maybe(true, true), r, one)})
    EXPECT_TRUE(x.unknown());
  EXPECT_FALSE(attn::tanh(part).unknown());
}

/// What intervals cannot see, a plain mask least of all.
TEST(RangeEnv, PlainMasksAnswerForSingleElements) {
  RangeEnv env;
  const auto at = [&](int low, int high) { return Index<RangeEnv>{Integers(low, high), &env}; };
  const auto plain = [](int, int, int q, int kv) { return kv <= q; };
  EXPECT_TRUE(call_mask(plain, at(0, 0), at(0, 0), at(5, 5), at(5, 5)).yes());
  EXPECT_TRUE(call_mask(plain, at(0, 0), at(0, 0), at(5, 5), at(6, 6)).no());
  const Maybe several = call_mask(plain, at(0, 0), at(0, 0), at(5, 9), at(0, 0));
  EXPECT_TRUE(several.can_be_true && several.can_be_false);
}

TEST(RangeEnv, NotANumberMakesAReadUnknown) {
  RangeEnv env;
  Tensor<float, 1> values({3});
  values.values() = {1, std::numeric_limits<float>::quiet_NaN(), 5};
  const Captured<1> captured(values);
  EXPECT_TRUE(captured(Index<RangeEnv>{Integers(0, 2), &env}).unknown());
  EXPECT_TRUE(captured(Index<RangeEnv>{Integers(1, 1), &env}).unknown());
  EXPECT_EQ(captured(Index<RangeEnv>{Integers(2, 2), &env}).low, 5);
}

TEST(RangeEnv, SaysWhereAReadMayLeaveTheTensor) {
  RangeEnv env;
  Tensor<float, 2> values({4, 1});
  const Captured<2> captured(values);
  const auto at = [&](int low, int high) { return Index<RangeEnv>{Integers(low, high), &env}; };
  captured(at(0, 3), at(0, 9));  // the second axis broadcasts
  EXPECT_FALSE(env.may_read_outside);
  captured(at(2, 4), at(0, 0));
  EXPECT_TRUE(env.may_read_outside);
}

TEST(RangeEnv, ReadsAnswerForThePartTheyReach) {
  RangeEnv env;
  Tensor<float, 2> bias({2, 8});
  for (int i = 0; i < 8; ++i) bias(1, i) = static_cast<float>(i * i);
  Tensor<std::int32_t, 1> doc({4});
  doc.values() = {0, 0, 1, 1};
  const Captured<2> reals(bias);
  const Captured<1, std::int32_t> indices(doc);
  const auto range = [&](int low, int high) { return Index<RangeEnv>{Integers(low, high), &env}; };
  const Range<double> r = reals(range(1, 1), range(2, 5));
  EXPECT_EQ(r.low, 4);
  EXPECT_EQ(r.high, 25);
  EXPECT_EQ(reals(range(0, 1), range(6, 100)).high, 49);
  EXPECT_EQ(reals(range(5, 6), range(0, 0)).low, -infinity);
  EXPECT_TRUE((indices(range(0, 1)) == indices(range(2, 3))).no());
  EXPECT_TRUE((indices(range(0, 1)) == indices(range(0, 1))).yes());
  EXPECT_FALSE((indices(range(0, 3)) == indices(range(0, 1))).yes());
  const bool flags[3] = {true, true, false};
  const Captured<1, bool> keep(TensorView<const bool, 1>{flags, {3}, {1}});
  EXPECT_TRUE(keep(range(0, 1)).yes());
  EXPECT_TRUE(keep(range(2, 2)).no());
  EXPECT_FALSE(keep(range(0, 2)).yes() || keep(range(0, 2)).no());
}

}  // namespace
}  // namespace attn
