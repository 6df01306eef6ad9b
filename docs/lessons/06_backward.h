#pragma once

#include "docs/lessons/05_mods_and_masks.h"

namespace lesson {

/// The gradients of sum(dO * O) + dLSE * LSE for one query row.
struct Gradients {
  Row dq;               ///< [D]
  std::vector<Row> dk;  ///< [Skv][D]
  std::vector<Row> dv;  ///< [Skv][Dv]
  Row d_captured;       ///< one for each captured read of the mod, in order
};

/// The backward pass of lesson 5, from its `answer`: the weights are computed again from the scores
/// and LSE (FlashAttention-2, Dao 2023, algorithm 2), never stored.
template <class Mod, class Mask>
Gradients backward(const Problem& x, int i, const Mod& mod, const Mask& mask, const Answer& answer,
                   const Row& d_o, double d_lse) {
  using Dual = attn::Dual<double>;
  OnDuals asked(static_cast<int>(x.k.size()));
  Gradients g{Row(x.q.size()),
              std::vector<Row>(x.k.size(), Row(x.q.size())),
              std::vector<Row>(x.v.size(), Row(d_o.size())),
              {}};
  const double delta = dot(d_o, answer.o);  // what moving all weights together would change

  for (int j = 0; j < static_cast<int>(x.k.size()); ++j) {
    if (!asked.mask(mask, i, j)) continue;
    const double s = score(x, static_cast<std::size_t>(j));
    const Dual t = asked.mod(mod, Dual(s, 1), i, j);  // t.d = d mod / d score
    const double p = std::exp(t.v - answer.lse);      // P    the weight, normalised
    const double dp = dot(d_o, x.v[j]);               // dP   O = sum P V
    const double dt = p * (dp - delta + d_lse);       // dT   through the softmax
    const double ds = dt * t.d;                       // dS   through the mod
    for (std::size_t d = 0; d < g.dq.size(); ++d) {
      g.dq[d] += x.scale * ds * x.k[j][d];  // s = scale q k
      g.dk[j][d] += x.scale * ds * x.q[d];
    }
    for (std::size_t d = 0; d < d_o.size(); ++d) g.dv[j][d] += p * d_o[d];

    // captured entries: the mod once more for each read, that read carrying the tangent
    int reads = 1;
    for (asked.env.seeded = 0; asked.env.seeded < reads; ++asked.env.seeded) {
      asked.env.reads = 0;
      const Dual y = asked.mod(mod, Dual(s), i, j);
      reads = asked.env.reads;
      g.d_captured.resize(static_cast<std::size_t>(reads));
      if (reads > 0) g.d_captured[asked.env.seeded] += dt * y.d;
    }
    asked.env.seeded = -1;
  }
  return g;
}

}  // namespace lesson
