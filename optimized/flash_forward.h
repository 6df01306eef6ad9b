#pragma once

#include <cstdint>

#include "mods/lang/call.h"
#include "mods/lang/tensor.h"
#include "optimized/kernel_env.h"
#include "optimized/online_softmax.h"
#include "optimized/planted.h"
#include "optimized/simt/simt.h"

/// FlashAttention-2 forward (T. Dao, 2023, Algorithm 1) on sm_80 tensor cores: O and LSE without
/// ever storing the scores.
///
/// A block owns `kBlockQ` query rows of one head, 16 a warp. Keys and values stream through shared
/// memory in tiles of `kBlockKV`, double-buffered by `cp.async`: while tile t is multiplied, tile
/// t + 1 is on its way.
///
///   flops of a tile  4 kBlockQ kBlockKV kHead: two products
///   bytes of a tile  4 kBlockKV kHead: K and V, 16 bits a number
///   shared memory    Q | K0 | K1 | V0 | V1, rows of kHead 16-bit numbers, swizzled;
///                    2 kHead (kBlockQ + 4 kBlockKV) bytes: 96 KiB at 128 x 64, head size 128
///
/// D and Dv are padded to kHead inside shared memory only, with zeros.
namespace attn {
inline namespace ATTN_TARGET {

/// How a flash kernel cuts the problem.
template <int BlockQ, int BlockKV, int Head>
struct FlashTile {
  static constexpr int kBlockQ = BlockQ;
  static constexpr int kBlockKV = BlockKV;
  static constexpr int kHead = Head;  ///< 64 or 128: D and Dv are at most this
  static constexpr int kWarps = BlockQ / 16;
  static constexpr int kThreads = kWarps * 32;
  static constexpr int kSharedBytes = 2 * Head * (BlockQ + 4 * BlockKV);
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

template <class T, class Mod, class Mask>
struct FlashForwardArgs {
  HeadRows<const T> q, k, v;  // [B, Hq, Sq, D], [B, Hkv, Skv, D], [B, Hkv, Skv, Dv]
  HeadRows<T> o;              // [B, Hq, Sq, Dv]
  TensorView<float, 3> lse;   // [B, Hq, Sq]
  Sizes sizes;
  int d = 0, dv = 0;
  float scale = 1;
  Mod mod;
  Mask mask;
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

/// All threads copy rows [row0, row0 + kRows) of one head into a swizzled tile. What lies past
/// `rows` or `columns` is filled with zeros and not read.
template <class Tile, int kRows, class T>
ATTN_DEVICE void load_tile(std::uint32_t tile, const HeadRows<const T>& x, std::int64_t head,
                           int row0, int rows, int columns) {
  using simt::lane;
  constexpr int kChunks = Tile::kHead / 8;  // 16-byte chunks a row
  if (planted(PlantedFault::M20)) ++rows;
  ATTN_UNROLL
  for (int i = 0; i < kRows * kChunks / Tile::kThreads; ++i) {
    const lane<int> index = simt::thread_id() + i * Tile::kThreads;
    const lane<int> row = index / kChunks, chunk = index % kChunks;
    const lane<std::int64_t> from = head + lane<std::int64_t>(row0 + row) * x.view.strides[2];
    const lane<std::uint32_t> to = tile + tile_offset<Tile::kHead>(row, chunk);
    if (x.vector) {
      simt::cp_async<16>(to, x.view.data, from + lane<std::int64_t>(chunk * 8),
                         row0 + row < rows && chunk * 8 < columns);
      continue;
    }
    // Unaligned rows: element by element, two to a 32-bit store.
    for (int pair = 0; pair < 4; ++pair) {
      lane<std::uint32_t> word = 0u;
      for (int e = 0; e < 2; ++e) {
        const lane<int> column = chunk * 8 + (2 * pair + e);
        const lane<std::uint16_t> bits =
            simt::ldg(reinterpret_cast<const std::uint16_t*>(x.view.data),
                      from + lane<std::int64_t>(column) * x.view.strides[3],
                      row0 + row < rows && column < columns);
        word = word | lane<std::uint32_t>(bits) << (16 * e);
      }
      simt::sts(to + 4u * pair, word);
    }
  }
}

/// S = Q K^T for the warp's 16 rows and the kBlockKV keys of one tile, in fp32.
template <class Tile, class T>
ATTN_DEVICE void multiply_qk(simt::lane<float> (&s)[Tile::kBlockKV / 8][4], std::uint32_t q_tile,
                             std::uint32_t k_tile) {
  using simt::lane;
  const lane<int> ln = simt::lane_id();
  const int row0 = simt::warp_id() * 16;
  ATTN_UNROLL
  for (int j = 0; j < Tile::kBlockKV / 8; ++j) {
    ATTN_UNROLL
    for (int e = 0; e < 4; ++e) s[j][e] = 0.0f;
  }
  ATTN_UNROLL
  for (int kk = 0; kk < Tile::kHead / 16; ++kk) {  // 16 channels a step
    lane<std::uint32_t> a[4];
    simt::ldmatrix_x4(a, q_tile + tile_offset<Tile::kHead>(row0 + (ln & 15), kk * 2 + (ln >> 4)));
    ATTN_UNROLL
    for (int j = 0; j < Tile::kBlockKV / 8; j += 2) {  // 16 keys: two B fragments
      lane<std::uint32_t> b[4];
      simt::ldmatrix_x4(b, k_tile + tile_offset<Tile::kHead>(j * 8 + (ln & 7) + ((ln >> 4) << 3),
                                                             kk * 2 + ((ln >> 3) & 1)));
      simt::mma_m16n8k16<T>(s[j], a, b[0], b[1]);
      simt::mma_m16n8k16<T>(s[j + 1], a, b[2], b[3]);
    }
  }
}

/// O += P V. The accumulator layout of S is the operand layout of P: rounding it to the storage
/// type is all that lies between the two products.
template <class Tile, class T>
ATTN_DEVICE void multiply_pv(simt::lane<float> (&o)[Tile::kHead / 8][4],
                             const simt::lane<float> (&p)[Tile::kBlockKV / 8][4],
                             std::uint32_t v_tile) {
  using simt::lane;
  const lane<int> ln = simt::lane_id();
  ATTN_UNROLL
  for (int kk = 0; kk < Tile::kBlockKV / 16; ++kk) {  // 16 keys a step
    lane<std::uint32_t> a[4];
    ATTN_UNROLL
    for (int e = 0; e < 4; ++e) {
      const auto& fragment = p[2 * kk + (e >> 1)];
      a[e] = simt::pack2<T>(fragment[2 * (e & 1)], fragment[2 * (e & 1) + 1]);
    }
    ATTN_UNROLL
    for (int j = 0; j < Tile::kHead / 8; j += 2) {  // 16 channels of V: two B fragments
      lane<std::uint32_t> b[4];
      simt::ldmatrix_x4_trans(
          b, v_tile + tile_offset<Tile::kHead>(kk * 16 + (ln & 15), j + (ln >> 4)));
      simt::mma_m16n8k16<T>(o[j], a, b[0], b[1]);
      simt::mma_m16n8k16<T>(o[j + 1], a, b[2], b[3]);
    }
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

/// Scale, mod, mask and tail: raw products become scores in units of log 2, -inf where a pair is
/// not attended. Lanes past the end of the problem get the last valid index, so that a mod or mask
/// never sees an index outside it.
template <class Tile, class T, class Args>
ATTN_DEVICE void modify_scores(simt::lane<float> (&s)[Tile::kBlockKV / 8][4], const Args& args,
                               int b, int h, int row0, int kv0) {
  using simt::lane;
  constexpr float kLog2e = 1.4426950408889634f;
  const lane<int> ln = simt::lane_id();
  KernelEnv env{args.sizes};
  using I = Index<KernelEnv>;
  const I batch{b, &env}, head{h, &env};
  ATTN_UNROLL
  for (int j = 0; j < Tile::kBlockKV / 8; ++j) {
    ATTN_UNROLL
    for (int e = 0; e < 4; ++e) {
      const lane<int> row = row0 + (ln >> 2) + 8 * (e >> 1);
      const lane<int> column = kv0 + j * 8 + ((ln & 3) << 1) + (e & 1);
      const I q{min(row, args.sizes.sq - 1), &env}, kv{min(column, args.sizes.skv - 1), &env};
      lane<float> raw = s[j][e];
      if (planted(PlantedFault::M12)) raw = rounded<T>(raw);
      const lane<float> t = call_mod(args.mod, lane<float>(raw * args.scale), batch, head, q, kv);
      const lane<bool> attended = call_mask(args.mask, batch, head, q, kv);
      const float masked = planted(PlantedFault::M02) ? -1e4f : -infinity;
      const lane<float> in_range = select(attended, t * kLog2e, masked);
      s[j][e] =
          select(column < args.sizes.skv, in_range, planted(PlantedFault::M10) ? 0.0f : -infinity);
    }
  }
}

template <class Tile, class T, class Mod, class Mask>
ATTN_LAUNCH_BOUNDS(Tile::kThreads, 1)
ATTN_KERNEL flash_forward_kernel(const ATTN_GRID_CONSTANT FlashForwardArgs<T, Mod, Mask> args) {
  using simt::lane;
  constexpr int kHead = Tile::kHead;
  constexpr std::uint32_t kTileBytes = Tile::kBlockKV * kHead * 2;
  constexpr float kLn2 = 0.6931471805599453f;
  const Sizes& size = args.sizes;

  // Block x = (b Hq + h) * (query tiles) + query tile.
  const int q_tiles = (size.sq + Tile::kBlockQ - 1) / Tile::kBlockQ;
  const int q0 = simt::block_x() % q_tiles * Tile::kBlockQ;
  const int h = simt::block_x() / q_tiles % size.hq, b = simt::block_x() / q_tiles / size.hq;
  const int hkv = planted(PlantedFault::M26) ? h % size.hkv : h / (size.hq / size.hkv);
  const std::int64_t q_head = args.q.head_offset(b, h), k_head = args.k.head_offset(b, hkv),
                     v_head = args.v.head_offset(b, hkv), o_head = args.o.head_offset(b, h);
  const int kv_end = planted(PlantedFault::M21) ? min(size.sq, size.skv) : size.skv;
  const int kv_tiles = (kv_end + Tile::kBlockKV - 1) / Tile::kBlockKV;
  const int d = planted(PlantedFault::M34b) && args.d >= 16 ? args.d & ~15 : args.d;
  const int dv = planted(PlantedFault::M34) ? args.d : args.dv;

  const std::uint32_t q_tile = simt::smem_base(), k_tile = q_tile + Tile::kBlockQ * kHead * 2,
                      v_tile = k_tile + 2 * kTileBytes;
  const auto load_kv = [&](int tile) {
    const std::uint32_t buffer = (tile & 1) * kTileBytes;
    load_tile<Tile, Tile::kBlockKV>(k_tile + buffer, args.k, k_head, tile * Tile::kBlockKV,
                                    size.skv, d);
    load_tile<Tile, Tile::kBlockKV>(v_tile + buffer, args.v, v_head, tile * Tile::kBlockKV,
                                    size.skv, dv);
  };

  lane<float> o[kHead / 8][4];  // this warp's 16 rows of the unnormalised output
  ATTN_UNROLL
  for (int j = 0; j < kHead / 8; ++j) {
    ATTN_UNROLL
    for (int e = 0; e < 4; ++e) o[j][e] = 0.0f;
  }
  OnlineSoftmax softmax;

  load_tile<Tile, Tile::kBlockQ>(q_tile, args.q, q_head, q0, size.sq, d);
  if (kv_tiles > 0) load_kv(0);
  simt::cp_async_commit();

  const int row0 = q0 + simt::warp_id() * 16;
  for (int tile = 0; tile < kv_tiles; ++tile) {
    simt::cp_async_wait<0>();
    // Tile `tile` has landed for every thread, and every warp is done with the other buffer.
    if (!planted(PlantedFault::M63) || tile == 0) simt::block_sync();
    if (tile + 1 < kv_tiles) load_kv(tile + 1);
    simt::cp_async_commit();
    const std::uint32_t buffer = (tile & 1) * kTileBytes;

    lane<float> s[Tile::kBlockKV / 8][4];
    multiply_qk<Tile, T>(s, q_tile, k_tile + buffer);
    modify_scores<Tile, T>(s, args, b, h, row0, tile * Tile::kBlockKV);
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
    multiply_pv<Tile, T>(o, s, v_tile + buffer);

    if (planted(PlantedFault::M08) || planted(PlantedFault::M13))
      for (int j = 0; j < kHead / 8; ++j)
        for (int e = 0; e < 4; ++e)
          o[j][e] = planted(PlantedFault::M13) ? rounded<T>(o[j][e])
                                               : lane<float>(o[j][e] / softmax.row_sum(e >> 1));
  }
  simt::cp_async_wait<0>();
  if (kv_tiles == 0) simt::block_sync();  // Q was copied by all warps and is overwritten below
  simt::warp_sync();

  // O / l and LSE = ln 2 (m + log2 l). A row with no key has m = -inf and l = 0: O = 0, LSE = -inf.
  // A NaN in a score leaves l = NaN, so that it is not mistaken for such a row; one in V is taken
  // over to l, so that it shows in the whole row and in LSE.
  const lane<int> ln = simt::lane_id();
  ATTN_UNROLL
  for (int r = 0; r < 2; ++r) {
    const lane<float> m = softmax.max[r];
    const lane<float> l = softmax.row_sum(r) + nan_of_row<kHead / 8>(o, r);
    const lane<bool> empty = m == -infinity && l == 0.0f;
    const lane<float> inverse = planted(PlantedFault::M05)
                                    ? lane<float>(simt::vrcp(l))
                                    : lane<float>(select(empty, 0.0f, simt::vrcp(l)));
    const lane<float> log_sum = (m + simt::vlog2(l)) * (planted(PlantedFault::M55) ? 1.0f : kLn2);
    const lane<int> local = simt::warp_id() * 16 + 8 * r + (ln >> 2), row = q0 + local;
    simt::stg(args.lse.data,
              b * args.lse.strides[0] + h * args.lse.strides[1] +
                  lane<std::int64_t>(row) * args.lse.strides[2],
              lane<float>(select(empty, planted(PlantedFault::M06) ? 0.0f : -infinity, log_sum)),
              (ln & 3) == 0 && row < size.sq);
    ATTN_UNROLL
    for (int j = 0; j < kHead / 8; ++j)
      simt::sts(q_tile + tile_offset<kHead>(local, j) + lane<std::uint32_t>((ln & 3) << 2),
                simt::pack2<T>(o[j][2 * r] * inverse, o[j][2 * r + 1] * inverse));
  }
  simt::warp_sync();  // each warp writes out its own 16 rows

  ATTN_UNROLL
  for (int i = 0; i < kHead / 16; ++i) {
    const lane<int> index = i * 32 + ln, chunk = index % (kHead / 8);
    const lane<int> local = simt::warp_id() * 16 + index / (kHead / 8), row = q0 + local;
    const lane<std::uint32_t> from = q_tile + tile_offset<kHead>(local, chunk);
    const lane<std::int64_t> to = o_head + lane<std::int64_t>(row) * args.o.view.strides[2];
    if (args.o.vector) {
      simt::stg_as<simt::Vec16>(args.o.view.data, to + lane<std::int64_t>(chunk * 8),
                                simt::lds<simt::Vec16>(from), row < size.sq && chunk * 8 < args.dv);
      continue;
    }
    for (int e = 0; e < 8; ++e) {
      const lane<int> column = chunk * 8 + e;
      simt::stg(reinterpret_cast<std::uint16_t*>(args.o.view.data),
                to + lane<std::int64_t>(column) * args.o.view.strides[3],
                simt::lds<std::uint16_t>(from + 2u * e), row < size.sq && column < args.dv);
    }
  }
}

}  // namespace ATTN_TARGET
}  // namespace attn
