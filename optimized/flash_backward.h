#pragma once

#include <cstdint>

#include "optimized/flash_forward.h"

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

template <class T, class Mod, class Mask>
struct FlashBackwardArgs {
  HeadRows<const T> q{}, k{}, v{},
      d_o{};                           // [B, Hq, Sq, D], [B, Hkv, Skv, D or Dv], [B, Hq, Sq, Dv]
  HeadRows<T> dq{}, dk{}, dv{};        // as q, k, v
  TensorView<const float, 3> lse{};    // [B, Hq, Sq]
  TensorView<const float, 3> delta{};  // [B, Hq, Sq]: dot(dO, O) - dLSE
  Source source{};
  int d = 0, d_v = 0;
  float scale = 1;
  KernelDropout dropout{};
  Mod mod;
  Mask mask;
};

inline namespace ATTN_TARGET {

/// Of 64 owned rows and 32 streamed ones. `Columns`: the channels of dK and dV that one block sums
/// up; for a head size of 256 two blocks share the work, as the sums fill the registers.
template <int Head>
struct BackwardTile : FlashTile<64, 32, Head> {
  static constexpr int kColumns = Head < 128 ? Head : 128;
  /// Streamed queries whose scores are in registers at a time, beside sums of dK and dV.
  static constexpr int kPart = Head < 128 ? 32 : 16;
  static constexpr int kSharedBytes = 2 * Head * (2 * 64 + 4 * 32);
};

/// What one pair contributes: the weight P' that V had, and dT.
struct PairGradients {
  simt::lane<float> weight, dt, slope;

  /// A pair without weight has no gradient, even beside an infinite slope.
  ATTN_DEVICE simt::lane<float> ds() const { return select(dt == 0.0f, 0.0f, dt * slope); }
};

/// One pair for each lane. `live`: inside the problem. `slope` is mod', or the derivative that the
/// environment is seeded for. All indices are valid.
template <class T, class Mod, class Mask>
ATTN_DEVICE PairGradients pair_gradients(const Mod& mod, const Mask& mask, DualKernelEnv& env,
                                         float scale, int b, simt::lane<int> h, simt::lane<int> q,
                                         simt::lane<int> kv, simt::lane<float> raw,
                                         simt::lane<float> dp, simt::lane<float> lse,
                                         simt::lane<float> delta, simt::lane<float> dropout,
                                         simt::lane<bool> live, bool full) {
  using simt::lane;
  using I = Index<DualKernelEnv>;
  const I batch{b, &env}, head{h, &env}, row{q, &env}, column{kv, &env};
  const float seed = env.seeded < 0 ? 1.0f : 0.0f;
  env.reads = 0;
  const Dual<lane<float>> t =
      call_mod(mod, Dual<lane<float>>(lane<float>(raw * scale), lane<float>(seed)), batch, head,
               row, column);
  if (!full && !planted(PlantedFault::M40)) {
    KernelEnv plain{env.sizes};
    using J = Index<KernelEnv>;
    live = live && call_mask(mask, J{b, &plain}, J{h, &plain}, J{q, &plain}, J{kv, &plain});
  }
  live = live && t.v != -infinity;  // the mod masks, too
  // By selection, never as exp(-inf - LSE): a row without keys has LSE = -inf.
  lane<float> p = select(live, simt::vexp2((t.v - lse) * log2_of_e), 0.0f);
  if (planted(PlantedFault::M37)) p = simt::vexp2((select(live, t.v, -infinity) - lse) * log2_of_e);
  const lane<float> dt = planted(PlantedFault::M37)
                             ? lane<float>(p * (dp * dropout - delta))
                             : lane<float>(select(live, p * (dp * dropout - delta), 0.0f));
  return {p * dropout, dt, planted(PlantedFault::M39) ? lane<float>(1.0f) : t.d};
}

/// LSE and delta of rows, by row of the sequence.
struct RowNumbers {
  std::int64_t lse_first, lse_stride, delta_first, delta_stride;

  template <class Args>
  ATTN_DEVICE RowNumbers(const Args& args, const KernelSequence& sequence, int h)
      : lse_first(sequence.batch * args.lse.strides[0] + h * args.lse.strides[1] +
                  sequence.q_first * args.lse.strides[2]),
        lse_stride(args.lse.strides[2]),
        delta_first(sequence.batch * args.delta.strides[0] + h * args.delta.strides[1] +
                    sequence.q_first * args.delta.strides[2]),
        delta_stride(args.delta.strides[2]) {}
  template <class Args>
  ATTN_DEVICE void load(const Args& args, simt::lane<int> row, simt::lane<bool> there,
                        simt::lane<float>& lse, simt::lane<float>& delta) const {
    using Wide = simt::lane<std::int64_t>;
    lse = simt::ldg(args.lse.data, Wide(row) * lse_stride + lse_first, there);
    delta = simt::ldg(args.delta.data, Wide(row) * delta_stride + delta_first, there);
  }
};

/// The query rows of one head that a block owns: block x = (b Hq + h) * (query tiles) + query tile.
template <class Tile>
struct OwnedQueries {
  int tile, row0, h, b, hkv;
  KernelSequence sequence;

  ATTN_DEVICE explicit OwnedQueries(const Source& source) {
    const Sizes& size = source.sizes;
    const int tiles = (size.sq + Tile::kBlockQ - 1) / Tile::kBlockQ;
    tile = simt::block_x() % tiles;
    row0 = tile * Tile::kBlockQ;
    h = simt::block_x() / tiles % size.hq;
    b = simt::block_x() / tiles / size.hq;
    hkv = h / (size.hq / size.hkv);
    sequence = sequence_of(source, b);
  }
};

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
  const FragmentRows fragment(row0, rows, h, 1);
  const RowNumbers numbers(args, sequence, h);
  lane<float> lse[2], delta[2];
  for (int r = 0; r < 2; ++r)
    numbers.load(args, fragment.position[r], fragment.there[r], lse[r], delta[r]);

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
      for (int e = 0; e < 4; ++e) {
        const int r = e >> 1;
        const lane<int> column = kv0 + j * 8 + ((simt::lane_id() & 3) << 1) + (e & 1);
        const lane<int> q = fragment.position[r] + sequence.sizes.q_offset,
                        kv = min(column, skv - 1);
        lane<float> dropout = 1.0f;
        if (args.dropout.active())
          dropout = dropout_factor(args.dropout, b, fragment.head[r], q, kv);
        const PairGradients g = pair_gradients<T>(
            args.mod, args.mask, env, args.scale, b, fragment.head[r], q, kv, s[j][e], dp[j][e],
            lse[r], delta[r], dropout, fragment.there[r] && column < skv, full);
        s[j][e] = g.ds();
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
template <class T, int kFragments, class Args>
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
        const PairGradients g = pair_gradients<T>(args.mod, args.mask, env, args.scale, sequence.b,
                                                  lane<int>(head), q, kv, st[j][e], dpt[j][e], lse,
                                                  delta, dropout, there && keys.there[r], full);
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
      transposed_gradients<T>(st, dpt, args, env, sequence, numbers, fragment, head, q0 + part,
                              full);
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
