#pragma once

#include "optimized/fp32_forward_launch.h"
#include "optimized/tf32_forward.h"

namespace attn {
inline namespace ATTN_TARGET {

/// As fp32_forward, on TF32 tensor cores: what enters a product, Q, K, V and the probabilities, is
/// rounded to 11 significant bits.
template <class Mod, class Mask>
void tf32_forward(const AttentionArguments& call, const Implementation& row, const Mod& mod,
                  const Mask& mask) {
  forward_in_fp32<Tf32Products>(call, row, mod, mask);
}

}  // namespace ATTN_TARGET
}  // namespace attn
