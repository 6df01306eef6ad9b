#pragma once

#include <cstdint>

#include "optimized/flash_forward.h"

/// What one pair of a query and a key contributes to the gradients, and the rows that it belongs
/// to: shared by the kernels of the backward pass (optimized/flash_backward.h) and those of
/// captured tensors (optimized/captured_gradient.h).
namespace attn {

/// What both kernels of the backward pass are given.
template <class T, class Mod, class Mask>
struct FlashBackwardArgs {
  HeadRows<const T> q{}, k{}, v{},
      d_o{};                           ///< [B, Hq, Sq, D], [B, Hkv, Skv, D or Dv], [B, Hq, Sq, Dv]
  HeadRows<T> dq{}, dk{}, dv{};        ///< as q, k, v
  TensorView<const float, 3> lse{};    ///< [B, Hq, Sq]
  TensorView<const float, 3> delta{};  ///< [B, Hq, Sq]: dot(dO, O) - dLSE
  Source source{};                     ///< where the rows of each sequence lie
  int d = 0, d_v = 0;                  ///< D and Dv of the tensors
  float scale = 1;                     ///< of Q K^T
  KernelDropout dropout{};             ///< as it was forward
  Mod mod;                             ///< run on dual numbers
  Mask mask;                           ///< which pairs attend
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

/// One pair of a query and a key for each lane, with what the pair has of its row. All indices are
/// valid; `live` tells whether they are those of the lane.
struct Pair {
  simt::lane<int> h, q, kv;
  simt::lane<float> lse, delta;
  simt::lane<float> dropout;  ///< the factor of its weight
  simt::lane<bool> live;      ///< inside the problem
};

/// What one pair contributes: the weight P' that V had, and dT.
struct PairGradients {
  simt::lane<float> weight, dt, slope;

  /// A pair without weight has no gradient, even beside an infinite slope.
  ATTN_DEVICE simt::lane<float> ds() const { return select(dt == 0.0f, 0.0f, dt * slope); }
};

/// P', dT and the slope of one pair, from its raw score and dP. `slope` is mod', or the derivative
/// that the environment is seeded for. The mask is not asked where `full`.
template <class Args>
ATTN_DEVICE PairGradients pair_gradients(const Args& args, DualKernelEnv& env, int b,
                                         const Pair& pair, simt::lane<float> raw,
                                         simt::lane<float> dp, bool full) {
  using simt::lane;
  const float seed = env.seeded < 0 ? 1.0f : 0.0f;
  using I = Index<DualKernelEnv>;
  env.reads = 0;
  const Dual<lane<float>> t =
      call_mod(args.mod, Dual<lane<float>>(lane<float>(raw * args.scale), lane<float>(seed)),
               I{b, &env}, I{pair.h, &env}, I{pair.q, &env}, I{pair.kv, &env});
  lane<bool> live = pair.live;
  if (!full && !planted(PlantedFault::M40)) {
    KernelEnv plain{env.sizes};
    using J = Index<KernelEnv>;
    live = live && call_mask(args.mask, J{b, &plain}, J{pair.h, &plain}, J{pair.q, &plain},
                             J{pair.kv, &plain});
  }
  live = live && t.v != -infinity;  // the mod masks, too
  // By selection, never as exp(-inf - LSE): a row without keys has LSE = -inf.
  lane<float> p = select(live, simt::vexp2((t.v - pair.lse) * log2_of_e), 0.0f);
  if (planted(PlantedFault::M37))
    p = simt::vexp2((select(live, t.v, -infinity) - pair.lse) * log2_of_e);
  const lane<float> by_row = p * (dp * pair.dropout - pair.delta);
  const lane<float> dt =
      planted(PlantedFault::M37) ? by_row : lane<float>(select(live, by_row, 0.0f));
  return {p * pair.dropout, dt, planted(PlantedFault::M39) ? lane<float>(1.0f) : t.d};
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

/// The rows of queries that a warp holds as accumulator fragments, with LSE and delta of each.
struct QueryFragment {
  FragmentRows rows;
  simt::lane<float> lse[2], delta[2];

  template <class Args>
  ATTN_DEVICE QueryFragment(const Args& args, const KernelSequence& sequence, int row0, int h)
      : rows(row0, sequence.sizes.sq, h, 1) {
    const RowNumbers numbers(args, sequence, h);
    for (int r = 0; r < 2; ++r)
      numbers.load(args, rows.position[r], rows.there[r], lse[r], delta[r]);
  }

  /// The two pairs of row r with the keys of fragment j, of a tile whose first key is kv0: elements
  /// 2r and 2r + 1.
  ATTN_DEVICE void pairs(const KernelDropout& dropout, const KernelSequence& sequence, int kv0,
                         int j, int r, Pair (&pair)[2]) const {
    using simt::lane;
    const int skv = sequence.sizes.skv;
    const lane<int> q = rows.position[r] + sequence.sizes.q_offset,
                    column = kv0 + j * 8 + ((simt::lane_id() & 3) << 1);  // even
    lane<float> factor[2] = {1.0f, 1.0f};
    if (dropout.active()) dropout_factors(dropout, sequence.b, rows.head[r], q, column, factor);
    ATTN_UNROLL
    for (int e = 0; e < 2; ++e)
      pair[e] = {rows.head[r], q,         lane<int>(min(column + e, skv - 1)), lse[r],
                 delta[r],     factor[e], rows.there[r] && column + e < skv};
  }
};

}  // namespace ATTN_TARGET
}  // namespace attn
