#pragma once

#include <cstdint>

#include "masks/algebra.h"
#include "mods/arguments_check.h"

namespace attn {

/// Only the first keys exist; the rest is padding.
///
///     key_count(n)        attend(b, h, i, j) = j < n
///     key_count(counts)                        j < counts[b]        captured, [B] or [1]
///
/// key_count(3):
///
///       keys j
///     i ###..
///       ###..
///       ###..
///
/// Elsewhere: padding masks of dense batches (PyTorch, cuDNN's `seq_len_kv`, FlashInfer);
/// `truncated_key_mask` (axlearn) has one n for the batch. `key_padding_mask` of booleans is
/// `dense(mask)`. A count of 0 leaves every row of its batch entry without a key.
struct KeyCount : MaskBase {
  std::int32_t count = 0;            ///< where `counts` is unset
  Captured<1, std::int32_t> counts;  ///< [B] or [1], or unset

  template <class Index>
  ATTN_HOST_DEVICE auto operator()(Index b, Index, Index, Index kv) const {
    if (counts.tensor.data == nullptr) return kv < count;
    return kv < counts(b);
  }
  /// @throws std::invalid_argument if the count is below 0 or there is not one a batch entry.
  void check(const Sizes& sizes) const {
    check_at_least("key_count", "count", count, 0);
    if (counts.tensor.data != nullptr)
      check_table("key_count", "counts", counts, one_or("B", sizes.b));
  }
};

/// The first `count` keys of every batch entry. @throws std::invalid_argument if it is below 0.
inline KeyCount key_count(std::int32_t count) {
  check_at_least("key_count", "count", count, 0);
  return {{}, count, {}};
}
/// A count a batch entry, [B] or [1]. The memory stays the caller's.
inline KeyCount key_count(Captured<1, std::int32_t> counts) {
  counts.name = "counts";
  return {{}, 0, counts};
}

}  // namespace attn
