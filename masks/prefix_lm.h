#pragma once

#include <cstdint>

#include "masks/key_count.h"

namespace attn {

/// The prefix is seen by everybody, the rest is causal.
///
///     attend(b, h, i, j) = j < p  or  j <= i        p a number, or p[b] captured
///
/// prefix_lm(3):
///
///       keys j
///     i ###...
///       ###...
///       ###...
///       ####..
///       #####.
///       ######
///
/// C. Raffel et al., "Exploring the Limits of Transfer Learning" (T5), 2020, section 3.2.1.
///
/// Elsewhere: `generate_prefix_lm_mask` (attention-gym) and prefix_lm(512) of FlashAttention 4's
/// tests agree; the form j <= p[b] of PyTorch's blog counts the position of the last key of the
/// prefix: one more here.
struct PrefixLm : MaskBase {
  KeyCount prefix;  ///< p: its keys are seen by every query

  template <class Index>
  ATTN_HOST_DEVICE auto operator()(Index b, Index h, Index q, Index kv) const {
    return prefix(b, h, q, kv) || kv <= q;
  }
  /// @throws std::invalid_argument if the length is below 0 or there is not one a batch entry.
  void check(const Sizes& sizes) const { prefix.check(sizes); }
};

/// A prefix of `length` keys. @throws std::invalid_argument if it is below 0.
inline PrefixLm prefix_lm(std::int32_t length) {
  check_at_least("prefix_lm", "length", length, 0);
  return {{}, key_count(length)};
}
/// A length a batch entry, [B] or [1]. The memory stays the caller's.
inline PrefixLm prefix_lm(const Captured<1, std::int32_t>& lengths) {
  return {{}, key_count(lengths)};
}

}  // namespace attn
