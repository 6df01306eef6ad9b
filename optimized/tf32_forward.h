#pragma once

#include <cstdint>

#include "optimized/fp32_forward.h"

/// Forward for fp32 tensors on TF32 tensor cores: the kernel of fp32_forward.h with its two
/// products replaced. What enters a product, Q, K, P and V, is rounded to TF32 (10 bits of
/// fraction) as it does; sums, scores and softmax are fp32.
namespace attn {
inline namespace ATTN_TARGET {

/// The two products by mma.m16n8k8, 16 rows a warp; g = lane / 4 and t = lane % 4.
struct Tf32Products {
  /// S = Q K^T, eight channels a step. ldmatrix moves rows of 16 bytes, here four fp32 numbers, and
  /// gives lane (g, t) word t of row g: the layout of A and, as K^T is wanted, that of B.
  template <class Tile>
  ATTN_DEVICE static void scores(simt::lane<float> (&s)[Tile::kBlockKV / 8][4],
                                 std::uint32_t q_tile, std::uint32_t k_tile) {
    using simt::lane;
    const lane<int> ln = simt::lane_id();
    const int row0 = simt::warp_id() * 16;
    ATTN_UNROLL
    for (int j = 0; j < Tile::kBlockKV / 8; ++j) {
      ATTN_UNROLL
      for (int e = 0; e < 4; ++e) s[j][e] = 0.0f;
    }
    ATTN_UNROLL
    for (int kk = 0; kk < Tile::kHead / 8; ++kk) {
      lane<std::uint32_t> a[4];
      simt::ldmatrix_x4(
          a, q_tile + fp32_tile_offset<Tile::kHead>(row0 + (ln & 15), kk * 2 + (ln >> 4)));
      round_all(a);
      ATTN_UNROLL
      for (int j = 0; j < Tile::kBlockKV / 8; j += 2) {  // 16 keys: two B fragments
        lane<std::uint32_t> b[4];
        simt::ldmatrix_x4(
            b, k_tile + fp32_tile_offset<Tile::kHead>(j * 8 + (ln & 7) + ((ln >> 4) << 3),
                                                      kk * 2 + ((ln >> 3) & 1)));
        round_all(b);
        simt::mma_m16n8k8_tf32(s[j], a, b[0], b[1]);
        simt::mma_m16n8k8_tf32(s[j + 1], a, b[2], b[3]);
      }
    }
  }

  /// O += P V, eight keys a step. The accumulator of S has keys 2t and 2t + 1 in a thread, where A
  /// wants columns t and t + 4. A sum does not mind the order of its terms, so the thread keeps
  /// what it has and calls key 2t column t and key 2t + 1 column t + 4; B then takes those keys of
  /// V for its rows t and t + 4. No number of P moves.
  template <class Tile>
  ATTN_DEVICE static void add_values(simt::lane<float> (&o)[Tile::kHead / 8][4],
                                     const simt::lane<float> (&p)[Tile::kBlockKV / 8][4],
                                     std::uint32_t v_tile) {
    using simt::lane;
    const lane<int> g = simt::lane_id() >> 2, t = simt::lane_id() & 3;
    ATTN_UNROLL
    for (int kk = 0; kk < Tile::kBlockKV / 8; ++kk) {
      const lane<std::uint32_t> a[4] = {
          simt::round_to_tf32(p[kk][0]), simt::round_to_tf32(p[kk][2]),
          simt::round_to_tf32(p[kk][1]), simt::round_to_tf32(p[kk][3])};
      const lane<std::uint32_t> first =
          v_tile + fp32_tile_offset<Tile::kHead>(kk * 8 + 2 * t, 0) + lane<std::uint32_t>(g * 4);
      ATTN_UNROLL
      for (int j = 0; j < Tile::kHead / 8; ++j) {
        const lane<std::uint32_t> at = first + static_cast<std::uint32_t>(32 * j);
        lane<std::uint32_t> b[2] = {simt::lds<std::uint32_t>(at),
                                    simt::lds<std::uint32_t>(at + fp32_row_bytes<Tile::kHead>)};
        round_all(b);
        simt::mma_m16n8k8_tf32(o[j], a, b[0], b[1]);
      }
    }
  }

  /// The channel of o[j][e] and o[j][e + 2].
  ATTN_DEVICE static simt::lane<int> channel(int j, int e) {
    return j * 8 + ((simt::lane_id() & 3) << 1) + e;
  }

 private:
  template <int n>
  ATTN_DEVICE static void round_all(simt::lane<std::uint32_t> (&x)[n]) {
    ATTN_UNROLL
    for (int i = 0; i < n; ++i) x[i] = simt::round_to_tf32(as_float(x[i]));
  }
};

}  // namespace ATTN_TARGET
}  // namespace attn
