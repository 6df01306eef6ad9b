#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "mods/lang/philox.h"
#include "reference/backward.h"
#include "reference/fixtures.h"

/// What the tests of gradients share: cases, error bounds, and central differences of the three
/// loops of fixtures.h.
namespace attn::reference {

inline Problem sizes_of(int b, int hq, int hkv, int sq, int skv, int d, int dv,
                        double scale = 0.5) {
  Problem p;
  p.b = b, p.hq = hq, p.hkv = hkv, p.sq = sq, p.skv = skv, p.d = d, p.dv = dv, p.scale = scale;
  return p;
}

/// Inputs and incoming gradients.
struct Case {
  Case(const Problem& problem, unsigned seed)
      : p(problem),
        in{random_tensor<double, 4>(p.q_extents(), seed),
           random_tensor<double, 4>(p.k_extents(), seed + 1),
           random_tensor<double, 4>(p.v_extents(), seed + 2)},
        d_o(random_tensor<double, 4>(p.o_extents(), seed + 3)),
        d_lse(random_tensor<double, 3>(p.lse_extents(), seed + 4)) {}
  Problem p;
  Inputs in;
  Tensor4 d_o;
  Tensor3 d_lse;
};

/// How far correct fp64 gradients may be from the exact ones: `rho` times the sum of the magnitudes
/// of their terms. With y = 3 * lse_bound + 2u the relative error of P = exp(t - LSE) (t, LSE and
/// the difference: E, lse_bound and u |t - LSE|, each at most lse_bound; exp: 2u), w that of O
/// against sum P |V|, and A[i,j] = sum |dO V[j]| + sum |dO| (P |V|)[i] + |dLSE| (through
/// dropout: its factor rounds once, at most 4 u in all):
///
///     dT   relative to P A          y + w + (Dv + 4) u
///     dS   relative to P A F        E + 16 u more, where |f'|, |f''| and |df/dC| are at most F
///     sums of n terms               n u more, n = Skv or Sq * G, and u for the scale
struct GradientBounds {
  double rho = 0, pairs = 0;   ///< pairs: F * sum of P A over all pairs, for captured entries
  Tensor4 dq, dk, dv;          ///< magnitudes
  std::vector<double> d_sink;  ///< magnitudes [Hq]
};

inline GradientBounds gradient_bounds(const Case& c, const Expected& e, double F,
                                      const Variant& variant = {}) {
  const Problem& p = c.p;
  GradientBounds out{0,
                     0,
                     Tensor4(p.q_extents()),
                     Tensor4(p.k_extents()),
                     Tensor4(p.v_extents()),
                     std::vector<double>(p.hq)};
  double lse_error = 0;
  for (double x : e.lse_bound.values()) lse_error = std::max(lse_error, x);
  out.rho = std::expm1(4 * lse_error + std::log1p(e.weight_error) +
                       unit * (p.dv + 2 * p.skv + p.sq * p.group() + 32));
  for (int b = 0; b < p.b; ++b)
    for (int h = 0; h < p.hq; ++h)
      for (int i = 0; i < p.sq; ++i) {
        const int g = h / p.group();
        double row = std::abs(c.d_lse(b, h, i));
        for (int j = 0; j < p.skv; ++j)
          for (int d = 0; d < p.dv; ++d)
            row += std::abs(c.d_o(b, h, i, d) * c.in.v(b, g, j, d)) *
                   static_cast<double>(e.dropped(b, h, i, j));
        out.d_sink[h] += static_cast<double>(e.sink(b, h, i)) * row;
        for (int j = 0; j < p.skv; ++j) {
          const double weight = static_cast<double>(e.p(b, h, i, j)),
                       dropped = static_cast<double>(e.dropped(b, h, i, j)),
                       factor = variant.factor ? variant.factor(b, h, i, j) : 1;
          double a = row;
          for (int d = 0; d < p.dv; ++d) {
            a += factor * std::abs(c.d_o(b, h, i, d) * c.in.v(b, g, j, d));
            out.dv(b, g, j, d) += dropped * std::abs(c.d_o(b, h, i, d));
          }
          const double term = F * weight * a;
          out.pairs += term;
          for (int d = 0; d < p.d; ++d) {
            out.dq(b, h, i, d) += std::abs(p.scale * c.in.k(b, g, j, d)) * term;
            out.dk(b, g, j, d) += std::abs(p.scale * c.in.q(b, h, i, d)) * term;
          }
        }
      }
  return out;
}

// ---- against central differences ---------------------------------------------------------------

struct Loss {
  long double value = 0;  ///< sum dO * O + sum dLSE * LSE
  double error = 0;       ///< of its evaluation
};

inline Loss loss(const Case& c, const HandMod& mod, const HandMask& mask,
                 const Variant& variant = {}) {
  const Expected e = expected(c.p, c.in, mod, mask, variant);
  Loss out;
  double fp64 = 0, sizes = 0;
  const auto add = [&](double weight, long double x, double bound) {
    if (x == -INFINITY) return;  // a row with no key
    out.value += weight * x;
    fp64 += std::abs(weight) * bound;
    sizes += static_cast<double>(std::abs(weight * x));
  };
  for (std::size_t n = 0; n < c.d_o.values().size(); ++n)
    add(c.d_o.values()[n], e.o.values()[n], e.o_bound.values()[n]);
  for (std::size_t n = 0; n < c.d_lse.values().size(); ++n)
    add(c.d_lse.values()[n], e.lse.values()[n], e.lse_bound.values()[n]);
  // `expected` bounds fp64; its own roundings are those of long double.
  const double own = std::numeric_limits<long double>::epsilon() / 2;
  out.error = fp64 * own / unit + own * (c.d_o.values().size() + c.d_lse.values().size()) * sizes;
  return out;
}

/// The derivative of f along x by central differences D of steps h and 2h, extrapolated
/// (Richardson): R(h) = (4 D(h) - D(2h)) / 3 is off by C h^4, so R(h) - R(2h) is 15 times the
/// truncation. A loss that is off by e makes D(h) off by e / h, and R(h) by at most 3e / (2h).
template <class X, class F>
Bounded derivative(X& x, F f) {
  const X at = x;
  double error = 0;
  const auto central = [&](double h) {
    x = static_cast<X>(at + h);
    const Loss above = f();
    x = static_cast<X>(at - h);
    const Loss below = f();
    x = at;
    error = std::max({error, above.error, below.error});
    return (above.value - below.value) / (2 * h);
  };
  constexpr double h = 0x1p-10;  // x + h is exact
  const long double d1 = central(h), d2 = central(2 * h), d4 = central(4 * h);
  const long double r1 = (4 * d1 - d2) / 3, r2 = (4 * d2 - d4) / 3;
  return {r1, static_cast<double>(std::abs(r1 - r2)) + 1.5 * error / h};
}

using Floats = std::vector<Tensor<float, 1>*>;

/// What a test adds to a case. The sink's entries may be moved.
struct Extras {
  Tensor<float, 1>* sink = nullptr;  ///< [Hq]
  Dropout dropout{};

  Options options(const Problem& p) const {
    Options options{p.scale, {}, dropout};
    if (sink) options.sink = sink->view();
    return options;
  }
  /// The same for the three loops.
  Variant variant() const {
    Variant variant;
    if (sink) variant.sink.assign(sink->values().begin(), sink->values().end());
    if (dropout.p > 0)
      variant.factor = [d = dropout](int b, int h, int i, int j) {
        const PhiloxWords counter{{unsigned(j) / 4, unsigned(i), unsigned(h), unsigned(b)}};
        const double word = philox4x32(counter, d.seed).word[j % 4];
        return word < std::round(d.p * 0x1p32) ? 0 : 1 / (1 - d.p);
      };
    return variant;
  }
};

/// Every `step`-th entry of every gradient. `F` bounds |f'|, |f''| and |df/dC| of the mod, times
/// its reads of one entry; `captured` are the tensors it reads, in order of first read.
template <class Mod, class MaskMod>
void expect_gradients(Case c, const Mod& mod, const MaskMod& mask, const HandMod& by_hand,
                      const HandMask& hand_mask, double F, const Floats& captured = {},
                      std::size_t step = 1, const Extras& extras = {}) {
  const BackwardResult got = backward(c.in.q.view(), c.in.k.view(), c.in.v.view(), c.d_o.view(),
                                      mod, mask, extras.options(c.p), c.d_lse.view());
  const Variant variant = extras.variant();
  const GradientBounds bounds =
      gradient_bounds(c, expected(c.p, c.in, by_hand, hand_mask, variant), F, variant);
  const auto f = [&] { return loss(c, by_hand, hand_mask, extras.variant()); };
  const auto check = [&](const char* name, auto& values, const std::vector<double>& gradient,
                         auto magnitude) {
    ASSERT_EQ(values.size(), gradient.size()) << name;
    for (std::size_t n = 0; n < values.size(); n += step) {
      const Bounded want = derivative(values[n], f);
      const double bound = want.error + bounds.rho * magnitude(n);
      EXPECT_LE(std::abs(gradient[n] - want.value), bound)
          << name << " entry " << n << ": got " << gradient[n] << ", expected " << want.value;
    }
  };
  const auto entries = [](const Tensor4& x) {
    return [&x](std::size_t n) { return x.values()[n]; };
  };
  check("dq", c.in.q.values(), got.dq.values(), entries(bounds.dq));
  check("dk", c.in.k.values(), got.dk.values(), entries(bounds.dk));
  check("dv", c.in.v.values(), got.dv.values(), entries(bounds.dv));
  ASSERT_EQ(got.d_captured.size(), captured.size());
  for (std::size_t n = 0; n < captured.size(); ++n) {
    EXPECT_EQ(got.d_captured[n].tensor.data, captured[n]->values().data());
    check("captured", captured[n]->values(), got.d_captured[n].values,
          [&](std::size_t) { return bounds.pairs; });
  }
  if (extras.sink)
    check("sink", extras.sink->values(), got.d_sink,
          [&](std::size_t h) { return bounds.d_sink[h]; });
}

inline bool hand_causal(int, int, int q, int kv) { return kv <= q; }

}  // namespace attn::reference
