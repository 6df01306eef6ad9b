#pragma once

#include <cstdint>

#include "masks/algebra.h"
#include "mods/arguments_check.h"

namespace attn {

/// Packed documents that continue one another: each is causal, and also sees all of the document
/// that is its prefix.
///
///     d = ids[i], p = prefix[d]
///     attend(b, h, i, j) = offsets[d] <= j <= i
///                          or  p != d  and  offsets[p] <= j < offsets[p + 1]
///
/// Documents of 2, 3 and 2 tokens, both later ones continue the first: offsets 0 2 5 7, prefix 0 0
/// 0:
///
///       keys j
///     i #......
///       ##.....
///       ###....
///       ####...
///       #####..
///       ##...#.
///       ##...##
///
/// A document that is its own prefix has none. Elsewhere: `generate_shared_prefix_mask_mod`
/// (attention-gym); the cascade of FlashInfer computes the two parts apart and merges them.
struct SharedPrefix : MaskBase {
  Captured<1, std::int32_t> ids;      ///< [at least Sq], each 0 to documents - 1
  Captured<1, std::int32_t> offsets;  ///< [documents + 1], where each document starts, and the end
  Captured<1, std::int32_t> prefix;   ///< [documents]

  template <class Index>
  ATTN_HOST_DEVICE auto operator()(Index, Index, Index q, Index kv) const {
    const Index own = ids(q), shared = prefix(own);
    const auto in_own = offsets(own) <= kv && kv <= q;
    const auto in_prefix = offsets(shared) <= kv && kv < offsets(shared + 1);
    return in_own || (shared != own && in_prefix);
  }
  /// @throws std::invalid_argument if the tables do not cover the queries or each other.
  void check(const Sizes& sizes) const {
    check_table("shared_prefix", "ids", ids, at_least("Sq", sizes.sq));
    check_table("shared_prefix", "offsets", offsets,
                exactly("documents + 1", prefix.tensor.extents[0] + 1));
  }
};

/// The memory stays the caller's.
inline SharedPrefix shared_prefix(Captured<1, std::int32_t> ids, Captured<1, std::int32_t> offsets,
                                  Captured<1, std::int32_t> prefix) {
  ids.name = "ids";
  offsets.name = "offsets";
  prefix.name = "prefix";
  return {{}, ids, offsets, prefix};
}

}  // namespace attn
