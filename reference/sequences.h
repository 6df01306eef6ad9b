#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "reference/problem.h"

/// Which rows of the tensors make up each sequence: all of them, a stretch of a packed axis, or as
/// much of a cache as is filled. Every check throws `std::invalid_argument` with the argument, its
/// value and what was expected.
namespace attn {

/// Consecutive rows of one batch entry of a tensor [B, H, S, X].
struct RowRange {
  int batch = 0, first = 0, count = 0;  ///< rows first to first + count - 1
};

/// One sequence of queries and one of keys that may attend to each other.
struct Sequence {
  int b = 0;         ///< what mods, masks and dropout see as b
  Sizes sizes;       ///< what mods and masks may ask for
  RowRange queries;  ///< its rows of Q, O, LSE, dO
  RowRange keys;     ///< its rows of K and V
};

/// One sequence a batch entry.
std::vector<Sequence> dense_sequences(const Problem& problem);

/// Sequences one after another in a problem of one batch entry: sequence b has the rows
/// cu_q[b] to cu_q[b + 1] - 1 of Q and cu_kv[b] to cu_kv[b + 1] - 1 of K and V; either may be none.
///
/// @param cu_q, cu_kv the same number of entries, at least one, that never decrease, the first 0
///        and the last Sq, Skv
/// @throws std::invalid_argument
std::vector<Sequence> packed_sequences(const Problem& problem, std::span<const std::int32_t> cu_q,
                                       std::span<const std::int32_t> cu_kv);

/// All Sq rows of each batch entry beside the first lengths[b] rows of its cache of Skv rows. The
/// queries are the last of the sequence: row i has the index q = i + lengths[b] - Sq.
/// @throws std::invalid_argument if there is not one length a batch entry, from 0 to Skv
std::vector<Sequence> cached_sequences(const Problem& problem,
                                       std::span<const std::int32_t> lengths);

/// The largest of each size that mods and masks may ask for; zeros where there is no sequence.
Sizes largest_sizes(std::span<const Sequence> sequences);

/// Checks the entries of a page table [B, max_pages] that the lengths need, and reads no other.
/// @throws std::invalid_argument if one is not 0 to pages - 1
void check_page_table(TensorView<const std::int32_t, 2> page_table,
                      const std::vector<Sequence>& sequences, std::int64_t pages, int page_size);

/// check_functors, for every sequence.
/// @throws std::invalid_argument
template <class Mod, class Mask>
void check_functors(const Mod& mod, const Mask& mask, const std::vector<Sequence>& sequences) {
  for (const Sequence& sequence : sequences) {
    check_mod(mod, sequence.sizes);
    check_mask(mask, sequence.sizes);
    check_index_arithmetic(mod, sequence.sizes, sequence.b);
    check_index_arithmetic(mask, sequence.sizes, sequence.b);
  }
}

}  // namespace attn
