#pragma once

#include "optimized/simt/simt.h"

namespace lesson {
inline namespace ATTN_TARGET {

using attn::half;
using attn::simt::lane;
using attn::simt::lane_id;
using Fragment = lane<std::uint32_t>[4];  ///< a 16 x 16 matrix of halves, four pairs a lane
inline constexpr std::uint32_t kTileBytes = 16 * 16 * sizeof(half);  ///< of such a matrix

/// Rows row0 to row0 + 15 of [rows][16] into shared memory; lane l copies half of row l / 2. Rows
/// past the end become zeros.
ATTN_DEVICE void copy_tile(std::uint32_t to, const half* from, int row0, int rows) {
  const lane<int> row = lane_id() / 2, part = lane_id() % 2;
  attn::simt::cp_async<16>(lane<std::uint32_t>(row * 32 + part * 16) + to, from,
                           (row + row0) * 16 + part * 8, row + row0 < rows);
}
/// What ldmatrix wants of lane l: where row l % 8 of the 8 x 8 matrix l / 8 starts.
ATTN_DEVICE lane<std::uint32_t> matrix_row(std::uint32_t tile) {
  return lane<std::uint32_t>(lane_id() % 16 * 32 + lane_id() / 16 * 16) + tile;
}
/// All zeros.
ATTN_DEVICE void clear(lane<float> (&x)[2][4]) {
  for (int e = 0; e < 8; ++e) x[e / 4][e % 4] = 0.0f;
}

/// Lesson 4 for one warp: 16 queries, tiles of 16 keys. q [16][16], k and v [keys][16], o [16][16],
/// lse [16]. Shared memory: Q | K | V. Lane l = 4 g + t owns, of each 16 x 8 accumulator, columns
/// 2 t and 2 t + 1 of rows g (elements 0, 1) and g + 8 (elements 2, 3).
ATTN_KERNEL warp_attention(const half* q, const half* k, const half* v, float* o, float* lse,
                           int keys, float scale) {
  using namespace attn::simt;
  const std::uint32_t q_tile = smem_base(), k_tile = q_tile + kTileBytes,
                      v_tile = k_tile + kTileBytes;
  const lane<int> g = lane_id() / 4, t = lane_id() % 4;
  lane<float> m[2], l[2], acc[2][4];  // of rows g and g + 8
  for (int r = 0; r < 2; ++r) m[r] = -attn::infinity, l[r] = 0.0f;
  clear(acc);

  copy_tile(q_tile, q, 0, 16);
  for (int kv0 = 0; kv0 < keys; kv0 += 16) {
    copy_tile(k_tile, k, kv0, keys);
    copy_tile(v_tile, v, kv0, keys);
    cp_async_commit();
    cp_async_wait<0>();  // this lane's copies have landed,
    warp_sync();         // and so have those of the others

    // S = Q K^T: two products of 16 x 16 by 16 x 8, for keys 0 to 7 and 8 to 15 of the tile
    Fragment a, b;
    ldmatrix_x4(a, matrix_row(q_tile));
    ldmatrix_x4(b, matrix_row(k_tile));
    lane<float> s[2][4];
    clear(s);
    mma_m16n8k16<half>(s[0], a, b[0], b[2]);
    mma_m16n8k16<half>(s[1], a, b[1], b[3]);

    // the five statements, on the two rows of each lane
    for (int r = 0; r < 2; ++r) {
      lane<float> larger = m[r];
      for (int c = 0; c < 4; ++c) {
        lane<float>& x = s[c / 2][2 * r + c % 2];
        const lane<int> key = t * 2 + (kv0 + c / 2 * 8 + c % 2);
        x = attn::select(key < keys, x * scale, -attn::infinity);
        larger = vmax(larger, x);
      }
      for (int lanes = 1; lanes < 4; lanes *= 2)  // the four lanes of a row
        larger = vmax(larger, shfl_xor(larger, lanes));
      const lane<float> rescale = vexp2((m[r] - larger) * 1.44269504f);
      l[r] *= rescale;
      for (int c = 0; c < 4; ++c) {
        lane<float>& w = s[c / 2][2 * r + c % 2];
        w = vexp2((w - larger) * 1.44269504f);
        l[r] += w;
        acc[c / 2][2 * r + c % 2] *= rescale;
      }
      m[r] = larger;
    }

    // O += P V: the accumulators of S, rounded to fp16, are a left operand as they stand
    for (int i = 0; i < 4; ++i) a[i] = pack2<half>(s[i / 2][i % 2 * 2], s[i / 2][i % 2 * 2 + 1]);
    ldmatrix_x4_trans(b, matrix_row(v_tile));
    mma_m16n8k16<half>(acc[0], a, b[0], b[1]);
    mma_m16n8k16<half>(acc[1], a, b[2], b[3]);
    warp_sync();  // nobody reads this tile any more: the next may land in it
  }
  for (int r = 0; r < 2; ++r) {
    for (int lanes = 1; lanes < 4; lanes *= 2) l[r] += shfl_xor(l[r], lanes);
    for (int c = 0; c < 4; ++c)
      stg(o, (g + 8 * r) * 16 + t * 2 + (c / 2 * 8 + c % 2), acc[c / 2][2 * r + c % 2] / l[r]);
    stg(lse, g + 8 * r, m[r] + vlog2(l[r]) * 0.693147181f, t == 0);
  }
}

}  // namespace ATTN_TARGET
}  // namespace lesson
