#pragma once

#include <cstdint>

#include "mods/arguments_check.h"

namespace attn {

/// The part of multi-head latent attention's score that carries the position.
///
///     t[i,j] = s[i,j] + scale * sum_d q_rope[b, h, i, d] * k_rope[b, j, d]
///
/// s is the product in the compressed space, where no rotation can be applied; the rotated parts
/// are few dimensions, the keys' shared by all heads, and come as captured tensors with a gradient
/// each.
///
/// DeepSeek-AI, "DeepSeek-V2", 2024, section 2.1.3 (decoupled rotary position embedding). One score
/// costs R multiplications more: real kernels append the R dimensions to Q and K instead, which
/// gives the same scores; as a mod it needs no kernel of its own.
///
/// Elsewhere: `generate_mla_rope_score_mod` (attention-gym).
struct MlaRope {
  Captured<4> q_rope;  ///< [B or 1, Hq or 1, Sq, R]
  Captured<3> k_rope;  ///< [B or 1, Skv, R]
  float scale = 1;     ///< of the rotated part's product

  template <class Score, class Index>
  ATTN_HOST_DEVICE Score operator()(Score s, Index b, Index h, Index q, Index kv) const {
    Score dot(0);
    for (std::int32_t d = 0; d < q_rope.tensor.extents[3]; ++d)
      dot = dot + q_rope(b, h, q, d) * k_rope(b, kv, d);
    return s + scale * dot;
  }
  /// @throws std::invalid_argument if a table does not cover the problem or R differs.
  void check(const Sizes& sizes) const {
    check_table("mla_rope", "q_rope", q_rope, one_or("B", sizes.b), one_or("Hq", sizes.hq),
                at_least("Sq", sizes.sq), at_least("R", 1));
    check_table("mla_rope", "k_rope", k_rope, one_or("B", sizes.b), at_least("Skv", sizes.skv),
                exactly("R", q_rope.tensor.extents[3]));
  }
};

/// The memory stays the caller's.
inline MlaRope mla_rope(Captured<4> q_rope, Captured<3> k_rope, float scale) {
  q_rope.name = "q_rope";
  k_rope.name = "k_rope";
  return {q_rope, k_rope, scale};
}

}  // namespace attn
