#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "mods/lang/philox.h"
#include "optimized/path_fixtures.h"

/// Answers that are known exactly, by hand.
namespace attn::path_test {

/// Pairs of a problem in which every score is 0.
struct UniformRows {
  std::function<bool(int b, int h, int i, int j)> attends;
  bool sink = false;  ///< a sink of 0
  /// What dropout multiplies a weight by.
  std::function<double(int b, int h, int i, int j)> factor = [](int, int, int, int) { return 1.; };
};

/// Both passes of a problem whose scores are all 0, where the keys of each row, the sink counted
/// in, are 1, 2, 4 or 16, so that every number is a short binary fraction: computed in double
/// without an error, by the formulas of the contract, and equal to what a kernel computes in fp32.
struct ExactAnswer {
  Tensor<double, 4> o, dq, dk, dv;
  Tensor<double, 3> lse;
  std::vector<double> d_slope, d_sink;
  bool fits = true;  ///< the weights and dS are numbers of the storage type, as they must be
};

/// One query row of exact_answer.
template <class T>
void add_exact_row(const Attention<T>& x, const UniformRows& rows, double scale, int b, int h,
                   int i, ExactAnswer& y) {
  const Lengths& n = x.n;
  const auto fit = [&](double s) { y.fits &= to_float(from_float<T>(static_cast<float>(s))) == s; };
  const int g = h / (n.hq / n.hkv);
  int keys = rows.sink ? 1 : 0;
  for (int j = 0; j < n.skv; ++j) keys += rows.attends(b, h, i, j);
  y.fits &= keys == 0 || keys == 1 || keys == 2 || keys == 4 || keys == 16;
  const double p = keys == 0 ? 0 : 1.0 / keys;
  y.lse(b, h, i) = keys == 0 ? -INFINITY : std::log2(keys) * 0.6931471805599453f;
  double delta = -x.d_lse(b, h, i);
  for (int c = 0; c < n.dv; ++c) {
    double& o = y.o(b, h, i, c);
    for (int j = 0; j < n.skv; ++j)
      if (rows.attends(b, h, i, j)) o += p * rows.factor(b, h, i, j) * to_float(x.v(b, g, j, c));
    fit(o);
    delta += to_float(x.d_o(b, h, i, c)) * o;
  }
  if (rows.sink) y.d_sink[h] -= p * delta;
  for (int j = 0; j < n.skv; ++j) {
    if (!rows.attends(b, h, i, j)) continue;
    const double weight = p * rows.factor(b, h, i, j);
    double dp = 0;
    for (int c = 0; c < n.dv; ++c) {
      dp += to_float(x.d_o(b, h, i, c)) * to_float(x.v(b, g, j, c));
      y.dv(b, g, j, c) += weight * to_float(x.d_o(b, h, i, c));
    }
    const double ds = p * (dp * rows.factor(b, h, i, j) - delta);
    fit(weight), fit(ds);
    y.d_slope[h] += ds * (j - i);
    for (int c = 0; c < n.d; ++c) {
      y.dq(b, h, i, c) += scale * ds * to_float(x.k(b, g, j, c));
      y.dk(b, g, j, c) += scale * ds * to_float(x.q(b, h, i, c));
    }
  }
}

template <class T>
ExactAnswer exact_answer(const Attention<T>& x, const UniformRows& rows, double scale) {
  ExactAnswer y;
  y.o = Tensor<double, 4>(x.o.extents());
  y.dq = Tensor<double, 4>(x.q.extents());
  y.dk = Tensor<double, 4>(x.k.extents());
  y.dv = Tensor<double, 4>(x.v.extents());
  y.lse = Tensor<double, 3>(x.lse.extents());
  y.d_slope.resize(static_cast<std::size_t>(x.n.hq));
  y.d_sink.resize(static_cast<std::size_t>(x.n.hq));
  for (int b = 0; b < x.n.b; ++b)
    for (int h = 0; h < x.n.hq; ++h)
      for (int i = 0; i < x.n.sq; ++i) add_exact_row(x, rows, scale, b, h, i, y);
  return y;
}

/// Q and K that are nowhere both nonzero, so that every score is 0 and dQ and dK are not; V, dO and
/// dLSE of small whole numbers.
template <class T>
void fill_without_scores(Attention<T>& x) {
  std::uint32_t seed = 5;
  for (Tensor<T, 4>* t : {&x.q, &x.k, &x.v, &x.d_o}) fill_signs(*t, seed++);
  for (std::size_t i = 0; i < x.q.values().size(); ++i)
    if (i % static_cast<std::size_t>(x.n.d) % 2 == 0) x.q.values()[i] = T{0};
  for (std::size_t i = 0; i < x.k.values().size(); ++i)
    if (i % static_cast<std::size_t>(x.n.d) % 2 == 1) x.k.values()[i] = T{0};
  for (std::size_t i = 0; i < x.d_lse.values().size(); ++i)
    x.d_lse.values()[i] = static_cast<float>(static_cast<int>(i % 3)) - 1;
}

/// The first entry that is not the expected number, rounded to the storage type; empty if none.
template <class X, int Rank>
std::string difference(const char* name, const Tensor<X, Rank>& got,
                       const Tensor<double, Rank>& want) {
  for (std::size_t i = 0; i < got.values().size(); ++i) {
    const auto rounded = from_float<X>(static_cast<float>(want.values()[i]));
    const X g = got.values()[i];
    float is, should;
    if constexpr (std::is_same_v<X, float>)
      is = g, should = rounded;
    else
      is = to_float(g), should = to_float(rounded);
    if (!(is == should))
      return std::string(name) + " entry " + std::to_string(i) + " is " + std::to_string(is) +
             ", expected " + std::to_string(should);
  }
  return {};
}
inline std::string difference(const char* name, const std::vector<float>& got,
                              const std::vector<double>& want) {
  for (std::size_t i = 0; i < got.size(); ++i)
    if (!(got[i] == static_cast<float>(want[i])))
      return std::string(name) + " entry " + std::to_string(i) + " is " + std::to_string(got[i]) +
             ", expected " + std::to_string(want[i]);
  return {};
}

/// What dropout multiplies a weight by, from the contract: word kv % 4 of counter (kv / 4, q, h,
/// b).
inline double dropout_by_hand(const Dropout& dropout, int b, int h, int q, int kv) {
  const auto word = [](int i) { return static_cast<std::uint32_t>(i); };
  const PhiloxWords random = philox4x32({{word(kv / 4), word(q), word(h), word(b)}}, dropout.seed);
  const double threshold = std::ldexp(dropout.p, 32);
  return random.word[kv % 4] >= threshold ? 1 / (1 - dropout.p) : 0;
}

}  // namespace attn::path_test
