#pragma once

#include <vector>

#include "masks/document.h"
#include "mods/arguments_check.h"

namespace attn {

/// A mask inside each document of a packed sequence, in the document's own positions.
///
///     attend(b, h, i, j) = q_ids[b, i] == kv_ids[b, j]
///                          and mask(b, h, i - q_origin[b, i], j - kv_origin[b, j])
///
/// An origin is the position that the document counts from, repeated for each of its tokens:
///
///     document_starts    first tokens meet: the inner mask is aligned top left
///     document_ends      one past the last tokens meet: aligned bottom right, document by document
///
/// Queries in documents of 2 and 3 tokens, keys in documents of 3 and 4, inner causal():
///
///     starts    ends
///     #......   ##.....
///     ##.....   ###....
///     ...#...   ...##..
///     ...##..   ...###.
///     ...###.   ...####
///
/// Inner positions may be negative, and those of two tokens of different documents compare
/// anything; the inner mask runs on them all the same. Its `sizes` are those of the whole problem.
///
/// Elsewhere: `generate_doc_mask_mod` (attention-gym; `starts` are its offsets), and the classes
/// `BlockDiagonal...Mask` of xFormers: plain and Causal by starts, FromBottomRight and the ones
/// with padded or gappy keys by ends, padding keys under an id of their own.
template <class Mask>
struct DocumentWise : MaskBase {
  Document same_document;               ///< by the ids of queries and keys
  Captured<2, std::int32_t> q_origin;   ///< [B or 1, at least Sq]
  Captured<2, std::int32_t> kv_origin;  ///< [B or 1, at least Skv]
  Mask mask;                            ///< inside a document, in its own positions

  template <class Env>
  ATTN_HOST_DEVICE auto operator()(Index<Env> b, Index<Env> h, Index<Env> q, Index<Env> kv) const {
    const auto inner = call_mask(mask, b, h, q - q_origin(b, q), kv - kv_origin(b, kv));
    return same_document(b, h, q, kv) && inner;
  }

  /// @throws std::invalid_argument if a table does not cover its sequence.
  void check(const Sizes& sizes) const {
    same_document.check(sizes);
    check_table("document_wise", "q_origin", q_origin, one_or("B", sizes.b),
                at_least("Sq", sizes.sq));
    check_table("document_wise", "kv_origin", kv_origin, one_or("B", sizes.b),
                at_least("Skv", sizes.skv));
    check_mask(mask, sizes);
  }
};

/// Queries and keys in documents of their own lengths. The memory stays the caller's.
template <class Mask>
DocumentWise<Mask> document_wise(const Document& same_document,
                                 const Captured<2, std::int32_t>& q_origin,
                                 const Captured<2, std::int32_t>& kv_origin, const Mask& mask) {
  return {{}, same_document, q_origin, kv_origin, mask};
}
/// The same origins in every batch entry: [Sq] and [Skv].
template <class Mask>
DocumentWise<Mask> document_wise(const Document& same_document,
                                 const Captured<1, std::int32_t>& q_origin,
                                 const Captured<1, std::int32_t>& kv_origin, const Mask& mask) {
  return {{}, same_document, one_row(q_origin), one_row(kv_origin), mask};
}
/// The same documents on both sides.
template <class Mask>
DocumentWise<Mask> document_wise(const Captured<1, std::int32_t>& ids,
                                 const Captured<1, std::int32_t>& origin, const Mask& mask) {
  return document_wise(document(ids), origin, origin, mask);
}

/// Where the document of each token starts: lengths {3, 0, 2} give 0 0 0 3 3.
/// @throws std::invalid_argument if a length is negative.
inline Tensor<std::int32_t, 1> document_starts(const std::vector<std::int64_t>& lengths) {
  Tensor<std::int32_t, 1> starts(document_ids(lengths).extents());
  std::int64_t at = 0;
  for (const std::int64_t length : lengths) {
    const std::int64_t start = at;
    for (; at < start + length; ++at) starts(at) = static_cast<std::int32_t>(start);
  }
  return starts;
}
/// One past the last token of each token's document: lengths {3, 0, 2} give 3 3 3 5 5.
/// @throws std::invalid_argument if a length is negative.
inline Tensor<std::int32_t, 1> document_ends(const std::vector<std::int64_t>& lengths) {
  Tensor<std::int32_t, 1> ends(document_ids(lengths).extents());
  std::int64_t at = 0;
  for (const std::int64_t length : lengths) {
    const std::int64_t end = at + length;
    for (; at < end; ++at) ends(at) = static_cast<std::int32_t>(end);
  }
  return ends;
}

}  // namespace attn
