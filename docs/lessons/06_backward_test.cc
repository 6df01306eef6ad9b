#include "docs/lessons/06_backward.h"

#include <gtest/gtest.h>

#include "masks/causal.h"
#include "masks/full.h"
#include "mods/identity.h"

namespace lesson {
namespace {

/// Everything that the loss depends on.
struct Setting {
  Problem x;
  attn::Tensor<float, 1> slopes{{1}};
  int i = 0;
  Row d_o;
  double d_lse = 0;

  explicit Setting(std::uint32_t seed) : x(random_problem(seed)), d_o(x.v[0].size()) {
    std::mt19937 random(seed + 1000);
    std::normal_distribution<double> normal;
    slopes(0) = 0.125f;
    i = static_cast<int>(random() % x.k.size());
    for (double& value : d_o) value = normal(random);
    d_lse = normal(random);
  }
  CappedAlibi mod() const { return CappedAlibi{slopes, 4}; }
  Answer answer() const { return attention(x, i, mod(), attn::causal()); }
  double loss() const { return dot(d_o, answer().o) + d_lse * answer().lse; }
  /// How far `loss` may be off.
  double loss_error() const {
    double size = std::abs(d_lse);
    for (const double value : d_o) size += std::abs(value);
    return size * rounding_bound(x, 4 + 0.125 * x.k.size());
  }
};

/// The derivative of `f` along `at`, and how far it may be off. Central differences D(h) are off by
/// C h^2, so R(h) = (4 D(h) - D(2h)) / 3 is off by C' h^4: R(2h) - R(h) is 15 times that. A loss
/// that is off by e makes R(h) off by at most 3 e / (2 h).
struct Slope {
  double value, error;
};
template <class T, class F>
Slope slope_of(T& at, F f, double e) {
  const T x = at;
  const auto central = [&](double h) {
    at = static_cast<T>(x + h);
    const double above = f();
    at = static_cast<T>(x - h);
    const double below = f();
    at = x;
    return (above - below) / (2 * h);
  };
  const double h = 0x1p-9, d1 = central(h), d2 = central(2 * h), d4 = central(4 * h);
  const double r1 = (4 * d1 - d2) / 3, r2 = (4 * d2 - d4) / 3;
  return {r1, std::abs(r1 - r2) + 3 * e / (2 * h)};
}

// Every gradient against finite differences of the lesson before.
TEST(Backward, IsTheDerivativeOfTheForwardPass) {
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    Setting at(seed);
    const Gradients g =
        backward(at.x, at.i, at.mod(), attn::causal(), at.answer(), at.d_o, at.d_lse);
    const auto check = [&](const char* name, auto& input, double gradient) {
      const Slope slope = slope_of(
          input, [&] { return at.loss(); }, at.loss_error());
      EXPECT_LE(std::abs(gradient - slope.value), slope.error) << name << ", seed " << seed;
    };
    for (std::size_t d = 0; d < at.x.q.size(); ++d) check("dq", at.x.q[d], g.dq[d]);
    for (std::size_t j = 0; j < at.x.k.size(); ++j) {
      for (std::size_t d = 0; d < at.x.q.size(); ++d) check("dk", at.x.k[j][d], g.dk[j][d]);
      for (std::size_t d = 0; d < at.d_o.size(); ++d) check("dv", at.x.v[j][d], g.dv[j][d]);
    }
    ASSERT_EQ(g.d_captured.size(), 1u);
    check("d_slope", at.slopes(0), g.d_captured[0]);
  }
}

// Two keys of equal score: P = 1/2 each, dP = 1 and 5, delta = 3, so dT = -1 and 1. LSE = log 2 is
// rounded, and exp once more: a few units of 2^-53 in P, and so in dT.
TEST(Backward, TwoKeysByHand) {
  const Problem x{{1}, {{0}, {0}}, {{1}, {5}}, 1};
  const Answer answer = attention(x, 0, attn::identity(), attn::full());
  const Gradients g = backward(x, 0, attn::identity(), attn::full(), answer, {1}, 0);
  EXPECT_LE(std::abs(g.dk[0][0] + 1), 8 * 0x1p-53) << "dk[0] is " << g.dk[0][0];
  EXPECT_LE(std::abs(g.dk[1][0] - 1), 8 * 0x1p-53) << "dk[1] is " << g.dk[1][0];
}

// The exercise: if all values are the same, no score matters. Powers of two: exact.
TEST(Backward, EqualValuesGiveNoGradientToScores) {
  const Problem x{{1}, {{0}, {0}, {0}, {0}}, {{3}, {3}, {3}, {3}}, 1};
  const Answer answer{{3}, 0};
  const Gradients g = backward(x, 0, attn::identity(), attn::full(), answer, {2}, 0);
  for (const Row& dk : g.dk) EXPECT_EQ(dk[0], 0);
}

}  // namespace
}  // namespace lesson
