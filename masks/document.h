#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "masks/algebra.h"
#include "mods/lang/captured.h"

namespace attn {

/// Several documents share one sequence; a query attends within its own.
///
///     attend(b, h, i, j) = q_ids[b, i] == kv_ids[b, j]
///
/// Ids are any 32-bit numbers and need not be sorted. document(0 0 0 1 1 2 2 2):
///
///       keys j
///     i ###.....
///       ###.....
///       ###.....
///       ...##...
///       ...##...
///       .....###
///       .....###
///       .....###
///
/// M. Krell et al., "Efficient Sequence Packing without Cross-contamination", 2021, section 3.2.
///
/// Elsewhere: document masking (PyTorch FlexAttention), `SegmentIds` (JAX splash attention),
/// `BlockDiagonalMask` (xFormers; `document_ids` turns its lengths into ids). Causal inside each
/// document is `causal() && document(ids)`: where both sides share one table, global positions give
/// the same order as local ones. Padding under an id of its own (say -1) attends to padding only.
struct Document : MaskBase {
  Captured<2, std::int32_t> q_ids;   ///< [B or 1, at least Sq]
  Captured<2, std::int32_t> kv_ids;  ///< [B or 1, at least Skv]

  template <class Index>
  ATTN_HOST_DEVICE auto operator()(Index b, Index, Index q, Index kv) const {
    return q_ids(b, q) == kv_ids(b, kv);
  }

  /// @throws std::invalid_argument if a table is shorter than its sequence or has neither one row
  ///     nor one a batch entry.
  void check(const Sizes& sizes) const {
    check_table(q_ids, sizes.b, "Sq", sizes.sq);
    check_table(kv_ids, sizes.b, "Skv", sizes.skv);
  }

 private:
  static void check_table(const Captured<2, std::int32_t>& ids, int batch, const char* axis,
                          int length) {
    const auto& extents = ids.tensor.extents;
    if ((extents[0] != 1 && extents[0] != batch) || extents[1] < length)
      throw std::invalid_argument(std::string("document: ") + ids.name + " has shape " +
                                  shape_string(extents) +
                                  ", expected [1 or B = " + std::to_string(batch) + ", at least " +
                                  axis + " = " + std::to_string(length) + "]");
  }
};

/// Ids of the queries and of the keys, [B, Sq] and [B, Skv]. The memory stays the caller's.
inline Document document(Captured<2, std::int32_t> q_ids, Captured<2, std::int32_t> kv_ids) {
  q_ids.name = "q_ids";
  kv_ids.name = "kv_ids";
  return {{}, q_ids, kv_ids};
}
/// One table for both sides, [B, at least max(Sq, Skv)].
inline Document document(const Captured<2, std::int32_t>& ids) { return document(ids, ids); }

/// The same documents in every batch entry: [Sq] and [Skv].
inline Document document(const Captured<1, std::int32_t>& q_ids,
                         const Captured<1, std::int32_t>& kv_ids) {
  const auto one_row = [](const TensorView<const std::int32_t, 1>& ids) {
    return TensorView<const std::int32_t, 2>{ids.data, {1, ids.extents[0]}, {0, ids.strides[0]}};
  };
  return document(Captured<2, std::int32_t>(one_row(q_ids.tensor)),
                  Captured<2, std::int32_t>(one_row(kv_ids.tensor)));
}
/// One table for both sides, the same in every batch entry.
inline Document document(const Captured<1, std::int32_t>& ids) { return document(ids, ids); }

/// The ids of documents of these lengths, one after another: {3, 0, 2} gives 0 0 0 2 2.
/// @throws std::invalid_argument if a length is negative.
inline Tensor<std::int32_t, 1> document_ids(const std::vector<std::int64_t>& lengths) {
  std::int64_t total = 0;
  for (const std::int64_t length : lengths) {
    if (length < 0)
      throw std::invalid_argument("document_ids: length " + std::to_string(length) +
                                  ", expected 0 or more");
    total += length;
  }
  Tensor<std::int32_t, 1> ids({total});
  std::int64_t at = 0;
  for (std::size_t document = 0; document < lengths.size(); ++document)
    for (std::int64_t n = 0; n < lengths[document]; ++n)
      ids(at++) = static_cast<std::int32_t>(document);
  return ids;
}

}  // namespace attn
