#include <gtest/gtest.h>

#include <cmath>

#include "mods/lang/compile.h"
#include "mods/lang/expression_samples.h"

// A program runs on lanes as it does on scalars. The lanes of the engines live in optimized/simt/,
// which this folder does not know; these follow the same number protocol (mods/lang/number.h).
namespace attn {
namespace {

constexpr int width = 4;

template <class T>
struct Wide {
  std::array<T, width> v;

  Wide() = default;
  Wide(T x) { v.fill(x); }
  template <class U>
    requires(plain_number<U> && plain_number<T> && !std::same_as<T, bool> && !std::same_as<U, T>)
  Wide(U x) : Wide(static_cast<T>(x)) {}
  explicit operator bool() const = delete;  // a program may not branch on lanes

  template <class F, class... A>
  static Wide map(F f, const A&... a) {
    Wide r;
    for (std::size_t i = 0; i < width; ++i) r.v[i] = f(a.v[i]...);
    return r;
  }
  friend Wide operator-(const Wide& a) { return map([](T x) { return -x; }, a); }
#define ATTN_TEST_ARITHMETIC(op) \
  friend Wide operator op(const Wide& a, const Wide& b) { \
    return map([](T x, T y) { return x op y; }, a, b);    \
  }
  ATTN_TEST_ARITHMETIC(+)
  ATTN_TEST_ARITHMETIC(-)
  ATTN_TEST_ARITHMETIC(*)
  ATTN_TEST_ARITHMETIC(/)
  ATTN_TEST_ARITHMETIC(%)
#undef ATTN_TEST_ARITHMETIC
#define ATTN_TEST_CONDITION(op) \
  friend Wide<bool> operator op(const Wide& a, const Wide& b) {        \
    return Wide<bool>::map([](T x, T y) { return x op y; }, a, b);     \
  }
  ATTN_TEST_CONDITION(<)
  ATTN_TEST_CONDITION(<=)
  ATTN_TEST_CONDITION(>)
  ATTN_TEST_CONDITION(>=)
  ATTN_TEST_CONDITION(==)
  ATTN_TEST_CONDITION(!=)
  ATTN_TEST_CONDITION(&&)
  ATTN_TEST_CONDITION(||)
#undef ATTN_TEST_CONDITION
  friend Wide<bool> operator!(const Wide& a) {
    return Wide<bool>::map([](T x) { return !x; }, a);
  }
  template <class F>
  friend Wide number_apply(F f, const Wide& x) {
    return map([f](T y) { return f(y); }, x);
  }
};
template <class T>
Wide<T> number_select(const Wide<bool>& c, const Wide<T>& a, const Wide<T>& b) {
  return Wide<T>::map([](bool which, T x, T y) { return which ? x : y; }, c, a, b);
}
template <class T, plain_number S>
Wide<T> number_select(const Wide<bool>& c, const Wide<T>& a, S b) {
  return number_select(c, a, Wide<T>(b));
}

struct WideEnv {
  using Int = Wide<int>;
  using Score = Wide<float>;
  Sizes sizes;

  Score to_score(const Int& i) const {
    Score s;
    for (std::size_t k = 0; k < width; ++k) s.v[k] = static_cast<float>(i.v[k]);
    return s;
  }
  template <int Rank, class T>
  auto read(const Captured<Rank, T>& c, const Int (&at)[Rank]) const {
    Wide<std::conditional_t<std::same_as<T, std::int32_t>, int, T>> r;
    for (std::size_t k = 0; k < width; ++k) {
      int one[Rank];
      for (int axis = 0; axis < Rank; ++axis) one[axis] = at[axis].v[k];
      r.v[k] = c.tensor.data[checked_offset(c, one)];
    }
    return r;
  }
};
struct WideDualEnv : WideEnv {
  using Score = Dual<Wide<float>>;
  Score to_score(const Int& i) const { return WideEnv::to_score(i); }
  template <int Rank, class T>
  auto read(const Captured<Rank, T>& c, const Int (&at)[Rank]) const {
    if constexpr (std::same_as<T, float>)
      return Score(WideEnv::read(c, at));
    else
      return WideEnv::read(c, at);
  }
};

/// The lanes of one row: kv, kv + 3, ...
template <class Env>
Index<Env> lanes_from(int kv, Env& env) {
  Index<Env> i{Wide<int>(), &env};
  for (std::size_t k = 0; k < width; ++k) i.value.v[k] = kv + 3 * static_cast<int>(k);
  return i;
}

TEST(ProgramOnLanes, ModsGiveTheBitsOfScalars) {
  const samples::SampleTables tables(11);
  samples::Trees random(11, tables.tables(), false);
  WideEnv wide{samples::sizes};
  WideDualEnv wide_dual{{samples::sizes}};
  BasicDualEnv<float> scalar{samples::sizes};
  int ran = 0;
  for (int i = 0; i < 2000; ++i) {
    const TreeMod tree(random.draw(ValueType::real, 2 + i % 4), tables.tables());
    if (tree.expression()->size > 60 || !samples::is_accepted(tree)) continue;
    ++ran;
    const ProgramMod mod = compile_mod(tree.expression(), tables.tables());
    const int b = random.below(2), h = random.below(4), q = random.below(24), kv = random.below(30);
    const float s = static_cast<float>(random.below(8001) - 4000) / 1000;
    const auto at = [](int x, auto& env) {
      return Index<std::remove_reference_t<decltype(env)>>{x, &env};
    };
    const Wide<float> values = call_mod(mod, Wide<float>(s), at(b, wide), at(h, wide), at(q, wide),
                                        lanes_from(kv, wide));
    const Dual<Wide<float>> duals =
        call_mod(mod, Dual<Wide<float>>(Wide<float>(s), Wide<float>(1)), at(b, wide_dual),
                 at(h, wide_dual), at(q, wide_dual), lanes_from(kv, wide_dual));
    for (std::size_t k = 0; k < width; ++k) {
      const Dual<float> y =
          call_mod(tree, Dual<float>(s, 1.0f), at(b, scalar), at(h, scalar), at(q, scalar),
                   at(kv + 3 * static_cast<int>(k), scalar));
      ASSERT_TRUE(samples::same_bits(values.v[k], y.v)) << to_text(tree.expression());
      ASSERT_TRUE(samples::same_bits(duals.v.v[k], y.v)) << to_text(tree.expression());
      ASSERT_TRUE(samples::same_bits(duals.d.v[k], y.d)) << to_text(tree.expression());
    }
  }
  EXPECT_GT(ran, 1000);
}

TEST(ProgramOnLanes, MasksGiveTheConditionsOfScalars) {
  const samples::SampleTables tables(12);
  samples::Trees random(12, tables.tables(), true);
  random.without_score();
  WideEnv wide{samples::sizes};
  BasicDualEnv<float> scalar{samples::sizes};
  for (int i = 0; i < 2000; ++i) {
    const TreeMask tree(random.draw(ValueType::condition, 2 + i % 4), tables.tables());
    if (tree.expression()->size > 60 || !samples::is_accepted(tree)) continue;
    const ProgramMask mask = compile_mask(tree.expression(), tables.tables());
    const int b = random.below(2), h = random.below(4), q = random.below(24), kv = random.below(30);
    const auto at = [](int x, auto& env) {
      return Index<std::remove_reference_t<decltype(env)>>{x, &env};
    };
    const Wide<bool> attends =
        call_mask(mask, at(b, wide), at(h, wide), at(q, wide), lanes_from(kv, wide));
    for (std::size_t k = 0; k < width; ++k)
      ASSERT_EQ(attends.v[k], call_mask(tree, at(b, scalar), at(h, scalar), at(q, scalar),
                                        at(kv + 3 * static_cast<int>(k), scalar)))
          << to_text(tree.expression());
  }
}

}  // namespace
}  // namespace attn
