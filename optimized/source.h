#pragma once

#include <cstdint>

#include "mods/lang/index.h"

/// Which rows make up a sequence, and which tiles of keys its queries visit: all that differs
/// between dense, packed, cached, paged and block-sparse attention. A kernel asks here and is the
/// same for all of them; what is not used is a null pointer, the same in every thread.
namespace attn {

/// One sequence, as the host lays it out for kernels.
struct SequenceRecord {
  std::int32_t q_first = 0, sq = 0;    ///< its rows of Q
  std::int32_t kv_first = 0, skv = 0;  ///< its rows of K and V
  std::int32_t q_offset = 0;           ///< q = row + q_offset
};

/// Spans of tiles, a compressed row of tiles after another; see masks/block_mask.h.
struct TileSpans {
  const std::int64_t* row_begin = nullptr;  ///< [rows + 1]; null: every tile is visited
  const std::int32_t* spans = nullptr;      ///< first, last, kind; three numbers a span
  std::int64_t b_stride = 0, h_stride = 0;  ///< rows from one batch entry, one head to the next
};

/// What surrounds the tensors of a launch.
struct Source {
  Sizes sizes;  ///< of the problem: the longest sequence decides Sq and Skv
  const SequenceRecord* sequences = nullptr;  ///< [B]; null: all have the length of the problem
  bool packed = false;  ///< sequences stand one after another in batch entry 0 of the tensors
  const std::int32_t* page_table = nullptr;  ///< [B, max_pages]; null: no pages
  int max_pages = 0, page_size = 1;
  TileSpans tiles;  ///< of keys for each tile of queries, or of queries for each tile of keys
};

}  // namespace attn
