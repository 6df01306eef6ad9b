#pragma once

#include <cstdint>

#include "optimized/flash_forward.h"
#include "optimized/fp32_tile.h"
#include "optimized/row_end.h"

/// Forward for fp32 tensors: FlashAttention-2 (T. Dao, 2023, Algorithm 1) as in flash_forward.h,
/// every number fp32 from end to end. The two products are plain fused multiply-adds here, and TF32
/// tensor-core products in tf32_forward.h; all else is the same kernel.
///
/// A block owns kBlockQ query rows of one head, 16 a warp. There is one tile of K and one of V: the
/// next K is on its way while O += P V runs, the next V while S = Q K^T does.
///
///   flops of a tile  4 kBlockQ kBlockKV kHead: two products
///   bytes of a tile  8 kBlockKV kHead: K and V, 32 bits a number
///   shared memory    Q | K | V, rows of kHead + 4 fp32 numbers;
///                    4 (kHead + 4) (kBlockQ + 2 kBlockKV) bytes: 66 KiB at 64 x 32, head size 128
namespace attn {
inline namespace ATTN_TARGET {

/// Q, one tile of K and one of V.
template <class Tile>
inline constexpr int fp32_forward_shared_bytes = fp32_row_bytes<Tile::kHead>*(Tile::kBlockQ +
                                                                              2 * Tile::kBlockKV);

/// What the kernel is given.
template <class Mod, class Mask>
struct Fp32ForwardArgs {
  HeadRows<const float> q, k, v;      ///< [B, Hq, Sq, D], [B, Hkv, Skv, D], [B, Hkv, Skv, Dv]
  TensorView<float, 4> o;             ///< [B, Hq, Sq, Dv]
  TensorView<float, 3> lse, row_max;  ///< [B, Hq, Sq]; no row_max where it has no data
  TensorView<const float, 1> sink;    ///< [Hq]; no data: none
  Sizes sizes;                        ///< as the mod and the mask see them
  int d = 0, dv = 0;                  ///< of the tensors, up to Tile::kHead
  float scale = 1;                    ///< of Q K^T
  KernelDropout dropout;              ///< of the probabilities
  Mod mod;                            ///< how scores change
  Mask mask;                          ///< which pairs attend
};

/// The two products by fused multiply-adds, each thread on the elements that it would hold of a
/// tensor core's accumulator: with g = lane / 4 and t = lane % 4, rows g and g + 8 of the warp's
/// 16, and of S the columns 8j + 2t and the next. So scores, softmax and dropout are shared with
/// the tensor-core kernels.
struct FmaProducts {
  /// S = Q K^T for the warp's 16 rows and the keys of a tile, four channels a step. Each thread
  /// reads 2 rows of Q and kBlockKV / 4 of K for kBlockKV / 2 elements of S.
  template <class Tile>
  ATTN_DEVICE static void scores(simt::lane<float> (&s)[Tile::kBlockKV / 8][4],
                                 std::uint32_t q_tile, std::uint32_t k_tile) {
    using simt::lane;
    const lane<int> g = simt::lane_id() >> 2, t = simt::lane_id() & 3;
    const int row0 = simt::warp_id() * 16;
    ATTN_UNROLL
    for (int j = 0; j < Tile::kBlockKV / 8; ++j) {
      ATTN_UNROLL
      for (int e = 0; e < 4; ++e) s[j][e] = 0.0f;
    }
    for (int chunk = 0; chunk < Tile::kHead / 4; ++chunk) {
      lane<float> q[2][4];
      ATTN_UNROLL
      for (int r = 0; r < 2; ++r)
        load_floats(q[r], q_tile + fp32_tile_offset<Tile::kHead>(row0 + 8 * r + g, chunk));
      ATTN_UNROLL
      for (int column = 0; column < Tile::kBlockKV / 4; ++column) {
        const int j = column / 2, e = column % 2;
        lane<float> k[4];
        load_floats(k, k_tile + fp32_tile_offset<Tile::kHead>(8 * j + 2 * t + e, chunk));
        ATTN_UNROLL
        for (int i = 0; i < 4; ++i) {
          s[j][e] = simt::vfma(q[0][i], k[i], s[j][e]);
          s[j][2 + e] = simt::vfma(q[1][i], k[i], s[j][2 + e]);
        }
      }
    }
  }

  /// O += P V. The four threads of a quad hold their two rows of P between them and hand each other
  /// one key after another; of V each reads four channels in a row out of every 16.
  template <class Tile>
  ATTN_DEVICE static void add_values(simt::lane<float> (&o)[Tile::kHead / 8][4],
                                     const simt::lane<float> (&p)[Tile::kBlockKV / 8][4],
                                     std::uint32_t v_tile) {
    using simt::lane;
    const lane<int> t = simt::lane_id() & 3;
    for (int owner = 0; owner < 4; ++owner) {
      const lane<int> source = (simt::lane_id() & ~3) | owner;
      ATTN_UNROLL
      for (int column = 0; column < Tile::kBlockKV / 4; ++column) {
        const int j = column / 2, e = column % 2;
        const lane<float> upper = simt::shfl(p[j][e], source);
        const lane<float> lower = simt::shfl(p[j][2 + e], source);
        ATTN_UNROLL
        for (int c = 0; c < Tile::kHead / 16; ++c) {
          lane<float> v[4];
          load_floats(v, v_tile + fp32_tile_offset<Tile::kHead>(8 * j + 2 * owner + e, 4 * c + t));
          ATTN_UNROLL
          for (int i = 0; i < 4; ++i) {
            lane<float>(&fragment)[4] = o[2 * c + i / 2];
            fragment[i % 2] = simt::vfma(upper, v[i], fragment[i % 2]);
            fragment[2 + i % 2] = simt::vfma(lower, v[i], fragment[2 + i % 2]);
          }
        }
      }
    }
  }

  /// The channel of o[j][e] and o[j][e + 2].
  ATTN_DEVICE static simt::lane<int> channel(int j, int e) {
    return j / 2 * 16 + (simt::lane_id() & 3) * 4 + (j % 2 * 2 + e);
  }
};

/// One block: kBlockQ query rows of one head, all their keys.
template <class Tile, class Products, class Mod, class Mask>
ATTN_LAUNCH_BOUNDS(Tile::kThreads, 1)
ATTN_KERNEL fp32_forward_kernel(const ATTN_GRID_CONSTANT Fp32ForwardArgs<Mod, Mask> args) {
  using simt::lane;
  constexpr int kHead = Tile::kHead, kBlockQ = Tile::kBlockQ, kBlockKV = Tile::kBlockKV;
  const Sizes& size = args.sizes;

  // Block x = (b Hq + h) * (query tiles) + query tile.
  const int q_tiles = (size.sq + kBlockQ - 1) / kBlockQ;
  const int row0 = simt::block_x() % q_tiles * kBlockQ;
  const int h = simt::block_x() / q_tiles % size.hq, b = simt::block_x() / q_tiles / size.hq;
  const int hkv = planted(PlantedFault::M26) ? h % size.hkv : h / (size.hq / size.hkv);
  const KernelSequence sequence{size, b, b, 0, 0};
  const RowMap q_rows = query_rows(sequence, args.q, h, 1);
  const RowMap k_rows{args.k.head_offset(b, hkv), args.k.view.strides[2]};
  const RowMap v_rows{args.v.head_offset(b, hkv), args.v.view.strides[2]};
  const int kv_end = planted(PlantedFault::M21) ? min(size.sq, size.skv) : size.skv;
  const int kv_tiles = (kv_end + kBlockKV - 1) / kBlockKV;
  const int d = planted(PlantedFault::M34b) && args.d >= 16 ? args.d & ~15 : args.d;
  const int dv = planted(PlantedFault::M34) ? args.d : args.dv;

  const std::uint32_t q_tile = simt::smem_base(), k_tile = q_tile + kBlockQ * fp32_row_bytes<kHead>,
                      v_tile = k_tile + kBlockKV * fp32_row_bytes<kHead>;

  lane<float> o[kHead / 8][4];  // this warp's 16 rows of the unnormalised output
  ATTN_UNROLL
  for (int j = 0; j < kHead / 8; ++j) {
    ATTN_UNROLL
    for (int e = 0; e < 4; ++e) o[j][e] = 0.0f;
  }
  OnlineSoftmax softmax;
  const FragmentRows fragment(row0, size.sq, h, 1);

  load_fp32_tile<Tile, kBlockQ>(q_tile, args.q, q_rows, row0, size.sq, d);
  if (kv_tiles > 0) load_fp32_tile<Tile, kBlockKV>(k_tile, args.k, k_rows, 0, size.skv, d);
  simt::cp_async_commit();

  for (int tile = 0; tile < kv_tiles; ++tile) {
    const int kv0 = tile * kBlockKV;
    simt::cp_async_wait<0>();
    // K has landed for every thread, and every warp is done with the last V.
    if (!planted(PlantedFault::M63) || tile == 0) simt::block_sync();
    load_fp32_tile<Tile, kBlockKV>(v_tile, args.v, v_rows, kv0, size.skv, dv);
    simt::cp_async_commit();

    lane<float> s[kBlockKV / 8][4];
    Products::template scores<Tile>(s, q_tile, k_tile);
    modify_scores<float>(s, args.mod, args.mask, args.scale, sequence, fragment, kv0, false);
    ATTN_UNROLL
    for (int r = 0; r < 2; ++r) {
      lane<float> rescale = softmax.step(s, r);
      if (planted(PlantedFault::M07b)) rescale = 1.0f;
      ATTN_UNROLL
      for (int j = 0; j < kHead / 8; ++j) {
        o[j][2 * r] *= rescale;
        o[j][2 * r + 1] *= rescale;
      }
    }
    if (args.dropout.active()) drop_weights(s, args.dropout, sequence, fragment, kv0);

    simt::cp_async_wait<0>();
    simt::block_sync();  // V has landed for every thread, and every warp is done with K
    if (tile + 1 < kv_tiles)
      load_fp32_tile<Tile, kBlockKV>(k_tile, args.k, k_rows, kv0 + kBlockKV, size.skv, d);
    simt::cp_async_commit();
    Products::template add_values<Tile>(o, s, v_tile);
  }
  simt::cp_async_wait<0>();

  const float sink = args.sink.data != nullptr
                         ? simt::ldg_uniform(args.sink.data, h * args.sink.strides[0])
                         : -infinity;
  ATTN_UNROLL
  for (int r = 0; r < 2; ++r) {
    // A NaN in V shows in one channel of O: it is taken over to l, and so to the row and its LSE.
    const RowEnd end = end_row(softmax.max[r], softmax.row_sum(r) + nan_of_row(o, r), sink);
    const lane<std::int64_t> row(fragment.position[r]);
    const lane<bool> writes = fragment.there[r] && (simt::lane_id() & 3) == 0;
    const auto at = [&](const TensorView<float, 3>& x) {
      return b * x.strides[0] + h * x.strides[1] + row * x.strides[2];
    };
    simt::stg(args.lse.data, at(args.lse), end.lse, writes);
    if (args.row_max.data != nullptr)
      simt::stg(args.row_max.data, at(args.row_max), end.row_max, writes);

    const lane<std::int64_t> o_row =
        b * args.o.strides[0] + h * args.o.strides[1] + row * args.o.strides[2];
    ATTN_UNROLL
    for (int j = 0; j < kHead / 8; ++j) {
      ATTN_UNROLL
      for (int e = 0; e < 2; ++e) {
        const lane<int> channel = Products::channel(j, e);
        simt::stg(args.o.data, o_row + lane<std::int64_t>(channel) * args.o.strides[3],
                  o[j][2 * r + e] * end.factor, fragment.there[r] && channel < args.dv);
      }
    }
  }
}

}  // namespace ATTN_TARGET
}  // namespace attn
