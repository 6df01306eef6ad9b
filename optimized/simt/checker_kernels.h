// Kernels with one fault each, most of them beside the same kernel without it: what
// checker_engine_test.cc runs. `out` and `data` are buffers that the test makes for each.
#pragma once
#include "optimized/simt/simt.h"

namespace attn {
inline namespace ATTN_TARGET {
namespace planted {

using namespace simt;

// ---- a pipeline: 128 threads stream tiles of 512 words through two buffers ---------------------

enum class Plant {
  none,
  no_barrier_before_read,
  no_barrier_after_read,
  one_warp_skips,
  past_tail,
  tail_not_filled,
  no_wait,
  lax_wait,
  live_buffer
};
constexpr int kTileWords = 512;
constexpr std::uint32_t kBuffer = kTileWords * 4;

template <Plant P>
ATTN_DEVICE void issue_tile(int tile, std::uint32_t buffer, const std::uint32_t* in, int chunks) {
  const lane<int> chunk = thread_id() + tile * 128;
  const lane<std::uint32_t> to = lane<std::uint32_t>(thread_id() * 16) + (smem_base() + buffer);
  const lane<bool> ok = chunk < chunks + (P == Plant::past_tail ? 1 : 0);
  if (P == Plant::tail_not_filled)
    cp_async_if<16>(to, in, chunk * 4, ok);
  else
    cp_async<16>(to, in, chunk * 4, ok);
}

/// out[t] = sum over tiles of the chunk that thread 127 - t has copied.
template <Plant P>
ATTN_KERNEL pipeline(const std::uint32_t* in, std::uint32_t* out, int chunks) {
  const int tiles = (chunks + 127) / 128;
  lane<std::uint32_t> sum = 0u;
  issue_tile<P>(0, 0, in, chunks);
  cp_async_commit();
  for (int t = 0; t < tiles; ++t) {
    const std::uint32_t buffer = t % 2 ? kBuffer : 0, other = kBuffer - buffer;
    if (t + 1 < tiles) issue_tile<P>(t + 1, P == Plant::live_buffer ? buffer : other, in, chunks);
    cp_async_commit();
    if (P != Plant::no_wait) cp_async_wait<P == Plant::lax_wait ? 2 : 1>();
    if (P != Plant::no_barrier_before_read && (P != Plant::one_warp_skips || warp_id() != 3))
      block_sync();
    const lane<std::uint32_t> from =
        lane<std::uint32_t>((127 - thread_id()) * 16) + (smem_base() + buffer);
    const lane<Vec16> chunk = lds<Vec16>(from);
    for (int i = 0; i < 4; ++i) sum += word(chunk, i);
    if (P != Plant::no_barrier_after_read && (P != Plant::one_warp_skips || warp_id() != 3))
      block_sync();
  }
  stg(out, thread_id(), sum);
}

// ---- single faults -----------------------------------------------------------------------------

/// Two warps. Warp 0 writes a word that warp 1 reads.
inline constexpr int kRaceWrite = __LINE__ + 7, kRaceRead = __LINE__ + 9;
template <bool Barrier>
ATTN_KERNEL unordered_warps(int* out) {
  sts<int>(lane<std::uint32_t>(thread_id() * 4) + smem_base(), 1);
  block_sync();
  const lane<bool> mine = lane_id() == 0;
  if (warp_id() == 0) {
    sts<int>(smem_base(), 2, mine);
  } else if (!Barrier) {
    stg(out, 0, lds<int>(smem_base(), mine), mine);
  }
  if (Barrier) {
    block_sync();
    if (warp_id() == 1) stg(out, 0, lds<int>(smem_base(), mine), mine);
  }
}

/// One warp. Each lane stores a word and reads its neighbour's.
template <bool Sync>
ATTN_KERNEL unordered_lanes(int* out) {
  const lane<std::uint32_t> slot = lane<std::uint32_t>(lane_id() * 4) + smem_base();
  const lane<std::uint32_t> next = lane<std::uint32_t>((lane_id() + 1) % 32 * 4) + smem_base();
  sts<int>(slot, 0);
  warp_sync();
  sts<int>(slot, lane_id());
  if (Sync) warp_sync();
  stg(out, lane_id(), lds<int>(next));
}

/// One warp. Lanes 0 and 1 read one word, then lane 1 writes it: unordered with lane 0's read.
template <bool Sync>
ATTN_KERNEL two_reads_then_write(int* out) {
  const lane<std::uint32_t> slot = smem_base();
  sts<int>(slot, 5, lane_id() == 0);
  warp_sync();
  stg(out, lane_id(), lds<int>(slot, lane_id() < 2), lane_id() < 2);
  if (Sync) warp_sync();
  sts<int>(slot, 6, lane_id() == 1);
}

/// One warp. Words that several lanes read: four lanes in a row each, or one place of every quad.
/// One lane writes its word before all read, or after.
template <bool Quads, bool Before, bool Sync>
ATTN_KERNEL word_of_many_readers(int* out, int writer) {
  const lane<int> word = Quads ? lane_id() % 4 : lane_id() / 4;
  const lane<std::uint32_t> slot = lane<std::uint32_t>(word * 4) + smem_base();
  sts<int>(lane<std::uint32_t>(lane_id() * 4) + smem_base(), 5);
  warp_sync();
  if (Before) sts<int>(slot, 6, lane_id() == writer);
  if (Before && Sync) warp_sync();
  stg(out, lane_id(), lds<int>(slot));
  if (!Before && Sync) warp_sync();
  if (!Before) sts<int>(slot, 6, lane_id() == writer);
}

/// One warp. ldmatrix reads for all lanes; a store by one of them needs warp_sync first.
template <bool Sync>
ATTN_KERNEL overwrite_after_ldmatrix(int* out) {
  const lane<std::uint32_t> row = lane<std::uint32_t>(lane_id() * 16) + smem_base();
  sts<Vec16>(row, Vec16{});
  warp_sync();
  lane<std::uint32_t> r[4];
  ldmatrix_x4(r, row);
  if (Sync) warp_sync();
  sts<int>(row, 1);
  stg(out, lane_id(), lane<int>(r[0]));
}

/// Two warps, of which one does not come to the barrier.
template <bool Named>
ATTN_KERNEL missing_warp(int* out) {
  if (warp_id() == 1) return;
  if (Named)
    named_sync(3, 64);
  else
    block_sync();
  stg(out, 0, 1, lane_id() == 0);
}
ATTN_KERNEL barrier_counts_differ(int*) { named_sync(1, warp_id() == 0 ? 64 : 32); }
ATTN_KERNEL barrier_of_half_a_warp(int*) { named_sync(1, 16); }

ATTN_KERNEL shared_out_of_bounds(int* out) {
  stg(out, lane_id(), lds<int>(lane<std::uint32_t>(lane_id() * 4 + 4) + smem_base()));
}
ATTN_KERNEL shared_misaligned(int*) {
  sts<double>(lane<std::uint32_t>(lane_id() * 8 + 4) + smem_base(), 0.0);
}
ATTN_KERNEL shared_uninitialised(int* out) { stg(out, 0, lds<int>(smem_base()), lane_id() == 0); }

/// Many segments of time: the clock of the shadow memory runs over, and nothing is reported.
ATTN_KERNEL long_run(int* out, int rounds) {
  const lane<std::uint32_t> slot = lane<std::uint32_t>(thread_id() * 4) + smem_base();
  const lane<std::uint32_t> other = lane<std::uint32_t>((63 - thread_id()) * 4) + smem_base();
  sts<int>(slot, 0);
  for (int i = 0; i < rounds; ++i) {
    if (i % 1000 == 0) {
      block_sync();
      const lane<int> v = lds<int>(other);
      block_sync();
      sts<int>(slot, v + 1);
    }
    warp_sync();
  }
  stg(out, thread_id(), lds<int>(slot));
}

// ---- global memory -----------------------------------------------------------------------------

enum class Use { read, write, add, none };
/// Block 0 does one thing to data[0], block 1 another.
template <Use First, Use Second>
ATTN_KERNEL two_blocks(int* data) {
  const Use use = block_x() == 0 ? First : Second;
  const lane<bool> one = thread_id() == 0;
  if (use == Use::read) stg(data, 1 + block_x(), ldg(data, 0, one), one);
  if (use == Use::write) stg(data, 0, 1, one);
  if (use == Use::add) atomic_add(data, 0, 1, one);
}
/// One block uses one element in three ways.
ATTN_KERNEL one_block(int* data) {
  const lane<bool> one = thread_id() == 0;
  stg(data, 0, 1, one);
  atomic_add(data, 0, ldg(data, 0, one), one);
  stg(data, 1, ldg(data, 0, one), one);
}
ATTN_KERNEL load_at(const int* data, int offset, int* out) {
  stg(out, 0, ldg(data, offset, lane_id() == 0), lane_id() == 0);
}
ATTN_KERNEL store_at(int* data, int offset) { stg(data, offset, 1, lane_id() == 0); }
ATTN_KERNEL load_wide(const int* data, int offset, int* out) {
  const lane<bool> one = lane_id() == 0;
  stg(out, 0, lane<int>(word(ldg_as<Vec16>(data, offset, one), 0)), one);
}
ATTN_KERNEL copy_from(const int* data, int offset) {
  cp_async<16>(lane<std::uint32_t>(lane_id() * 16) + smem_base(), data, offset, lane_id() == 0);
}
ATTN_KERNEL not_uniform(int* out) { stg(out, 0, uniform(lane_id() / 16), lane_id() == 0); }

template <class F>
ATTN_KERNEL apply_functor(F f, int* out) {
  block_sync();
  stg(out, thread_id(), per_lane(f, thread_id()));
  block_sync();
}

#if defined(ATTN_ENGINE_THREAD)
ATTN_KERNEL divergent_shuffle(int* out) {
  int v = thread_id();
  if (lane_id() < 16) v = shfl_xor(v, 1);
  v = shfl_xor(v, 2);
  stg(out, thread_id(), v);
}
ATTN_KERNEL divergent_mma_tf32(int* out) {
  float d[4] = {};
  const std::uint32_t a[4] = {};
  if (lane_id() < 16) mma_m16n8k8_tf32(d, a, 0u, 0u);
  stg(out, thread_id(), shfl_xor(1, 1));
}
ATTN_KERNEL lonely_shuffle(int* out) {
  if (lane_id() == 5) stg(out, 0, shfl_xor(1, 1));
}
ATTN_KERNEL lane_branches(int* out) {
  int v = thread_id();
  if (v % 3 == 0)
    v *= 2;
  else
    v += 1;
  stg(out, thread_id(), shfl_xor(v, 1));
}
#endif

}  // namespace planted
}  // namespace ATTN_TARGET

}  // namespace attn
