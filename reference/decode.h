#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "reference/forward.h"

namespace attn::reference {

/// The filled rows of a cache [pages, Hkv, page_size, X], as [B, Hkv, longest sequence, X]: row j
/// of sequence b lies in slot j % page_size of page page_table(b, j / page_size). No other slot is
/// read.
template <class T>
Tensor4 gather_pages(TensorView<const T, 4> cache, TensorView<const std::int32_t, 2> page_table,
                     const std::vector<Sequence>& sequences) {
  const auto [pages, heads, page_size, x] = cache.extents;
  int longest = 0;
  for (const Sequence& sequence : sequences) longest = std::max(longest, sequence.keys.count);
  Tensor4 rows({static_cast<std::int64_t>(sequences.size()), heads, longest, x});
  for (const auto& [b, sizes, queries, keys] : sequences)
    for (std::int64_t j = 0; j < keys.count; ++j)
      for (std::int64_t h = 0; h < heads; ++h)
        for (std::int64_t d = 0; d < x; ++d)
          rows(b, h, j, d) =
              stored_score<double>(cache(page_table(b, j / page_size), h, j % page_size, d));
  return rows;
}

/// forward.h where the keys and values are the first lengths[b] rows of caches, reached through
/// page tables, and the queries are the last Sq of their sequence: mods, masks and dropout see q =
/// row + lengths[b] - Sq, so that a decode step is a row of the whole. What the other slots and the
/// unused entries of the table hold has no effect.
///
/// @param q [B, Hq, Sq, D]; k [pages, Hkv, page_size, D]; v [pages, Hkv, page_size, Dv]
/// @param page_table [B, max_pages]: row j of sequence b lies in slot j % page_size of page
///        page_table(b, j / page_size); pages in any order
/// @param lengths [B], 0 to max_pages * page_size
/// @throws std::invalid_argument as forward does, and for a page table or lengths that do not fit
template <class T, class Mod, class MaskMod>
ForwardResult decode_paged(TensorView<T, 4> q, std::type_identity_t<TensorView<const T, 4>> k,
                           std::type_identity_t<TensorView<const T, 4>> v,
                           TensorView<const std::int32_t, 2> page_table,
                           std::span<const std::int32_t> lengths, const Mod& mod,
                           const MaskMod& mask, const Options& options = {}) {
  const Problem problem =
      make_paged_problem(describe("q", q), describe("k", k), describe("v", v), page_table, options);
  auto sequences = cached_sequences(problem, lengths);
  check_page_table(page_table, sequences, k.extents[0], static_cast<int>(k.extents[2]));
  check_functors(mod, mask, sequences);
  Inputs in{to_fp64(q), gather_pages(k, page_table, sequences),
            gather_pages(v, page_table, sequences)};
  const Batch batch(problem, std::move(in), std::move(sequences), options);
  return forward(batch, ExactMod<Mod>(mod), ExactMask<MaskMod>(mask));
}

/// decode_paged where the cache of each sequence is contiguous: one page of its own.
///
/// @param k [B, Hkv, capacity, D]; v [B, Hkv, capacity, Dv]
/// @param lengths [B], 0 to capacity
/// @throws std::invalid_argument as forward does, and for lengths that do not fit
template <class T, class Mod, class MaskMod>
ForwardResult decode(TensorView<T, 4> q, std::type_identity_t<TensorView<const T, 4>> k,
                     std::type_identity_t<TensorView<const T, 4>> v,
                     std::span<const std::int32_t> lengths, const Mod& mod, const MaskMod& mask,
                     const Options& options = {}) {
  const Problem problem =
      make_problem(describe("q", q), describe("k", k), describe("v", v), options);
  auto sequences = cached_sequences(problem, lengths);
  check_functors(mod, mask, sequences);
  Tensor<std::int32_t, 2> own_page({problem.b, 1});
  for (int b = 0; b < problem.b; ++b) own_page(b, 0) = b;
  Inputs in{to_fp64(q), gather_pages(k, std::as_const(own_page).view(), sequences),
            gather_pages(v, std::as_const(own_page).view(), sequences)};
  const Batch batch(problem, std::move(in), std::move(sequences), options);
  return forward(batch, ExactMod<Mod>(mod), ExactMask<MaskMod>(mask));
}

}  // namespace attn::reference
