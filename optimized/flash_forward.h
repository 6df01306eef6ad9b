#pragma once

#include <cstdint>

#include "optimized/dropout.h"
#include "optimized/online_softmax.h"
#include "optimized/row_end.h"
#include "optimized/scores.h"
#include "optimized/tile.h"
#include "optimized/tile_cursor.h"

/// FlashAttention-2 forward (T. Dao, 2023, Algorithm 1) on sm_80 tensor cores: O and LSE without
/// ever storing the scores.
///
/// A block owns `kBlockQ` query rows, 16 a warp. Keys and values stream through shared memory in
/// tiles of `kBlockKV`, double-buffered by `cp.async`: while one tile is multiplied, the next is on
/// its way.
///
///   flops of a tile  4 kBlockQ kBlockKV kHead: two products
///   bytes of a tile  4 kBlockKV kHead: K and V, 16 bits a number
///   shared memory    Q | K0 | K1 | V0 | V1, rows of kHead 16-bit numbers, swizzled;
///                    2 kHead (kBlockQ + 4 kBlockKV) bytes: 96 KiB at 128 x 64, head size 128
///
/// One kernel serves every source of rows (optimized/source.h): dense, packed, cached, paged,
/// block-sparse. Decode is this kernel with two things more: the query heads of a group stand side
/// by side in one tile of rows, as they share their keys; and the visited tiles are dealt out to
/// `splits` blocks, whose parts optimized/combine_splits.h merges.
namespace attn {

/// Where the parts of a split row go: each normalised, with its own LSE.
struct SplitOutput {
  int splits = 1;        ///< parts of the keys, merged by combine_splits
  float* o = nullptr;    ///< [splits, B, Hq, Sq, Dv]
  float* lse = nullptr;  ///< [splits, B, Hq, Sq]; the row's maximum stands behind them
  float* max = nullptr;  ///< [splits, B, Hq, Sq]
};

inline namespace ATTN_TARGET {

/// Q, and two tiles each of K and V, in 16 bits a number.
template <class Tile>
inline constexpr int flash_forward_shared_bytes = 2 *
                                                  Tile::kHead*(Tile::kBlockQ + 4 * Tile::kBlockKV);

/// What the kernel is given.
template <class T, class Mod, class Mask>
struct FlashForwardArgs {
  HeadRows<const T> q{}, k{}, v{};        ///< [B, Hq, Sq, D], [B, Hkv, Skv, D], [B, Hkv, Skv, Dv]
  HeadRows<T> o{};                        ///< [B, Hq, Sq, Dv]
  TensorView<float, 3> lse{}, row_max{};  ///< [B, Hq, Sq]; no row_max where it has no data
  TensorView<const float, 1> sink{};      ///< [Hq]; no data: none
  Source source{};                        ///< where the rows of each sequence lie
  SplitOutput split{};                    ///< decode with splits; else not used
  int d = 0, dv = 0;                      ///< of the tensors, up to Tile::kHead
  float scale = 1;                        ///< of Q K^T
  int heads_per_tile = 1;                 ///< 1, or all query heads of a group
  KernelDropout dropout{};                ///< of the probabilities
  Mod mod;                                ///< how scores change
  Mask mask;                              ///< which pairs attend
};

/// The rows of K or V that a block reads, by page or by stride.
template <class T>
ATTN_DEVICE RowMap key_rows(const Source& source, const KernelSequence& sequence,
                            const HeadRows<T>& x, int h) {
  RowMap map;
  map.stride = x.view.strides[2];
  if (source.page_table != nullptr) {
    map.first = h * x.view.strides[1];
    map.pages = source.page_table + std::int64_t{sequence.b} * source.max_pages;
    map.page_size = source.page_size;
    map.page_stride = x.view.strides[0];
  } else {
    map.first = x.head_offset(sequence.batch, h) + sequence.kv_first * map.stride;
  }
  return map;
}

/// The rows of Q, O or dO from head `h` on.
template <class T>
ATTN_DEVICE RowMap query_rows(const KernelSequence& sequence, const HeadRows<T>& x, int h,
                              int heads) {
  RowMap map;
  map.stride = x.view.strides[2];
  map.first = x.head_offset(sequence.batch, h) + sequence.q_first * map.stride;
  map.heads = heads;
  map.head_stride = x.view.strides[1];
  return map;
}

/// The weights of one tile after dropout; the row sum is that of the undropped ones.
template <int kFragments>
ATTN_DEVICE void drop_weights(simt::lane<float> (&p)[kFragments][4], const KernelDropout& dropout,
                              const KernelSequence& sequence, const FragmentRows& rows, int kv0) {
  using simt::lane;
  ATTN_UNROLL
  for (int j = 0; j < kFragments; ++j) {
    ATTN_UNROLL
    for (int r = 0; r < 2; ++r) {
      const lane<int> column = kv0 + j * 8 + ((simt::lane_id() & 3) << 1);
      lane<float> factor[2];
      dropout_factors(dropout, sequence.b, rows.head[r],
                      lane<int>(rows.position[r] + sequence.sizes.q_offset), column, factor);
      p[j][2 * r] *= factor[0];
      p[j][2 * r + 1] *= factor[1];
    }
  }
}

/// One block: kBlockQ query rows of one head (and of its group, in decode), all their keys.
template <class Tile, class T, class Mod, class Mask>
ATTN_LAUNCH_BOUNDS(Tile::kThreads, 1)
ATTN_KERNEL flash_forward_kernel(const ATTN_GRID_CONSTANT FlashForwardArgs<T, Mod, Mask> args) {
  using simt::lane;
  constexpr int kHead = Tile::kHead, kBlockKV = Tile::kBlockKV;
  constexpr std::uint32_t kTileBytes = kBlockKV * kHead * 2;
  const Sizes& size = args.source.sizes;
  const int heads = args.heads_per_tile;

  // Block x = (b (Hq / heads) + head group) * (query tiles) + query tile; block y = split.
  const int q_tiles = (size.sq * heads + Tile::kBlockQ - 1) / Tile::kBlockQ;
  const int q_tile_index = simt::block_x() % q_tiles, row0 = q_tile_index * Tile::kBlockQ;
  const int head_group = simt::block_x() / q_tiles % (size.hq / heads);
  const int b = simt::block_x() / q_tiles / (size.hq / heads), h = head_group * heads;
  const int hkv = planted(PlantedFault::M26) ? h % size.hkv : h / (size.hq / size.hkv);
  const KernelSequence sequence = sequence_of(args.source, b);
  const int rows = sequence.sizes.sq * heads;
  if (row0 >= rows) return;  // a shorter sequence than the longest

  const RowMap q_rows = query_rows(sequence, args.q, h, heads);
  const RowMap k_rows = key_rows(args.source, sequence, args.k, hkv);
  const RowMap v_rows = key_rows(args.source, sequence, args.v, hkv);
  const int skv = sequence.sizes.skv;
  const int kv_end = planted(PlantedFault::M21) ? min(sequence.sizes.sq, skv) : skv;
  const int d = planted(PlantedFault::M34b) && args.d >= 16 ? args.d & ~15 : args.d;
  const int dv = planted(PlantedFault::M34) ? args.d : args.dv;

  const std::uint32_t q_tile = simt::smem_base(), k_tile = q_tile + Tile::kBlockQ * kHead * 2,
                      v_tile = k_tile + 2 * kTileBytes;
  const auto load_kv = [&](int tile, int buffer) {
    load_tile<Tile, kBlockKV>(k_tile + buffer * kTileBytes, args.k, k_rows, tile * kBlockKV, skv,
                              d);
    load_tile<Tile, kBlockKV>(v_tile + buffer * kTileBytes, args.v, v_rows, tile * kBlockKV, skv,
                              dv);
  };

  // This block's share of the tiles that its rows visit.
  TileCursor at =
      visited_tiles(args.source, b, head_group, q_tile_index, (kv_end + kBlockKV - 1) / kBlockKV);
  const int splits = args.split.splits, split = simt::block_y();
  int tiles = at.count();
  if (splits > 1) {
    const int first = static_cast<int>(std::int64_t{tiles} * split / splits);
    tiles = static_cast<int>(std::int64_t{tiles} * (split + 1) / splits) - first;
    at.skip(first);
  }

  if (planted(PlantedFault::M52) && tiles == 0 && skv > 0) return;

  lane<float> o[kHead / 8][4];  // this warp's 16 rows of the unnormalised output
  ATTN_UNROLL
  for (int j = 0; j < kHead / 8; ++j) {
    ATTN_UNROLL
    for (int e = 0; e < 4; ++e) o[j][e] = 0.0f;
  }
  OnlineSoftmax softmax;
  const FragmentRows fragment(row0, rows, h, heads);

  load_tile<Tile, Tile::kBlockQ>(q_tile, args.q, q_rows, row0, rows, d);
  if (tiles > 0) load_kv(at.tile(), 0);
  simt::cp_async_commit();

  for (int i = 0; i < tiles; ++i) {
    simt::cp_async_wait<0>();
    // Tile i has landed for every thread, and every warp is done with the other buffer.
    if (!planted(PlantedFault::M63) || i == 0) simt::block_sync();
    const int kv0 = at.tile() * kBlockKV;
    const bool full = at.full() || planted(PlantedFault::M49);
    at.next();
    if (i + 1 < tiles) load_kv(at.tile(), (i + 1) & 1);
    simt::cp_async_commit();
    const std::uint32_t buffer = (i & 1) * kTileBytes;

    lane<float> s[kBlockKV / 8][4];
    multiply_abt<kHead, kBlockKV, T>(s, q_tile, k_tile + buffer);
    modify_scores<T>(s, args.mod, args.mask, args.scale, sequence, fragment, kv0, full);
    ATTN_UNROLL
    for (int r = 0; r < 2; ++r) {
      const lane<float> rescale = planted(PlantedFault::M07b)
                                      ? (softmax.step(s, r), lane<float>(1.0f))
                                      : softmax.step(s, r);
      ATTN_UNROLL
      for (int j = 0; j < kHead / 8; ++j) {
        o[j][2 * r] *= rescale;
        o[j][2 * r + 1] *= rescale;
      }
    }
    if (args.dropout.active()) drop_weights(s, args.dropout, sequence, fragment, kv0);
    multiply_ab<kHead, kBlockKV, kHead, T>(o, s, v_tile + buffer);

    if (planted(PlantedFault::M08) || planted(PlantedFault::M13))
      for (int j = 0; j < kHead / 8; ++j)
        for (int e = 0; e < 4; ++e)
          o[j][e] = planted(PlantedFault::M13) ? rounded<T>(o[j][e])
                                               : lane<float>(o[j][e] / softmax.row_sum(e >> 1));
  }
  simt::cp_async_wait<0>();
  if (tiles == 0) simt::block_sync();  // Q was copied by all warps and is overwritten below

  // A NaN in V is taken over to l, so that it shows in the whole row and in LSE. The sink belongs
  // to a row once: where the row is split, it joins when the parts are merged.
  const bool whole = splits == 1;
  const lane<bool> first_of_quad = (simt::lane_id() & 3) == 0;
  ATTN_UNROLL
  for (int r = 0; r < 2; ++r) {
    const lane<std::int64_t> position(fragment.position[r] + sequence.q_first);
    const lane<std::int64_t> head(fragment.head[r]);
    const lane<bool> writes = first_of_quad && fragment.there[r];
    lane<float> sink = -infinity;
    if (whole && args.sink.data != nullptr)
      sink = simt::ldg(args.sink.data, head * args.sink.strides[0]);
    const lane<float> l = softmax.row_sum(r) + nan_of_row<kHead / 8>(o, r);
    RowEnd end = end_row(softmax.max[r], l, sink);
    if (planted(PlantedFault::M54) && !whole && tiles == 0) end.lse = 0.0f;
    ATTN_UNROLL
    for (int j = 0; j < kHead / 8; ++j) {
      o[j][2 * r] *= end.factor;
      o[j][2 * r + 1] *= end.factor;
    }
    if (whole) {
      simt::stg(args.lse.data,
                sequence.batch * args.lse.strides[0] + head * args.lse.strides[1] +
                    position * args.lse.strides[2],
                end.lse, writes);
      if (args.row_max.data != nullptr)
        simt::stg(args.row_max.data,
                  sequence.batch * args.row_max.strides[0] + head * args.row_max.strides[1] +
                      position * args.row_max.strides[2],
                  end.row_max, writes);
      continue;
    }
    const lane<std::int64_t> part =
        ((std::int64_t{split} * size.b + b) * size.hq + head) * size.sq + position;
    simt::stg(args.split.lse, part, end.lse, writes);
    simt::stg(args.split.max, part, end.row_max, writes);
    ATTN_UNROLL
    for (int j = 0; j < kHead / 8; ++j) {
      ATTN_UNROLL
      for (int e = 0; e < 2; ++e) {
        const lane<int> channel = j * 8 + ((simt::lane_id() & 3) << 1) + e;
        simt::stg(args.split.o, part * args.dv + lane<std::int64_t>(channel), o[j][2 * r + e],
                  fragment.there[r] && channel < args.dv);
      }
    }
  }
  if (whole)
    store_rows<kHead, kHead>(o, q_tile, args.o, query_rows(sequence, args.o, h, heads), row0, rows,
                             args.dv);
}

}  // namespace ATTN_TARGET
}  // namespace attn
