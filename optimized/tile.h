#pragma once

#include <cstdint>

#include "mods/lang/tensor.h"
#include "optimized/planted.h"
#include "optimized/simt/simt.h"

/// Tiles in shared memory, and the two matrix products on them that every tensor-core path is made
/// of. A tile holds rows of kHead 16-bit numbers, swizzled; D and Dv are padded to kHead with zeros
/// here and nowhere else.
///
///     multiply_abt   C = A B^T   rows of A against rows of B:   S = Q K^T,  dP = dO V^T
///     multiply_ab    C += A B    A in registers, as C was left: O = P V,    dQ = dS K
namespace attn {
inline namespace ATTN_TARGET {

/// How a kernel cuts the problem: a block of threads owns `BlockQ` rows, 16 a warp, and streams
/// tiles of `BlockKV` rows past them.
template <int BlockQ, int BlockKV, int Head>
struct FlashTile {
  static constexpr int kBlockQ = BlockQ;
  static constexpr int kBlockKV = BlockKV;
  static constexpr int kHead = Head;  ///< 64, 128 or 256: D and Dv are at most this
  static constexpr int kWarps = BlockQ / 16;
  static constexpr int kThreads = kWarps * 32;
};

/// A [B, H, S, D] tensor as a kernel sees it. `vector`: rows start on 16 bytes and hold whole
/// 16-byte chunks, so that they can be copied asynchronously.
template <class T>
struct HeadRows {
  TensorView<T, 4> view;
  bool vector = false;

  ATTN_HOST_DEVICE std::int64_t head_offset(int b, int h) const {
    const auto& stride = view.strides;
    const std::int64_t batch = planted(PlantedFault::M30) ? stride[2] : stride[0];
    return b * batch + h * stride[1];
  }
};

/// Where the rows of a tile lie: row r starts `first + r * stride` elements into the tensor.
struct RowMap {
  std::int64_t first = 0, stride = 0;
  /// Query heads side by side: row r is position r / heads of head r % heads.
  int heads = 1;
  std::int64_t head_stride = 0;
  /// Paged: position r lies in slot r % page_size of page pages[r / page_size].
  const std::int32_t* pages = nullptr;
  int page_size = 1;
  std::int64_t page_stride = 0;

  ATTN_DEVICE simt::lane<std::int64_t> offset(simt::lane<int> row, simt::lane<bool> ok) const {
    using Wide = simt::lane<std::int64_t>;
    if (pages != nullptr) {
      if (planted(PlantedFault::M59)) {  // pages taken for neighbours
        const Wide page =
            Wide(simt::ldg(pages, Wide(row / page_size * 0), ok)) + Wide(row / page_size);
        return page * page_stride + Wide(row % page_size) * stride + first;
      }
      const Wide page = Wide(simt::ldg(pages, Wide(row / page_size), ok));
      return page * page_stride + Wide(row % page_size) * stride + first;
    }
    if (heads > 1) return Wide(row / heads) * stride + Wide(row % heads) * head_stride + first;
    if (planted(PlantedFault::M32)) return Wide(row * static_cast<int>(stride)) + first;
    return Wide(row) * stride + first;
  }
};

/// The nearest number of the storage type.
template <class T>
ATTN_DEVICE simt::lane<float> rounded(simt::lane<float> x) {
  simt::lane<float> low, high;
  simt::unpack2<T>(simt::pack2<T>(x, x), low, high);
  return low;
}

/// Byte offset of the 16-byte chunk `chunk` of `row` in a tile with rows of kHead numbers. The XOR
/// spreads the eight rows that one `ldmatrix` phase reads over all 32 banks.
template <int kHead>
ATTN_DEVICE simt::lane<std::uint32_t> tile_offset(simt::lane<int> row, simt::lane<int> chunk) {
  return simt::lane<std::uint32_t>(row * (kHead * 2) + ((chunk ^ (row & 7)) << 4));
}

/// All threads copy rows row0 to row0 + kRows into a swizzled tile. What lies past `rows` or
/// `columns` is filled with zeros and not read.
template <class Tile, int kRows, class T>
ATTN_DEVICE_LARGE void load_tile(std::uint32_t tile, const HeadRows<const T>& x, const RowMap& map,
                                 int row0, int rows, int columns) {
  using simt::lane;
  constexpr int kChunks = Tile::kHead / 8;  // 16-byte chunks a row
  if (planted(PlantedFault::M20)) ++rows;
  ATTN_UNROLL
  for (int i = 0; i < kRows * kChunks / Tile::kThreads; ++i) {
    const lane<int> index = simt::thread_id() + i * Tile::kThreads;
    const lane<int> row = row0 + index / kChunks, chunk = index % kChunks;
    const lane<bool> there = row < rows;
    const lane<std::int64_t> from = map.offset(row, there);
    const lane<std::uint32_t> to = tile + tile_offset<Tile::kHead>(index / kChunks, chunk);
    if (x.vector) {
      simt::cp_async<16>(to, x.view.data, from + lane<std::int64_t>(chunk * 8),
                         there && chunk * 8 < columns);
      continue;
    }
    // Unaligned rows: element by element, two to a 32-bit store.
    for (int pair = 0; pair < 4; ++pair) {
      lane<std::uint32_t> word = 0u;
      for (int e = 0; e < 2; ++e) {
        const lane<int> column = chunk * 8 + (2 * pair + e);
        const lane<std::uint16_t> bits = simt::ldg(
            reinterpret_cast<const std::uint16_t*>(x.view.data),
            from + lane<std::int64_t>(column) * x.view.strides[3], there && column < columns);
        word = word | lane<std::uint32_t>(bits) << (16 * e);
      }
      simt::sts(to + 4u * pair, word);
    }
  }
}

/// C = A B^T in fp32 for the warp's 16 rows of A and kRowsB rows of B. Fragment j holds rows 8j to
/// 8j + 7 of B as its columns.
template <int kHead, int kRowsB, class T>
ATTN_DEVICE_LARGE void multiply_abt(simt::lane<float> (&c)[kRowsB / 8][4], std::uint32_t a_tile,
                                    std::uint32_t b_tile) {
  using simt::lane;
  const lane<int> ln = simt::lane_id();
  const int row0 = simt::warp_id() * 16;
  ATTN_UNROLL
  for (int j = 0; j < kRowsB / 8; ++j) {
    ATTN_UNROLL
    for (int e = 0; e < 4; ++e) c[j][e] = 0.0f;
  }
  ATTN_UNROLL
  for (int kk = 0; kk < kHead / 16; ++kk) {  // 16 channels a step
    lane<std::uint32_t> a[4];
    simt::ldmatrix_x4(a, a_tile + tile_offset<kHead>(row0 + (ln & 15), kk * 2 + (ln >> 4)));
    ATTN_UNROLL
    for (int j = 0; j < kRowsB / 8; j += 2) {  // 16 rows of B: two fragments
      lane<std::uint32_t> b[4];
      simt::ldmatrix_x4(b, b_tile + tile_offset<kHead>(j * 8 + (ln & 7) + ((ln >> 4) << 3),
                                                       kk * 2 + ((ln >> 3) & 1)));
      simt::mma_m16n8k16<T>(c[j], a, b[0], b[1]);
      simt::mma_m16n8k16<T>(c[j + 1], a, b[2], b[3]);
    }
  }
}

/// C += A B, where the columns of A are the rows of B, and C are kColumns channels of B from
/// `first` on (a multiple of 16). The accumulator layout of A is the operand layout of the next
/// product: rounding it to the storage type is all that lies between the two.
template <int kHead, int kRowsB, int kColumns, class T>
ATTN_DEVICE_LARGE void multiply_ab(simt::lane<float> (&c)[kColumns / 8][4],
                                   const simt::lane<float> (&a)[kRowsB / 8][4],
                                   std::uint32_t b_tile, int first = 0) {
  using simt::lane;
  const lane<int> ln = simt::lane_id();
  ATTN_UNROLL
  for (int kk = 0; kk < kRowsB / 16; ++kk) {  // 16 rows of B a step
    lane<std::uint32_t> left[4];
    ATTN_UNROLL
    for (int e = 0; e < 4; ++e) {
      const auto& fragment = a[2 * kk + (e >> 1)];
      left[e] = simt::pack2<T>(fragment[2 * (e & 1)], fragment[2 * (e & 1) + 1]);
    }
    ATTN_UNROLL
    for (int j = 0; j < kColumns / 8; j += 2) {  // 16 channels: two B fragments
      lane<std::uint32_t> b[4];
      simt::ldmatrix_x4_trans(
          b, b_tile + tile_offset<kHead>(kk * 16 + (ln & 15), first / 8 + j + (ln >> 4)));
      simt::mma_m16n8k16<T>(c[j], left, b[0], b[1]);
      simt::mma_m16n8k16<T>(c[j + 1], left, b[2], b[3]);
    }
  }
}

/// Each warp writes its own 16 rows of an accumulator, rounded to the storage type, to rows row0
/// and following of `x`, by way of a tile that no other warp reads any more: so that 16 bytes go
/// out at once. Row r has channels `first` to min(first + kColumns, columns).
template <int kHead, int kColumns, class T>
ATTN_DEVICE_LARGE void store_rows(const simt::lane<float> (&c)[kColumns / 8][4], std::uint32_t tile,
                                  const HeadRows<T>& x, const RowMap& map, int row0, int rows,
                                  int columns, int first = 0) {
  using simt::lane;
  const lane<int> ln = simt::lane_id();
  const int local0 = simt::warp_id() * 16;
  simt::warp_sync();
  ATTN_UNROLL
  for (int r = 0; r < 2; ++r) {
    ATTN_UNROLL
    for (int j = 0; j < kColumns / 8; ++j)
      simt::sts(tile + tile_offset<kHead>(local0 + 8 * r + (ln >> 2), j) +
                    lane<std::uint32_t>((ln & 3) << 2),
                simt::pack2<T>(c[j][2 * r], c[j][2 * r + 1]));
  }
  simt::warp_sync();
  ATTN_UNROLL
  for (int i = 0; i < kColumns / 16; ++i) {
    const lane<int> index = i * 32 + ln, chunk = index % (kColumns / 8);
    const lane<int> local = local0 + index / (kColumns / 8), row = row0 + local;
    const lane<int> channel = first + chunk * 8;
    const lane<bool> there = row < rows;
    const lane<std::uint32_t> from = tile + tile_offset<kHead>(local, chunk);
    const lane<std::int64_t> to = map.offset(row, there);
    if (x.vector) {
      simt::stg_as<simt::Vec16>(x.view.data, to + lane<std::int64_t>(channel),
                                simt::lds<simt::Vec16>(from), there && channel < columns);
      continue;
    }
    for (int e = 0; e < 8; ++e)
      simt::stg(reinterpret_cast<std::uint16_t*>(x.view.data),
                to + lane<std::int64_t>(channel + e) * x.view.strides[3],
                simt::lds<std::uint16_t>(from + 2u * e), there && channel + e < columns);
  }
}

/// NaN if an output of fragment row `r` is, in any thread of the quad that shares the row; else 0.
template <int kFragments>
ATTN_DEVICE simt::lane<float> nan_of_row(const simt::lane<float> (&o)[kFragments][4], int r) {
  simt::lane<float> nan = 0.0f;
  ATTN_UNROLL
  for (int j = 0; j < kFragments; ++j) {
    ATTN_UNROLL
    for (int e = 2 * r; e < 2 * r + 2; ++e) nan = select(o[j][e] != o[j][e], o[j][e], nan);
  }
  nan += simt::shfl_xor(nan, 1);
  return nan + simt::shfl_xor(nan, 2);
}

}  // namespace ATTN_TARGET
}  // namespace attn
