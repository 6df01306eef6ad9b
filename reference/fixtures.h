#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>

#include "reference/forward.h"

/// What the tests of the reference share: inputs, and a second implementation of the contract's
/// forward formulas, three loops in `long double`, which also bounds how far fp64 may be from it.
namespace attn::reference {

/// The unit roundoff of fp64 and, far smaller where `long double` is longer, that of the expected
/// values themselves.
inline constexpr double unit = 0x1p-53 + std::numeric_limits<long double>::epsilon() / 2;

/// Stores a number that every storage type holds exactly.
template <class T>
T stored(double x) {
  if constexpr (std::is_arithmetic_v<T>)
    return static_cast<T>(x);
  else
    return from_float<T>(static_cast<float>(x));
}

/// Multiples of 1/16 between -2 and 2: exact in every storage type.
template <class T, int Rank>
Tensor<T, Rank> random_tensor(std::array<std::int64_t, Rank> extents, unsigned seed) {
  Tensor<T, Rank> x(extents);
  std::mt19937 random(seed);
  for (T& entry : x.values()) entry = stored<T>((static_cast<int>(random() % 65) - 32) / 16.0);
  return x;
}

template <class T, int Rank>
Tensor<T, Rank> filled(std::array<std::int64_t, Rank> extents,
                       std::initializer_list<double> values) {
  Tensor<T, Rank> x(extents);
  EXPECT_EQ(x.values().size(), values.size());
  std::transform(values.begin(), values.end(), x.values().begin(), stored<T>);
  return x;
}

/// A score and how far fp64 arithmetic may be from it.
struct Bounded {
  long double value;
  double error;
};
/// A mod written from its formula, with the roundings of its fp64 evaluation added to the error.
using HandMod = std::function<Bounded(Bounded s, int b, int h, int q, int kv)>;
using HandMask = std::function<bool(int b, int h, int q, int kv)>;

inline Bounded hand_identity(Bounded s, int, int, int, int) { return s; }
inline bool hand_full(int, int, int, int) { return true; }

/// What may be added to the three loops.
struct Variant {
  std::vector<double> sink{};  ///< [Hq]
  /// What dropout multiplies P[i,j] by; rounded once.
  std::function<double(int b, int h, int i, int j)> factor{};
};

struct Expected {
  Tensor<long double, 4> o, p;     ///< O [B, Hq, Sq, Dv], P [B, Hq, Sq, Skv]
  Tensor<long double, 4> dropped;  ///< P' [B, Hq, Sq, Skv]
  Tensor<long double, 3> sink;     ///< the probability of the sink [B, Hq, Sq]
  Tensor<long double, 3> lse, row_max;
  Tensor<double, 4> o_bound;
  Tensor<double, 3> lse_bound, row_max_bound;
  double weight_error = 0;  ///< the largest relative error of a P[i,j] in fp64
};

/// One row of `expected`. With u the unit roundoff, n attended keys and R = max_j (m - t[j]):
///   E: the error of a score. A dot of D terms in any order and the scale: (D + 1) u sum |q k|
///      times |scale|; the mod adds its own.
///   P: numerator and sum both move by E and lose u R in t - m and 2 u in exp; the sum loses n u
///      and the quotient u. So P gains a factor between exp(-x) and exp(x), x = 2E + 2uR + (n+5)u.
/// A sink is one key more.
///   O: n u more for the sum over j, 2 u for dropout.   LSE: E + uR + (n+2)u, 2u log n in log, u
///   |LSE| in the sum.
inline void expected_row(const Problem& p, const Inputs& in, const HandMod& mod,
                         const HandMask& mask, const Variant& variant, int b, int h, int i,
                         Expected& out) {
  const int h_kv = h / p.group();
  std::vector<long double> t(p.skv, -INFINITY);
  long double m = -INFINITY;
  double E = 0, n = 0, R = 0;
  for (int j = 0; j < p.skv; ++j) {
    if (!mask(b, h, i, j)) continue;
    long double s = 0, sizes = 0;
    for (int d = 0; d < p.d; ++d) {
      const long double term = static_cast<long double>(in.q(b, h, i, d)) * in.k(b, h_kv, j, d);
      s += term, sizes += std::abs(term);
    }
    const double error = (p.d + 1) * unit * std::abs(p.scale) * static_cast<double>(sizes);
    const Bounded score = mod({p.scale * s, error}, b, h, i, j);
    t[j] = score.value;
    if (score.value == -INFINITY) continue;
    m = std::max(m, score.value);
    E = std::max(E, score.error);
    ++n;
  }
  out.row_max(b, h, i) = m;
  out.row_max_bound(b, h, i) = E;
  const double sink = variant.sink.empty() ? -INFINITY : variant.sink[h];
  if (n == 0) {
    out.lse(b, h, i) = sink;
    out.sink(b, h, i) = sink != -INFINITY;
    return;
  }
  long double sum = 0;
  m = std::max<long double>(m, sink);
  if (sink != -INFINITY) {
    sum = std::exp(sink - m), R = static_cast<double>(m - sink);
    ++n;
  }
  for (long double x : t)
    if (x != -INFINITY) sum += std::exp(x - m), R = std::max(R, static_cast<double>(m - x));
  out.lse(b, h, i) = m + std::log(sum);
  out.lse_bound(b, h, i) =
      E + unit * (R + n + 2 + 2 * std::log(n) + static_cast<double>(std::abs(out.lse(b, h, i))));
  const double x = 2 * E + unit * (2 * R + n + 5);
  out.weight_error = std::max(out.weight_error, std::expm1(x));
  out.sink(b, h, i) = std::exp(sink - m) / sum;
  for (int j = 0; j < p.skv; ++j) {
    out.p(b, h, i, j) = std::exp(t[j] - m) / sum;
    out.dropped(b, h, i, j) = out.p(b, h, i, j) * (variant.factor ? variant.factor(b, h, i, j) : 1);
  }
  for (int d = 0; d < p.dv; ++d) {
    long double sizes = 0;
    for (int j = 0; j < p.skv; ++j) {
      out.o(b, h, i, d) += out.dropped(b, h, i, j) * in.v(b, h_kv, j, d);
      sizes += out.dropped(b, h, i, j) * std::abs(in.v(b, h_kv, j, d));
    }
    out.o_bound(b, h, i, d) = std::expm1(x + unit * (n + 2)) * static_cast<double>(sizes);
  }
}

inline Expected expected(const Problem& p, const Inputs& in, const HandMod& mod = hand_identity,
                         const HandMask& mask = hand_full, const Variant& variant = {}) {
  Expected out;
  for (auto* x : {&out.p, &out.dropped}) *x = Tensor<long double, 4>({p.b, p.hq, p.sq, p.skv});
  out.o = Tensor<long double, 4>(p.o_extents());
  out.o_bound = Tensor<double, 4>(p.o_extents());
  for (auto* x : {&out.lse, &out.row_max, &out.sink}) *x = Tensor<long double, 3>(p.lse_extents());
  for (auto* x : {&out.lse_bound, &out.row_max_bound}) *x = Tensor<double, 3>(p.lse_extents());
  for (int b = 0; b < p.b; ++b)
    for (int h = 0; h < p.hq; ++h)
      for (int i = 0; i < p.sq; ++i) expected_row(p, in, mod, mask, variant, b, h, i, out);
  return out;
}

/// Every entry equals (infinities) or lies within its bound; a NaN on either side fails.
template <class Want, int Rank>
void expect_within(const char* name, const Tensor<double, Rank>& got,
                   const Tensor<Want, Rank>& want, const Tensor<double, Rank>& bound) {
  ASSERT_EQ(got.extents(), want.extents()) << name;
  for (std::size_t n = 0; n < got.values().size(); ++n) {
    const Want w = want.values()[n];
    const double g = got.values()[n];
    EXPECT_TRUE(g == w || std::abs(g - w) <= bound.values()[n])
        << name << " entry " << n << " of " << shape_string(got.extents()) << ": got " << g
        << ", expected " << w << " within " << bound.values()[n];
  }
}

/// Bit for bit; NaN equals NaN.
template <int Rank>
void expect_bits(const char* name, const Tensor<double, Rank>& got,
                 const Tensor<double, Rank>& want) {
  ASSERT_EQ(got.extents(), want.extents()) << name;
  for (std::size_t n = 0; n < got.values().size(); ++n) {
    const double g = got.values()[n], w = want.values()[n];
    EXPECT_TRUE(g == w || (std::isnan(g) && std::isnan(w)))
        << name << " entry " << n << " of " << shape_string(got.extents()) << ": got " << g
        << ", expected " << w;
  }
}
inline void expect_bits(const ForwardResult& got, const ForwardResult& want) {
  expect_bits("o", got.o, want.o);
  expect_bits("lse", got.lse, want.lse);
  expect_bits("row_max", got.row_max, want.row_max);
}

// ---- mods and masks of the tests ----------------------------------------------------------------

struct Plain {  // t = s
  template <class Score, class Index>
  Score operator()(Score s, Index, Index, Index, Index) const {
    return s;
  }
};

struct Distance {  // t = s + slope[h] * (j - i)
  Captured<1> slope;
  template <class Score, class Index>
  Score operator()(Score s, Index, Index h, Index q, Index kv) const {
    return s + slope(h) * (kv - q);
  }
  HandMod by_hand() const {  // the product and the sum round
    return [*this](Bounded s, int, int h, int q, int kv) -> Bounded {
      const long double bias = static_cast<long double>(slope.tensor(h)) * (kv - q);
      const long double t = s.value + bias;
      return {t, s.error + unit * static_cast<double>(std::abs(bias) + std::abs(t))};
    };
  }
};

struct SoftCap {  // t = c tanh(s / c): the quotient rounds, tanh (2 ulp, slope at most 1), the
                  // product
  double c;
  template <class Score, class Index>
  Score operator()(Score s, Index, Index, Index, Index) const {
    return c * attn::tanh(s / c);
  }
  HandMod by_hand() const {
    return [c = c](Bounded s, int, int, int, int) -> Bounded {
      const long double t = c * std::tanh(s.value / c);
      return {t, s.error + unit * static_cast<double>(std::abs(s.value) + 5 * std::abs(t))};
    };
  }
};

struct All {
  template <class Index>
  auto operator()(Index, Index, Index q, Index) const {
    return q >= 0;
  }
};

struct NotAfter {  // j <= i
  template <class Index>
  auto operator()(Index, Index, Index q, Index kv) const {
    return kv <= q;
  }
};

/// Attends where a table [Sq, Skv] says so.
struct Table {
  Tensor<std::int32_t, 2> pairs;
  template <class Index>
  auto operator()(Index, Index, Index q, Index kv) const {
    return Captured<2, std::int32_t>(pairs, "pairs")(q, kv) != 0;
  }
};

}  // namespace attn::reference
