#pragma once

#include <cstdint>

#include "masks/algebra.h"
#include "mods/arguments_check.h"

namespace attn {

/// Packed documents, causal in each, as one interval a row.
///
///     attend(b, h, i, j) = start[b, i] <= j <= i        start: where the document of row i begins
///
/// packed_causal(0 0 0 3 3 5 5):
///
///       keys j
///     i #......
///       ##.....
///       ###....
///       ...#...
///       ...##..
///       .....#.
///       .....##
///
/// The same pairs as `causal() && document(ids)`, with one read a row instead of one a pair.
/// `document_starts` makes the table from lengths.
///
/// Elsewhere: `generate_packed_causal_doc_mask_mod` (attention-gym).
struct PackedCausal : MaskBase {
  Captured<2, std::int32_t> start;  ///< [B or 1, at least Sq]

  template <class Index>
  ATTN_HOST_DEVICE auto operator()(Index b, Index, Index q, Index kv) const {
    return start(b, q) <= kv && kv <= q;
  }
  /// @throws std::invalid_argument if the table does not cover the queries.
  void check(const Sizes& sizes) const {
    check_table("packed_causal", "start", start, one_or("B", sizes.b), at_least("Sq", sizes.sq));
  }
};

/// A start a token, [B, Sq]. The memory stays the caller's.
inline PackedCausal packed_causal(Captured<2, std::int32_t> start) {
  start.name = "start";
  return {{}, start};
}
/// The same documents in every batch entry, [Sq].
inline PackedCausal packed_causal(const Captured<1, std::int32_t>& start) {
  return packed_causal(one_row(start));
}

}  // namespace attn
