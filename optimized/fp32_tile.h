#pragma once

#include <bit>
#include <cstdint>

#include "optimized/tile.h"

/// Tiles of fp32 numbers in shared memory. A row holds kHead of them and 4 more, so that rows start
/// 4 banks apart: eight rows of which 16 bytes each are read, or four rows two apart, or words of
/// eight neighbouring channels in rows two apart, lie in different banks.
namespace attn {
inline namespace ATTN_TARGET {

/// Of a row in shared memory: four numbers more than it holds, so that rows start in other banks.
template <int kHead>
inline constexpr int fp32_row_bytes = (kHead + 4) * 4;

/// Byte offset of the 16-byte chunk `chunk` of `row`.
template <int kHead>
ATTN_DEVICE simt::lane<std::uint32_t> fp32_tile_offset(simt::lane<int> row, simt::lane<int> chunk) {
  return simt::lane<std::uint32_t>(row * fp32_row_bytes<kHead> + chunk * 16);
}

/// All threads copy rows row0 to row0 + kRows of one head into a tile, asynchronously: 16 bytes at
/// once where rows are vectors, else number by number. What lies past `rows` or `columns` is filled
/// with zeros and not read.
template <class Tile, int kRows>
ATTN_DEVICE void load_fp32_tile(std::uint32_t tile, const HeadRows<const float>& x,
                                const RowMap& map, int row0, int rows, int columns) {
  using simt::lane;
  constexpr int kChunks = Tile::kHead / 4;  // 16-byte chunks a row
  if (planted(PlantedFault::M20)) ++rows;
  ATTN_UNROLL
  for (int i = 0; i < kRows * kChunks / Tile::kThreads; ++i) {
    const lane<int> index = simt::thread_id() + i * Tile::kThreads;
    const lane<int> row = row0 + index / kChunks, column = index % kChunks * 4;
    const lane<bool> there = row < rows;
    const lane<std::int64_t> from = map.offset(row, there);
    const lane<std::uint32_t> to =
        tile + fp32_tile_offset<Tile::kHead>(index / kChunks, index % kChunks);
    if (x.vector) {
      simt::cp_async<16>(to, x.view.data, from + lane<std::int64_t>(column),
                         there && column < columns);
      continue;
    }
    for (int e = 0; e < 4; ++e)
      simt::cp_async<4>(to + 4u * e, x.view.data,
                        from + lane<std::int64_t>(column + e) * x.view.strides[3],
                        there && column + e < columns);
  }
}

/// The fp32 number whose bits these are.
ATTN_DEVICE simt::lane<float> as_float(simt::lane<std::uint32_t> bits) {
  return simt::per_lane([](std::uint32_t word) { return std::bit_cast<float>(word); }, bits);
}
/// The four fp32 numbers of a chunk.
ATTN_DEVICE void load_floats(simt::lane<float> (&x)[4], simt::lane<std::uint32_t> address) {
  const simt::lane<simt::Vec16> chunk = simt::lds<simt::Vec16>(address);
  ATTN_UNROLL
  for (int i = 0; i < 4; ++i) x[i] = as_float(simt::word(chunk, i));
}

/// fp32 is stored as it is.
template <>
ATTN_DEVICE simt::lane<float> rounded<float>(simt::lane<float> x) {
  return x;
}

}  // namespace ATTN_TARGET
}  // namespace attn
