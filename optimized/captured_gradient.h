#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "optimized/backward_pairs.h"

/// Gradients of the captured tensors that a mod reads:
///
///     dC[a] = sum over the pairs (b, h, i, j) that read entry a of dT[i,j] d mod / d C[a]
///
/// Many tiles add to one entry, in no order, and yet the sum must have the same bits each time: it
/// is made of integers. Pass 1 takes the largest magnitude of an entry's contributions and counts
/// them; pass 2 adds them as 64-bit fixed point, scaled so that the sum cannot overflow:
///
///     |sum| <= n max|x| < 2^(ceil(log2 n) + ilogb(max|x|) + 1) = 2^62 quanta.
///
/// A contribution that is not finite shows as the largest magnitude, and the entry becomes NaN.
///
/// Each pass forms scores and dP again: 2 products a tile. The mod runs once for each of its reads,
/// the r-th read carrying the tangent (mods/lang/environments.h).
namespace attn {

/// The sums of one entry. All zero at first.
struct CapturedEntry {
  std::uint64_t sum;    ///< fixed point, two's complement
  std::uint64_t count;  ///< contributions that are not zero
  std::uint64_t max;    ///< in its first four bytes: the bits of the largest |x|
};

/// One tensor that has a gradient: how a read is recognised, and where its entries are summed.
struct CapturedSlot {
  const void* data = nullptr;
  int rank = 0;
  std::int64_t extents[4] = {}, strides[4] = {};
  std::int64_t first = 0;  ///< its first entry among all entries
};

/// Captured tensors that one call may have.
inline constexpr int most_captured = 8;

/// The sums of every captured tensor of a call.
struct CapturedSums {
  CapturedSlot slots[most_captured];
  int count = 0;
  CapturedEntry* entries = nullptr;
};

/// The quantum of an entry is 2^-shift.
ATTN_HOST_DEVICE inline int fixed_point_shift(std::uint32_t max_bits, std::uint64_t count) {
  int log2_count = 0;
  while (log2_count < 63 && (std::uint64_t{1} << log2_count) < count) ++log2_count;
  return 62 - (ilogbf(std::bit_cast<float>(max_bits)) + 1) - log2_count;
}

/// What the kernel that adds up gradients of captured tensors is given.
template <class T, class Mod, class Mask>
struct CapturedGradientArgs {
  FlashBackwardArgs<T, Mod, Mask> pass;
  CapturedSums sums;
  bool second_pass = false;
};

inline namespace ATTN_TARGET {

/// Adds one contribution a lane.
ATTN_DEVICE_LARGE void add_captured(const CapturedSums& sums, const DualKernelEnv& env,
                                    simt::lane<float> x, bool second_pass) {
  using simt::lane;
  for (int s = 0; s < sums.count; ++s) {
    const CapturedSlot& slot = sums.slots[s];
    bool same = slot.data == env.data && slot.rank == env.rank;
    for (int axis = 0; axis < 4; ++axis)
      same = same && (axis >= slot.rank || (slot.extents[axis] == env.extents[axis] &&
                                            slot.strides[axis] == env.strides[axis]));
    if (!same) continue;
    const lane<std::int64_t> entry = env.entry + slot.first;
    const lane<bool> adds = x != 0.0f;  // NaN does, too
    // An entry is three words of 64 bits: sum, count, max.
    auto* words = reinterpret_cast<std::uint32_t*>(sums.entries);
    auto* wide = reinterpret_cast<std::uint64_t*>(sums.entries);
    if (!second_pass) {
      const lane<std::uint32_t> magnitude = simt::per_lane(
          [](float value) { return std::bit_cast<std::uint32_t>(value) & 0x7fffffffu; }, x);
      simt::atomic_max(words, entry * 6 + std::int64_t{4}, magnitude, adds);
      simt::atomic_add(wide, entry * 3 + std::int64_t{1}, lane<std::uint64_t>(std::uint64_t{1}),
                       adds);
      return;
    }
    const lane<std::uint32_t> max = simt::ldg(words, entry * 6 + std::int64_t{4}, adds);
    const lane<std::uint64_t> count = simt::ldg(wide, entry * 3 + std::int64_t{1}, adds);
    const lane<std::uint64_t> fixed = simt::per_lane(
        [](float value, std::uint32_t m, std::uint64_t n) {
          if (m == 0 || m >= 0x7f800000u) return std::uint64_t{0};
          const double scaled = ldexp(static_cast<double>(value), fixed_point_shift(m, n));
          return static_cast<std::uint64_t>(static_cast<std::int64_t>(rint(scaled)));
        },
        x, max, count);
    if (planted(PlantedFault::M44))
      simt::stg(wide, entry * 3, simt::ldg(wide, entry * 3, adds) + fixed, adds);
    else
      simt::atomic_add(wide, entry * 3, fixed, adds);
    return;
  }
}

/// 64 query rows of one head, as flash_backward_q_kernel.
template <class Tile, class T, class Mod, class Mask>
ATTN_LAUNCH_BOUNDS(Tile::kThreads, 1)
ATTN_KERNEL
    captured_gradient_kernel(const ATTN_GRID_CONSTANT CapturedGradientArgs<T, Mod, Mask> all) {
  using simt::lane;
  constexpr int kHead = Tile::kHead, kOwn = Tile::kBlockQ, kStream = Tile::kBlockKV;
  constexpr std::uint32_t kOwnBytes = kOwn * kHead * 2, kStreamBytes = kStream * kHead * 2;
  const FlashBackwardArgs<T, Mod, Mask>& args = all.pass;
  const OwnedQueries<Tile> own(args.source);
  const KernelSequence& sequence = own.sequence;
  const int row0 = own.row0, h = own.h, b = own.b, hkv = own.hkv;
  const int rows = sequence.sizes.sq, skv = sequence.sizes.skv;
  if (row0 >= rows || (planted(PlantedFault::M45) && b > 0)) return;

  const std::uint32_t q_tile = simt::smem_base(), do_tile = q_tile + kOwnBytes,
                      k_tile = do_tile + kOwnBytes, v_tile = k_tile + kStreamBytes;
  const QueryFragment fragment(args, sequence, row0, h);
  load_tile<Tile, kOwn>(q_tile, args.q, query_rows(sequence, args.q, h, 1), row0, rows, args.d);
  load_tile<Tile, kOwn>(do_tile, args.d_o, query_rows(sequence, args.d_o, h, 1), row0, rows,
                        args.d_v);

  // The mod takes longer than the copies: one buffer will do.
  DualKernelEnv env{sequence.sizes};
  for (TileCursor at = visited_tiles(args.source, b, h, own.tile, (skv + kStream - 1) / kStream);
       at.valid(); at.next()) {
    const int kv0 = at.tile() * kStream;
    load_tile<Tile, kStream>(k_tile, args.k, key_rows(args.source, sequence, args.k, hkv), kv0, skv,
                             args.d);
    load_tile<Tile, kStream>(v_tile, args.v, key_rows(args.source, sequence, args.v, hkv), kv0, skv,
                             args.d_v);
    simt::cp_async_commit();
    simt::cp_async_wait<0>();
    simt::block_sync();
    lane<float> s[kStream / 8][4], dp[kStream / 8][4];
    multiply_abt<kHead, kStream, T>(s, q_tile, k_tile);
    multiply_abt<kHead, kStream, T>(dp, do_tile, v_tile);
    for (int j = 0; j < kStream / 8; ++j) {
      ATTN_UNROLL
      for (int r = 0; r < 2; ++r) {
        Pair pair[2];
        fragment.pairs(args.dropout, sequence, kv0, j, r, pair);
        ATTN_UNROLL
        for (int e = 0; e < 2; ++e) {
          int reads = 1;
          for (env.seeded = 0; env.seeded < reads; ++env.seeded) {
            const PairGradients g =
                pair_gradients(args, env, b, pair[e], s[j][2 * r + e], dp[j][2 * r + e], at.full());
            reads = env.reads;
            if (reads > 0) add_captured(all.sums, env, g.ds(), all.second_pass);
          }
        }
      }
    }
    simt::block_sync();  // every warp is done with the tile
  }
  simt::cp_async_wait<0>();
}

/// What the kernel that turns fixed-point sums into fp32 is given.
struct CapturedResultArgs {
  const CapturedEntry* entries = nullptr;
  float* result = nullptr;
  std::int64_t count = 0;
};

/// All entries to zero, which is where the passes begin.
ATTN_KERNEL clear_captured_kernel(const ATTN_GRID_CONSTANT CapturedSums sums, std::int64_t count) {
  using simt::lane;
  const lane<std::int64_t> i =
      lane<std::int64_t>(simt::thread_id()) + std::int64_t{simt::block_x()} * simt::block_threads();
  auto* wide = reinterpret_cast<std::uint64_t*>(sums.entries);
  for (std::int64_t word = 0; word < 3; ++word)
    simt::stg(wide, i * 3 + word, lane<std::uint64_t>(std::uint64_t{0}), i < count);
}

/// The sums of one tensor's entries as fp32.
ATTN_KERNEL captured_result_kernel(const ATTN_GRID_CONSTANT CapturedResultArgs args) {
  using simt::lane;
  const lane<std::int64_t> i =
      lane<std::int64_t>(simt::thread_id()) + std::int64_t{simt::block_x()} * simt::block_threads();
  const lane<bool> there = i < args.count;
  const auto* wide = reinterpret_cast<const std::uint64_t*>(args.entries);
  const lane<std::uint64_t> sum = simt::ldg(wide, i * 3, there);
  const lane<std::uint64_t> count = simt::ldg(wide, i * 3 + std::int64_t{1}, there);
  const lane<std::uint32_t> max = simt::ldg(reinterpret_cast<const std::uint32_t*>(args.entries),
                                            i * 6 + std::int64_t{4}, there);
  const lane<float> value = simt::per_lane(
      [](std::uint64_t fixed, std::uint32_t m, std::uint64_t n) {
        if (m == 0) return 0.0f;
        if (m >= 0x7f800000u) return std::numeric_limits<float>::quiet_NaN();
        const double quanta = static_cast<double>(static_cast<std::int64_t>(fixed));
        return static_cast<float>(ldexp(quanta, -fixed_point_shift(m, n)));
      },
      sum, max, count);
  simt::stg(args.result, i, value, there);
}

}  // namespace ATTN_TARGET
}  // namespace attn
