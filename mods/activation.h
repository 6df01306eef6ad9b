#pragma once

#include <cmath>
#include <stdexcept>
#include <string>

#include "mods/lang/index.h"

namespace attn {

/// Attention by an activation in place of the softmax, run on a kernel that has only the softmax.
///
///     t = log(f(s) + n)
///
/// so that exp(t) = f(s) + n, exp(LSE[i]) is their sum over the keys, and
///
///     exp(LSE[i]) * O[i] = sum_j (f(s[i,j]) + n) * V[j]
///
/// is attention without the normalisation: scale each row of the output by exp(LSE). f(s) + n must
/// be positive; a pair where it is 0 is masked (t = -inf).
///
/// Elsewhere: the activation score mod of attention-gym. With f = sigmoid and n = 0 it gives
/// sigmoid attention (J. Ramapuram et al., "Theory, Analysis, and Best Practices for Sigmoid
/// Self-Attention", 2024; `FlashSigmoid` of FlashInfer), there with a bias inside: add it before.
template <class F>
struct Activation {
  F f;          ///< a functor on scores, not below -n
  float n = 0;  ///< added to it

  template <class Score, class Index>
  ATTN_HOST_DEVICE Score operator()(Score s, Index, Index, Index, Index) const {
    return attn::log(f(s) + n);
  }
  /// @throws std::invalid_argument if n is not a finite number of 0 or more.
  void check(const Sizes&) const {
    if (!(n >= 0 && std::isfinite(n)))
      throw std::invalid_argument("activation: n = " + std::to_string(n) +
                                  ", expected a finite number of 0 or more");
  }
};

/// max(s, 0).
struct Relu {
  template <class Score>
  ATTN_HOST_DEVICE Score operator()(const Score& s) const {
    return attn::max(s, Score(0));
  }
};
/// 1 / (1 + exp(-s)).
struct SigmoidOfScore {
  template <class Score>
  ATTN_HOST_DEVICE Score operator()(const Score& s) const {
    return attn::sigmoid(s);
  }
};

/// @throws std::invalid_argument if `n` is not a finite number of 0 or more.
template <class F>
Activation<F> activation(const F& f, float n) {
  const Activation<F> mod{f, n};
  mod.check({});
  return mod;
}

}  // namespace attn
