#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

#include "masks/dense.h"

namespace attn {

/// A fixed random array: each pair attends with probability `density`.
///
///     attend(b, h, i, j) = u[i, j] < density        u uniform in [0, 1), from the seed
///
///       keys j
///     i .#..#.#.
///       ##...#..
///       ..#.#..#
///       #...##.#
///
/// Which pairs, is a function of seed and position alone: the leading part of a larger array is the
/// smaller one. The array owns its memory (a byte a pair); the mask of it is `dense(array.view())`.
///
/// Elsewhere: `make_random_mask(shape, sparsity, seed)` (JAX splash attention): density = 1 -
/// sparsity, another generator. R. Child et al. and BigBird add such pairs to a local mask.
class RandomPairs {
 public:
  /// @throws std::invalid_argument if a length is negative or the density outside 0 to 1.
  RandomPairs(std::int64_t sq, std::int64_t skv, double density, std::uint64_t seed)
      : sq_(sq), skv_(skv) {
    if (sq < 0 || skv < 0)
      throw std::invalid_argument("random_pairs: shape " + shape_string(view().extents) +
                                  ", expected no length below zero");
    if (!(density >= 0 && density <= 1))
      throw std::invalid_argument("random_pairs: density = " + std::to_string(density) +
                                  ", expected 0 to 1");
    pairs_ = std::make_unique<bool[]>(static_cast<std::size_t>(sq * skv));
    for (std::int64_t i = 0; i < sq; ++i)
      for (std::int64_t j = 0; j < skv; ++j)
        pairs_[static_cast<std::size_t>(i * skv + j)] = uniform(seed, i, j) < density;
  }
  /// [Sq, Skv]: true where a pair attends. The memory is this object's.
  TensorView<const bool, 2> view() const { return {pairs_.get(), {sq_, skv_}, {skv_, 1}}; }

  /// In [0, 1): the top 53 bits of two rounds of SplitMix64 (G. L. Steele et al., 2014).
  static double uniform(std::uint64_t seed, std::int64_t i, std::int64_t j) {
    const std::uint64_t row = mix(seed + static_cast<std::uint64_t>(i));
    return static_cast<double>(mix(row + static_cast<std::uint64_t>(j)) >> 11) * 0x1p-53;
  }

 private:
  static std::uint64_t mix(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  }
  std::int64_t sq_, skv_;
  std::unique_ptr<bool[]> pairs_;
};

/// The array for one problem; see `RandomPairs`.
inline RandomPairs random_pairs(std::int64_t sq, std::int64_t skv, double density,
                                std::uint64_t seed) {
  return {sq, skv, density, seed};
}

}  // namespace attn
