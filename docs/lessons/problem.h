#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

/// What the lessons work on: one query row and its keys, in fp64.
namespace lesson {

/// A vector.
using Row = std::vector<double>;

/// One query and its keys.
struct Problem {
  Row q;               ///< [D]
  std::vector<Row> k;  ///< [Skv][D]
  std::vector<Row> v;  ///< [Skv][Dv]
  double scale = 1;    ///< of Q K^T
};

/// O and LSE of the row.
struct Answer {
  Row o;           ///< [Dv]
  double lse = 0;  ///< the logarithm of the sum of exp(score)
};

/// sum_d a_d b_d
inline double dot(const Row& a, const Row& b) {
  double sum = 0;
  for (std::size_t d = 0; d < a.size(); ++d) sum += a[d] * b[d];
  return sum;
}

/// s_j = scale * dot(q, k_j), of any query.
inline double score(const Row& q, const Problem& x, std::size_t j) {
  return x.scale * dot(q, x.k[j]);
}
/// Of the problem's own query.
inline double score(const Problem& x, std::size_t j) { return score(x.q, x, j); }

/// A random problem; `size` stretches the scores.
inline Problem random_problem(std::uint32_t seed, double size = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  const std::size_t keys = 1 + random() % 40, d = 1 + random() % 8, dv = 1 + random() % 8;
  Problem x{Row(d), std::vector<Row>(keys, Row(d)), std::vector<Row>(keys, Row(dv)),
            size / std::sqrt(d)};
  for (double& a : x.q) a = normal(random);
  for (auto* rows : {&x.k, &x.v})
    for (Row& row : *rows)
      for (double& a : row) a = normal(random);
  return x;
}

/// How far two ways of computing one output may lie apart: every weight e^s carries the rounding of
/// its argument (|s| units) and of a few operations, and n terms are added; each output is at most
/// the largest |v|. A bound on both ways together is twice that. `added` bounds what a mod adds to
/// a score.
inline double rounding_bound(const Problem& x, double added = 0) {
  double largest_score = 0, largest_value = 0;
  for (std::size_t j = 0; j < x.k.size(); ++j) {
    largest_score = std::max(largest_score, std::abs(score(x, j)) + added);
    for (const double value : x.v[j]) largest_value = std::max(largest_value, std::abs(value));
  }
  const double roundings = 4 * largest_score + 2 * static_cast<double>(x.k.size()) + 16;
  return 2 * roundings * 0x1p-53 * std::max(largest_value, 1.0);
}

}  // namespace lesson
