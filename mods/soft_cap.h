#pragma once

#include <cmath>
#include <stdexcept>
#include <string>

#include "mods/lang/index.h"

namespace attn {

/// Keeps scores between -cap and cap, smoothly.
///
///     t = cap * tanh(s / cap)          dt/ds = 1 - tanh(s / cap)^2
///
///        t
///      cap |         _____---
///          |     _--
///          |   /
///          | /                s
///     -----/-------------------
///
/// Gemma Team, "Gemma 2", 2024, section 2, with cap = 50 for attention scores; Grok-1 uses 30.
/// Scores that are small beside the cap pass unchanged, to first order.
///
/// Elsewhere: `softcap` (FlashAttention), `logits_soft_cap` (FlashInfer), `attn_logits_soft_cap`
/// (JAX splash attention); there 0 stands for no cap, here leave the mod out. The cap comes before
/// the mask: after it, a masked -inf would come back as -cap.
struct SoftCap {
  float cap = 0;  ///< in the units of scores, above 0

  template <class Score, class Index>
  ATTN_HOST_DEVICE Score operator()(Score s, Index, Index, Index, Index) const {
    return cap * attn::tanh(s / cap);
  }

  /// @throws std::invalid_argument if the cap is not positive and finite.
  void check(const Sizes&) const {
    if (!(cap > 0 && std::isfinite(cap)))
      throw std::invalid_argument("soft_cap: cap = " + std::to_string(cap) +
                                  ", expected a positive finite number");
  }
};

/// @throws std::invalid_argument if `cap` is not positive and finite.
inline SoftCap soft_cap(float cap) {
  const SoftCap mod{cap};
  mod.check({});
  return mod;
}

}  // namespace attn
