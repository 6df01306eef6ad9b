#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include "mods/lang/call.h"
#include "mods/lang/environments.h"

/// Looks at a score mod element by element, for tests. The expected side of a comparison is a
/// formula on doubles and ints, written apart from the mod.
namespace attn {

/// fp32 scores one by one: what a kernel computes, without lanes.
struct SinglePrecisionEnv {
  using Int = int;      ///< what an index holds
  using Score = float;  ///< what a score is
  Sizes sizes;          ///< as the mod asks for them
  /// An index as a score.
  float to_score(int i) const { return static_cast<float>(i); }
  template <int Rank, class T>
  auto read(const Captured<Rank, T>& c, const int (&at)[Rank]) const {  /// throws outside of it
    const T& entry = c.tensor.data[checked_offset(c, at)];
    if constexpr (is_floating_storage<T>)
      return stored_score<float>(entry);
    else
      return entry;
  }
  template <class F, class... A>
  static auto each(F f, const A&... a) {  /// a functor of plain numbers runs as it is
    return f(a...);
  }
};

/// The mod at one pair in environment `env` (of scalar indices).
template <class Mod, class Env>
auto modified(const Mod& mod, Env& env, const typename Env::Score& s, int b, int h, int i, int j) {
  return call_mod(mod, s, Index<Env>{b, &env}, Index<Env>{h, &env}, Index<Env>{i, &env},
                  Index<Env>{j, &env});
}

/// Scores that a mod meets here: both signs, zero, small and large, exact in fp16. Volatile, since
/// a compiler that knew them could fold tanh on one side of a comparison, with other rounding than
/// the library's.
inline const volatile double sample_scores[] = {-24, -3.5, -0.25, 0, 0.125, 1, 6};

/// Says what is wrong with the mod at one pair, or "": the value and the derivative to the score
/// (within `slack`), the value as a dual and as a rounded number, fp32 within the bound that the
/// rounded number gives, and the range over the whole problem, which must hold the value.
template <class Mod>
std::string fault_at(const Mod& mod, const Sizes& sizes, double s, int b, int h, int i, int j,
                     double value, double slope, double slack) {
  ExactEnv exact{sizes};
  const double got = modified(mod, exact, s, b, h, i, j);
  if (!(got == value)) return "value " + std::to_string(got);

  DualEnv dual{sizes};
  const Dual<double> derived = modified(mod, dual, {s, 1.0}, b, h, i, j);
  if (!(derived.v == value)) return "value of the dual " + std::to_string(derived.v);
  if (!(std::abs(derived.d - slope) <= slack)) return "derivative " + std::to_string(derived.d);

  RoundedEnv rounded{sizes};
  const Rounded bound = modified(mod, rounded, {s, 0.0}, b, h, i, j);
  if (!(bound.v == value)) return "rounded value " + std::to_string(bound.v);
  SinglePrecisionEnv single{sizes};
  const double kernel = modified(mod, single, static_cast<float>(s), b, h, i, j);
  if (!(std::abs(kernel - value) <= bound.e)) return "fp32 value " + std::to_string(kernel);

  RangeEnv ranges{sizes};
  const auto all = [&](int extent) {
    return Index<RangeEnv>{RangeEnv::Int(0, extent - 1), &ranges};
  };
  const Range<double> range =
      call_mod(mod, Range<double>(s), all(sizes.b), all(sizes.hq), all(sizes.sq), all(sizes.skv));
  if (!(range.low <= value && value <= range.high)) return "range without the value";
  return "";
}

/// The first pair and sample score where the mod differs from `value(s, b, h, i, j)` or its
/// derivative from `slope(s, b, h, i, j)`, or "" if none does. `slack` is for a derivative that the
/// formula writes in another way and so rounds in another way; 0: exact.
template <class Mod, class Value, class Slope>
std::string first_difference(const Mod& mod, const Sizes& sizes, const Value& value,
                             const Slope& slope, double slack = 0) {
  for (const double s : sample_scores)
    for (int b = 0; b < sizes.b; ++b)
      for (int h = 0; h < sizes.hq; ++h)
        for (int i = 0; i < sizes.sq; ++i)
          for (int j = 0; j < sizes.skv; ++j) {
            const double expected = value(s, b, h, i, j), steep = slope(s, b, h, i, j);
            const std::string fault = fault_at(mod, sizes, s, b, h, i, j, expected, steep, slack);
            if (!fault.empty())
              return fault + " at s=" + std::to_string(s) + " b" + std::to_string(b) + " h" +
                     std::to_string(h) + " q" + std::to_string(i) + " kv" + std::to_string(j) +
                     ", expected " + std::to_string(expected) + " and slope " +
                     std::to_string(steep);
          }
  return "";
}

/// The derivative to the `read`-th captured entry that the mod reads, and which entry that is.
struct ReadGradient {
  double derivative = 0;       ///< d mod / d entry
  const void* data = nullptr;  ///< the tensor's; null: there is no such read
  std::int64_t offset = -1;    ///< of the entry, in elements
  int reads = 0;               ///< floating reads of the call
};
/// The derivative of the mod to the entry that its `read`-th captured read takes.
template <class Mod>
ReadGradient gradient_of_read(const Mod& mod, const Sizes& sizes, int read, double s, int b, int h,
                              int i, int j) {
  DualEnv env{sizes, read};
  const Dual<double> t = modified(mod, env, {s, 0.0}, b, h, i, j);
  return {t.d, env.seeded_data, env.seeded_offset, env.reads};
}

}  // namespace attn
