#pragma once

#include "optimized/simt/simt.h"

/// The kernel of docs/how_to_kernel.md.
namespace how_to {
inline namespace ATTN_TARGET {

//! [kernel]
/// out[row] = max over x[row][0] to x[row][n - 1]; a warp a row, a warp a block. A row without
/// numbers gives -inf.
///
///   flops of a row   n comparisons, and 5 in the exchange between the lanes
///   bytes of a row   4 n + 4
ATTN_KERNEL row_maxima(const float* x, float* out, int n) {
  using attn::simt::lane;
  const int row = attn::simt::block_x();
  lane<float> largest = -attn::infinity;
  for (int first = 0; first < n; first += 32) {
    const lane<int> column = attn::simt::lane_id() + first;
    const lane<bool> inside = column < n;  // the tail: lanes past the end load nothing
    const lane<std::int64_t> at = lane<std::int64_t>(column) + std::int64_t{row} * n;
    const lane<float> value = attn::simt::ldg(x, at, inside);
    largest = attn::simt::vmax(largest, attn::select(inside, value, -attn::infinity));
  }
  for (int distance = 16; distance > 0; distance /= 2)
    largest = attn::simt::vmax(largest, attn::simt::shfl_xor(largest, distance));
  attn::simt::stg(out, row, largest, attn::simt::lane_id() == 0);
}
//! [kernel]

}  // namespace ATTN_TARGET
}  // namespace how_to
