#pragma once

#include "mods/check.h"
#include "mods/lang/call.h"
#include "mods/lang/number.h"

namespace attn {

/// A mod where a mask attends, -inf elsewhere.
///
///     t = mask(b, h, i, j) ? mod(s, b, h, i, j) : -inf
///
/// This is what a mask does anyway; as a mod it hides pairs from the middle of a composition, and
/// it tests that a kernel treats a -inf that a mod returns as a masked pair. No block is skipped
/// for it: prefer a mask.
///
/// Elsewhere: `rel_causal` of PyTorch FlexAttention's tests is `masked(causal(), distance_bias())`.
template <class Mask, class Mod>
struct Masked {
  Mask mask;  ///< which scores stay
  Mod mod;    ///< what becomes of them

  template <class Score, class Env>
  ATTN_HOST_DEVICE Score operator()(Score s, Index<Env> b, Index<Env> h, Index<Env> q,
                                    Index<Env> kv) const {
    const Score t(call_mod(mod, s, b, h, q, kv));
    return attn::select(call_mask(mask, b, h, q, kv), t, Score(-infinity));
  }
  void check(const Sizes& sizes) const {  /// both parts
    if constexpr (requires { mask.check(sizes); }) mask.check(sizes);
    check_mod(mod, sizes);
  }
};

/// `mod` where `mask` says yes, -inf elsewhere.
template <class Mask, class Mod>
Masked<Mask, Mod> masked(const Mask& mask, const Mod& mod) {
  return {mask, mod};
}

}  // namespace attn
