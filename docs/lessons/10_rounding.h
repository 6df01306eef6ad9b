#pragma once

#include <algorithm>

#include "docs/lessons/problem.h"

namespace lesson {

/// How far a kernel that rounds as lesson 9's may be off, for one query row.
struct RoundingBound {
  Row likely;      ///< [Dv] roundings as independent as they are: four standard deviations
  Row certain;     ///< [Dv] roundings in the worst order
  double lse = 0;  ///< of LSE
};

/// From the case itself: its inputs, as stored, and the exact answer. `tiles` counts the rescales.
///
///     what is rounded                     how much of it
///     s, n products in fp32               e_j = (n + 2) 2^-23 scale sum |q| |k_j|
///     s - m, log2 e, exp2, the rescales   3 2^-24 (|s_j| + 3 max |s|) + (tiles + 1) 2^-21
///     the weight, to fp16                 2^-11 of it, or 2^-25 of the largest weight
///     sums over n keys, in fp32           (n + 8) 2^-23
///
/// Sums of n terms are taken as off by n 2^-23, not n 2^-24: the tensor core truncates.
/// (N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.1.)
inline RoundingBound rounding_of(const Problem& x, const Answer& exact, double tiles) {
  const std::size_t keys = x.k.size(), dv = x.v[0].size();
  const double n = static_cast<double>(keys);

  // how far each weight may be off before it is rounded: relative, delta_j
  Row p(keys), delta(keys);
  double largest = 0, top = 0;
  for (std::size_t j = 0; j < keys; ++j) {
    largest = std::max(largest, std::abs(score(x, j)));
    top = std::max(top, p[j] = std::exp(score(x, j) - exact.lse));
  }
  for (std::size_t j = 0; j < keys; ++j) {
    double sizes = 0;  // sum |q| |k|
    for (std::size_t d = 0; d < x.q.size(); ++d) sizes += std::abs(x.q[d] * x.k[j][d]);
    const double of_score = (x.q.size() + 2) * 0x1p-23 * std::abs(x.scale) * sizes;
    const double of_exponent = 3 * 0x1p-24 * (std::abs(score(x, j)) + 3 * largest);
    delta[j] = std::expm1(of_score + of_exponent + (tiles + 1) * 0x1p-21);
  }

  RoundingBound b{Row(dv), Row(dv), (n + 8) * 0x1p-23 + 0x1p-23 * std::abs(exact.lse)};
  for (std::size_t j = 0; j < keys; ++j) b.lse += p[j] * delta[j];
  for (std::size_t d = 0; d < dv; ++d) {
    double sum = 0, scores = 0, worst = 0, squares = 0;
    for (std::size_t j = 0; j < keys; ++j) {
      const double v = x.v[j][d], rounding = std::max(0x1p-11 * p[j], 0x1p-25 * top);
      sum += p[j] * std::abs(v);
      scores += p[j] * delta[j] * std::abs(v - exact.o[d]);  // what all weights share cancels
      worst += rounding * std::abs(v);
      squares += std::pow(rounding * v, 2);
    }
    const double rest = 2 * scores + (n + 8) * 0x1p-23 * (sum + std::abs(exact.o[d]));
    b.likely[d] = rest + std::min(worst, 4 * std::sqrt(squares / 3));  // of a uniform error: u^2/3
    b.certain[d] = rest + worst;
  }
  return b;
}

}  // namespace lesson
