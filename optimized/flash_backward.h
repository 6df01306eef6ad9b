#pragma once

#include <cstdint>

#include "optimized/backward_pairs.h"

/// FlashAttention-2 backward (T. Dao, 2023, Algorithm 2) on sm_80 tensor cores, in two kernels that
/// share nothing, so that every sum has one owner and a fixed order: no atomics, the same bits each
/// time, whatever the order of blocks.
///
///   flash_backward_q    a block owns 64 query rows, streams keys:      dQ
///   flash_backward_kv   a block owns 64 keys, streams queries, of all
///                       heads of the group one after another:          dK, dV
///
/// Both form the scores again, as tiles have no other way to remember them:
///
///     P = exp(t - LSE)     dP = dO V^T (dropout)     dT = P (dP - delta)     dS = dT mod'(s)
///     dQ = scale dS K      dK = scale dS^T Q         dV = P'^T dO
///
/// where t and mod' come from one run of the mod on a dual number, and delta = dot(dO, O) - dLSE is
/// made beforehand (optimized/backward_rows.h). The second kernel forms S^T = K Q^T, so that P^T
/// and dS^T are left as operands of the next product, as P is in the forward pass.
///
///   flops of a tile  2 * 64 * 32 * kHead each product: 3 for dQ, 4 for dK and dV; the algorithm
///                    with atomics needs 5 in all
///   bytes of a tile  4 * 32 kHead: K and V, or Q and dO
///   shared memory    two owned tiles of 64 rows | two streamed tiles of 32 rows, twice;
///                    512 kHead bytes: 64 KiB at head size 128
namespace attn {
inline namespace ATTN_TARGET {

/// dQ of 64 query rows of one head.
template <class Tile, class T, class Mod, class Mask>
ATTN_LAUNCH_BOUNDS(Tile::kThreads, 1)
ATTN_KERNEL flash_backward_q_kernel(const ATTN_GRID_CONSTANT FlashBackwardArgs<T, Mod, Mask> args) {
  using simt::lane;
  constexpr int kHead = Tile::kHead, kOwn = Tile::kBlockQ, kStream = Tile::kBlockKV;
  constexpr std::uint32_t kOwnBytes = kOwn * kHead * 2, kStreamBytes = kStream * kHead * 2;
  const OwnedQueries<Tile> own(args.source);
  const KernelSequence& sequence = own.sequence;
  const int row0 = own.row0, h = own.h, b = own.b, hkv = own.hkv;
  const int rows = sequence.sizes.sq, skv = sequence.sizes.skv;
  if (row0 >= rows) return;

  const RowMap q_rows = query_rows(sequence, args.q, h, 1),
               do_rows = query_rows(sequence, args.d_o, h, 1),
               k_rows = key_rows(args.source, sequence, args.k, hkv),
               v_rows = key_rows(args.source, sequence, args.v, hkv);
  const std::uint32_t q_tile = simt::smem_base(), do_tile = q_tile + kOwnBytes,
                      k_tile = do_tile + kOwnBytes, v_tile = k_tile + 2 * kStreamBytes;
  const auto load_kv = [&](int tile, int buffer) {
    load_tile<Tile, kStream>(k_tile + buffer * kStreamBytes, args.k, k_rows, tile * kStream, skv,
                             args.d);
    load_tile<Tile, kStream>(v_tile + buffer * kStreamBytes, args.v, v_rows, tile * kStream, skv,
                             args.d_v);
  };

  lane<float> dq[kHead / 8][4];
  ATTN_UNROLL
  for (int j = 0; j < kHead / 8; ++j) {
    ATTN_UNROLL
    for (int e = 0; e < 4; ++e) dq[j][e] = 0.0f;
  }
  const QueryFragment fragment(args, sequence, row0, h);

  TileCursor at = visited_tiles(args.source, b, h, own.tile, (skv + kStream - 1) / kStream);
  load_tile<Tile, kOwn>(q_tile, args.q, q_rows, row0, rows, args.d);
  load_tile<Tile, kOwn>(do_tile, args.d_o, do_rows, row0, rows, args.d_v);
  if (at.valid()) load_kv(at.tile(), 0);
  simt::cp_async_commit();

  DualKernelEnv env{sequence.sizes};
  int buffer = 0;
  for (; at.valid(); buffer ^= 1) {
    simt::cp_async_wait<0>();
    simt::block_sync();  // this tile has landed; every warp is done with the other buffer
    const int kv0 = at.tile() * kStream;
    const bool full = at.full() || planted(PlantedFault::M49);
    at.next();
    if (at.valid()) load_kv(at.tile(), buffer ^ 1);
    simt::cp_async_commit();

    lane<float> s[kStream / 8][4], dp[kStream / 8][4];
    multiply_abt<kHead, kStream, T>(s, q_tile, k_tile + buffer * kStreamBytes);
    multiply_abt<kHead, kStream, T>(dp, do_tile, v_tile + buffer * kStreamBytes);
    ATTN_UNROLL
    for (int j = 0; j < kStream / 8; ++j) {
      ATTN_UNROLL
      for (int r = 0; r < 2; ++r) {
        Pair pair[2];
        fragment.pairs(args.dropout, sequence, kv0, j, r, pair);
        ATTN_UNROLL
        for (int e = 0; e < 2; ++e) {
          lane<float>& score = s[j][2 * r + e];
          score = pair_gradients(args, env, b, pair[e], score, dp[j][2 * r + e], full).ds();
        }
      }
    }
    multiply_ab<kHead, kStream, kHead, T>(dq, s, k_tile + buffer * kStreamBytes);
  }
  simt::cp_async_wait<0>();
  simt::block_sync();  // Q is overwritten
  ATTN_UNROLL
  for (int j = 0; j < kHead / 8; ++j) {
    ATTN_UNROLL
    for (int e = 0; e < 4; ++e) dq[j][e] *= args.scale;
  }
  store_rows<kHead, kHead>(dq, q_tile, args.dq, query_rows(sequence, args.dq, h, 1), row0, rows,
                           args.d);
}

/// S^T and dP^T of keys (rows) and queries (columns, from q0 on) become P'^T and dS^T.
template <int kFragments, class Args>
ATTN_DEVICE_LARGE void transposed_gradients(simt::lane<float> (&st)[kFragments][4],
                                            simt::lane<float> (&dpt)[kFragments][4],
                                            const Args& args, DualKernelEnv& env,
                                            const KernelSequence& sequence,
                                            const RowNumbers& numbers, const FragmentRows& keys,
                                            int head, int q0, bool full) {
  using simt::lane;
  const int rows = sequence.sizes.sq;
  ATTN_UNROLL
  for (int j = 0; j < kFragments; ++j) {
    ATTN_UNROLL
    for (int column = 0; column < 2; ++column) {
      const lane<int> row = q0 + j * 8 + ((simt::lane_id() & 3) << 1) + column;
      const lane<bool> there = row < rows;
      const lane<int> valid = min(row, rows - 1);
      lane<float> lse, delta;
      numbers.load(args, valid, there, lse, delta);
      ATTN_UNROLL
      for (int r = 0; r < 2; ++r) {
        const int e = 2 * r + column;
        lane<int> q = valid + sequence.sizes.q_offset, kv = keys.position[r];
        lane<float> dropout = 1.0f;
        if (args.dropout.active())
          dropout = planted(PlantedFault::M48)
                        ? dropout_factor(args.dropout, sequence.b, lane<int>(head), kv, q)
                        : dropout_factor(args.dropout, sequence.b, lane<int>(head), q, kv);
        if (planted(PlantedFault::M47)) {
          const lane<int> swapped = min(kv, rows - 1);
          kv = min(q, sequence.sizes.skv - 1);
          q = swapped;
        }
        const Pair pair{lane<int>(head), q, kv, lse, delta, dropout, there && keys.there[r]};
        const PairGradients g =
            pair_gradients(args, env, sequence.b, pair, st[j][e], dpt[j][e], full);
        st[j][e] = g.weight;
        dpt[j][e] = g.ds();
      }
    }
  }
}

/// dK and dV of 64 keys, kColumns channels of them.
template <class Tile, class T, class Mod, class Mask>
ATTN_LAUNCH_BOUNDS(Tile::kThreads, 1)
ATTN_KERNEL
    flash_backward_kv_kernel(const ATTN_GRID_CONSTANT FlashBackwardArgs<T, Mod, Mask> args) {
  using simt::lane;
  constexpr int kHead = Tile::kHead, kOwn = Tile::kBlockQ, kStream = Tile::kBlockKV,
                kColumns = Tile::kColumns, kPart = Tile::kPart;
  constexpr std::uint32_t kOwnBytes = kOwn * kHead * 2, kStreamBytes = kStream * kHead * 2;
  const Sizes& size = args.source.sizes;

  // Block x = (b Hkv + h) * (key tiles) + key tile; block y = which channels.
  const int kv_tiles = (size.skv + kOwn - 1) / kOwn;
  const int kv_tile_index = simt::block_x() % kv_tiles, kv0 = kv_tile_index * kOwn;
  const int hkv = simt::block_x() / kv_tiles % size.hkv, b = simt::block_x() / kv_tiles / size.hkv;
  const int first = kColumns < kHead ? simt::block_y() * kColumns : 0;
  const int group = size.hq / size.hkv;
  const KernelSequence sequence = sequence_of(args.source, b);
  const int rows = sequence.sizes.sq, skv = sequence.sizes.skv;
  if (kv0 >= skv) return;

  const std::uint32_t k_tile = simt::smem_base(), v_tile = k_tile + kOwnBytes,
                      q_tile = v_tile + kOwnBytes, do_tile = q_tile + 2 * kStreamBytes;
  const auto load_q = [&](int h, int tile, int buffer) {
    load_tile<Tile, kStream>(q_tile + buffer * kStreamBytes, args.q,
                             query_rows(sequence, args.q, h, 1), tile * kStream, rows, args.d);
    load_tile<Tile, kStream>(do_tile + buffer * kStreamBytes, args.d_o,
                             query_rows(sequence, args.d_o, h, 1), tile * kStream, rows, args.d_v);
  };

  lane<float> dk[kColumns / 8][4], dv[kColumns / 8][4];
  ATTN_UNROLL
  for (int j = 0; j < kColumns / 8; ++j) {
    ATTN_UNROLL
    for (int e = 0; e < 4; ++e) dk[j][e] = dv[j][e] = 0.0f;
  }
  const FragmentRows fragment(kv0, skv, hkv, 1);  // rows are keys here

  load_tile<Tile, kOwn>(k_tile, args.k, key_rows(args.source, sequence, args.k, hkv), kv0, skv,
                        args.d);
  load_tile<Tile, kOwn>(v_tile, args.v, key_rows(args.source, sequence, args.v, hkv), kv0, skv,
                        args.d_v);

  // The tiles of queries, head after head of the group.
  const int q_tiles = (rows + kStream - 1) / kStream;
  const auto queries_of = [&](int h) {
    return visited_tiles(args.source, b, h, kv_tile_index, q_tiles);
  };
  const int h_end = (hkv + 1) * group;
  int h = hkv * group;
  TileCursor at = h < h_end ? queries_of(h) : TileCursor(0);  // Hq = 0: none
  const auto settle = [&] {  // goes on to a head that has a tile left
    while (!at.valid() && h + 1 < h_end) at = queries_of(++h);
  };
  settle();
  if (at.valid()) load_q(h, at.tile(), 0);
  simt::cp_async_commit();

  DualKernelEnv env{sequence.sizes};
  int buffer = 0;
  for (; at.valid(); buffer ^= 1) {
    simt::cp_async_wait<0>();
    simt::block_sync();  // this tile has landed; every warp is done with the other buffer
    const int q0 = at.tile() * kStream, head = h;
    const bool full = at.full() || planted(PlantedFault::M49);
    at.next();
    settle();
    if (at.valid()) load_q(h, at.tile(), buffer ^ 1);
    simt::cp_async_commit();

    const RowNumbers numbers(args, sequence, head);
    ATTN_NO_UNROLL
    for (int part = 0; part < kStream; part += kPart) {
      const std::uint32_t here = buffer * kStreamBytes + part * kHead * 2;
      lane<float> st[kPart / 8][4], dpt[kPart / 8][4];
      multiply_abt<kHead, kPart, T>(st, k_tile, q_tile + here);
      multiply_abt<kHead, kPart, T>(dpt, v_tile, do_tile + here);
      transposed_gradients(st, dpt, args, env, sequence, numbers, fragment, head, q0 + part, full);
      multiply_ab<kHead, kPart, kColumns, T>(dv, st, do_tile + here, first);
      multiply_ab<kHead, kPart, kColumns, T>(dk, dpt, q_tile + here, first);
    }
  }
  simt::cp_async_wait<0>();
  simt::block_sync();  // K and V are overwritten
  ATTN_UNROLL
  for (int j = 0; j < kColumns / 8; ++j) {
    ATTN_UNROLL
    for (int e = 0; e < 4; ++e) dk[j][e] *= args.scale;
  }
  const int end = planted(PlantedFault::M42) ? kv0 + kOwn : skv;
  store_rows<kHead, kColumns>(dk, k_tile, args.dk, key_rows(args.source, sequence, args.dk, hkv),
                              kv0, end, args.d, first);
  store_rows<kHead, kColumns>(dv, v_tile, args.dv, key_rows(args.source, sequence, args.dv, hkv),
                              kv0, end, args.d_v, first);
}

}  // namespace ATTN_TARGET
}  // namespace attn
