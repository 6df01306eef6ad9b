#pragma once

#include <cstdint>

#include "optimized/planted.h"
#include "optimized/simt/simt.h"
#include "optimized/source.h"

/// The kernel's side of a `Source`.
namespace attn {
inline namespace ATTN_TARGET {

/// A sequence as a block works on it.
struct KernelSequence {
  Sizes sizes;    ///< what mods and masks see
  int b = 0;      ///< what they see as b
  int batch = 0;  ///< the batch entry of the tensors
  int q_first = 0, kv_first = 0;
};

/// Where sequence `b` lies.
ATTN_DEVICE KernelSequence sequence_of(const Source& source, int b) {
  KernelSequence s{source.sizes, b, source.packed ? 0 : b, 0, 0};
  if (source.sequences == nullptr) return s;
  const auto* record = reinterpret_cast<const std::int32_t*>(source.sequences);
  const auto field = [&](int i) { return simt::ldg_uniform(record, std::int64_t{5} * b + i); };
  s.q_first = field(0);
  s.sizes.sq = field(1);
  s.kv_first = field(2);
  s.sizes.skv = field(3);
  s.sizes.q_offset = field(4);
  if (source.packed) {
    s.sizes.q_start = s.q_first;
    s.sizes.kv_start = s.kv_first;
  }
  return s;
}

/// The tiles that one row of tiles visits, from left to right.
class TileCursor {
 public:
  /// All of `count` tiles.
  ATTN_DEVICE explicit TileCursor(int count) : last_(count - 1) {}
  /// The spans of row `row`.
  ATTN_DEVICE TileCursor(const TileSpans& tiles, std::int64_t row)
      : spans_(tiles.spans),
        span_(static_cast<int>(simt::ldg_uniform(tiles.row_begin, row))),
        span_end_(static_cast<int>(simt::ldg_uniform(tiles.row_begin, row + 1))),
        last_(-1) {
    open();
  }

  ATTN_DEVICE bool valid() const { return tile_ <= last_; }
  ATTN_DEVICE int tile() const { return tile_; }
  /// Every pair of the tile attends: the mask need not be asked.
  ATTN_DEVICE bool full() const { return full_; }
  ATTN_DEVICE void next() {
    if (++tile_ > last_ && span_ < span_end_) open();
  }

  /// How many tiles are left.
  ATTN_DEVICE int count() const {
    int n = last_ - tile_ + 1;
    for (int s = span_; s < span_end_; ++s) n += field(s, 1) - field(s, 0) + 1;
    return n;
  }
  /// Leaves out the next `n` tiles.
  ATTN_DEVICE void skip(int n) {
    for (int here = last_ - tile_ + 1; n > 0 && n >= here && span_ < span_end_;
         here = last_ - tile_ + 1) {
      n -= here;
      open();
    }
    tile_ += n;
  }

 private:
  ATTN_DEVICE int field(int span, int i) const {
    return simt::ldg_uniform(spans_, std::int64_t{3} * span + i);
  }
  ATTN_DEVICE void open() {
    if (span_ >= span_end_) return;
    tile_ = field(span_, 0);
    last_ = field(span_, 1);
    full_ = field(span_, 2) == 2;  // BlockKind::full
    ++span_;
  }

  const std::int32_t* spans_ = nullptr;
  int span_ = 0, span_end_ = 0;  // the host refuses 2^31 spans
  int tile_ = 0, last_ = -1;
  bool full_ = false;
};

/// The tiles that row `row` of head `h` visits, out of `count`.
ATTN_DEVICE TileCursor visited_tiles(const Source& source, int b, int h, int row, int count) {
  const TileSpans& t = source.tiles;
  if (t.row_begin == nullptr) return TileCursor(count);
  if (planted(PlantedFault::M51)) b = h = 0;
  return TileCursor(t, b * t.b_stride + h * t.h_stride + row);
}

}  // namespace ATTN_TARGET
}  // namespace attn
