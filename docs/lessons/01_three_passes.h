#pragma once

#include "docs/lessons/problem.h"

namespace lesson {

/// Attention as it is defined, one query row: three passes over the keys. (Vaswani et al. 2017,
/// equation 1.)
inline Answer three_passes(const Problem& x) {
  const std::size_t keys = x.k.size();

  // pass 1: the scores                                              s_j = scale * dot(q, k_j)
  Row s(keys);
  for (std::size_t j = 0; j < keys; ++j) s[j] = score(x, j);

  // pass 2: how much each key weighs                                w_j = exp(s_j), l = sum_j w_j
  Row w(keys);
  double l = 0;
  for (std::size_t j = 0; j < keys; ++j) l += w[j] = std::exp(s[j]);

  // pass 3: the mean of the values                                  o = sum_j w_j v_j / l
  Answer answer{Row(x.v[0].size()), std::log(l)};
  for (std::size_t j = 0; j < keys; ++j)
    for (std::size_t d = 0; d < answer.o.size(); ++d) answer.o[d] += w[j] / l * x.v[j][d];
  return answer;
}

}  // namespace lesson
