#pragma once

#include <algorithm>

#include "docs/lessons/problem.h"

namespace lesson {

/// The stable softmax: the largest score is taken out before the exponential, so that no weight is
/// above 1. What changed since lesson 1: the two lines with m.
inline Answer stable_softmax(const Problem& x) {
  const std::size_t keys = x.k.size();

  // pass 1: the scores, and the largest                             m = max_j s_j
  Row s(keys);
  for (std::size_t j = 0; j < keys; ++j) s[j] = score(x, j);
  const double m = *std::max_element(s.begin(), s.end());

  // pass 2                                                          w_j = exp(s_j - m)
  Row w(keys);
  double l = 0;
  for (std::size_t j = 0; j < keys; ++j) l += w[j] = std::exp(s[j] - m);

  // pass 3: the factor exp(m) cancels in o, and returns in LSE = m + log l
  Answer answer{Row(x.v[0].size()), m + std::log(l)};
  for (std::size_t j = 0; j < keys; ++j)
    for (std::size_t d = 0; d < answer.o.size(); ++d) answer.o[d] += w[j] / l * x.v[j][d];
  return answer;
}

}  // namespace lesson
