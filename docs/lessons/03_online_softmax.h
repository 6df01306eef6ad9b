#pragma once

#include <algorithm>
#include <limits>

#include "docs/lessons/problem.h"

namespace lesson {

/// The online softmax (Milakov and Gimelshein 2018, algorithm 3): one pass, no array of scores.
/// What is kept is right for the keys seen so far; a new largest score rescales it.
inline Answer online_softmax(const Problem& x) {
  double m = -std::numeric_limits<double>::infinity();  // the largest score so far
  double l = 0;                                         // sum of exp(s - m) so far
  Row o(x.v[0].size());                                 // sum of exp(s - m) v so far

  for (std::size_t j = 0; j < x.k.size(); ++j) {
    const double s = score(x, j);
    // five statements
    const double larger = std::max(m, s);
    const double rescale = std::exp(m - larger);  // 0 at the first key: exp(-inf)
    const double w = std::exp(s - larger);
    l = l * rescale + w;
    for (std::size_t d = 0; d < o.size(); ++d) o[d] = o[d] * rescale + w * x.v[j][d];
    m = larger;
  }
  for (double& value : o) value /= l;
  return {o, m + std::log(l)};
}

}  // namespace lesson
