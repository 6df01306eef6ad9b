// The layer on the thread engine: one fiber per GPU thread, lane<T> is T. What the lanes of a warp
// do together is a rendezvous: each brings its operand, the last to come does the work for all. It
// is the most faithful engine: branches on a lane are allowed, and a collective that not all lanes
// reach is found. What each primitive means is documented in cuda_target.h.
#pragma once
#include <concepts>
#include <limits>

#include "mods/lang/number.h"
#include "optimized/simt/cpu_block.h"
#include "optimized/simt/cpu_macros.h"
#include "optimized/simt/cpu_math.h"
#include "optimized/simt/simt_target.h"
#include "optimized/simt/types.h"

namespace attn::simt {
inline namespace ATTN_TARGET {

template <class T>
using lane = T;

// ---- who am I ----------------------------------------------------------------------------------
ATTN_DEVICE int block_x() { return cpu::self->x; }
ATTN_DEVICE int block_y() { return cpu::self->y; }
ATTN_DEVICE int block_z() { return cpu::self->z; }
ATTN_DEVICE int grid_x() { return cpu::self->grid.x; }
ATTN_DEVICE int grid_y() { return cpu::self->grid.y; }
ATTN_DEVICE int grid_z() { return cpu::self->grid.z; }
ATTN_DEVICE int block_threads() { return cpu::self->threads; }
ATTN_DEVICE int thread_id() { return cpu::self->strand; }
ATTN_DEVICE int lane_id() { return cpu::self->strand & 31; }
ATTN_DEVICE int warp_id() { return cpu::self->strand >> 5; }
ATTN_DEVICE std::uint32_t smem_base() { return 0; }

namespace detail {
ATTN_DEVICE cpu::Who who(cpu::LocId at) { return {warp_id(), lane_id(), at}; }
// All 32 lanes of the warp meet here; the last one runs op(exchange area of the warp).
template <class Op>
inline void together(cpu::Collective kind, cpu::Loc loc, Op&& op) {
  cpu::Block& b = *cpu::self;
  const int warp = warp_id();
  if (b.meet(warp, lane_id(), kind, loc)) {
    op(b.exchange(warp));
    b.make_warp_ready(warp);
  } else {
    b.wait();
  }
}
ATTN_DEVICE cpu::Block::Exchange& exchange() { return cpu::self->exchange(warp_id()); }
inline void barrier(int id, int threads, cpu::Collective kind, cpu::Loc loc) {
  cpu::Block& b = *cpu::self;
  if (!b.meet(warp_id(), lane_id(), kind, loc) || !b.arrive(id, threads, warp_id(), true, loc))
    b.wait();
}
template <class T>
ATTN_DEVICE T* address(T* base, std::int64_t offset) {
  using Byte = std::conditional_t<std::is_const_v<T>, const char, char>;
  return reinterpret_cast<T*>(reinterpret_cast<Byte*>(base) +
                              offset * static_cast<std::int64_t>(sizeof(T)));
}
}  // namespace detail

// ---- synchronisation ---------------------------------------------------------------------------
inline void named_sync(int id, int threads, ATTN_LOC) {
  detail::barrier(id, threads, cpu::Collective::named_sync, loc);
}
inline void named_arrive(int id, int threads, ATTN_LOC) {
  const int warp = warp_id();
  detail::together(cpu::Collective::named_arrive, loc, [&](cpu::Block::Exchange&) {
    cpu::self->arrive(id, threads, warp, false, loc);
  });
}
inline void block_sync(ATTN_LOC) {
  detail::barrier(0, cpu::self->threads, cpu::Collective::block_sync, loc);
}
inline void warp_sync(ATTN_LOC) {
  const int warp = warp_id();
  detail::together(cpu::Collective::warp_sync, loc,
                   [&](cpu::Block::Exchange&) { cpu::self->sync_warp(warp); });
}

// ---- exchange between the lanes of a warp ------------------------------------------------------
template <class T>
inline T shfl(T v, int source, ATTN_LOC) {
  static_assert(sizeof(T) <= 8);
  auto& e = detail::exchange();
  std::memcpy(&e.wide_in[lane_id()], &v, sizeof(T));
  detail::together(cpu::Collective::exchange, loc, [](cpu::Block::Exchange& all) {
    std::memcpy(all.wide_out, all.wide_in, sizeof all.wide_in);
  });
  std::memcpy(&v, &e.wide_out[source & 31], sizeof(T));
  return v;
}
template <class T>
inline T shfl_xor(T v, int mask, ATTN_LOC) {
  return shfl(v, lane_id() ^ mask, loc);
}
template <class T>
inline T shfl_down(T v, int distance, ATTN_LOC) {
  const int source = lane_id() + distance;
  return shfl(v, source < 32 ? source : lane_id(), loc);
}
inline std::uint32_t ballot(bool p, ATTN_LOC) {
  auto& e = detail::exchange();
  e.in[0][lane_id()] = p;
  detail::together(cpu::Collective::vote, loc, [](cpu::Block::Exchange& all) {
    std::uint32_t votes = 0;
    for (int i = 0; i < 32; ++i) votes |= all.in[0][i] << i;
    all.out[0][0] = votes;
  });
  return e.out[0][0];
}
inline bool any(bool p, ATTN_LOC) { return ballot(p, loc) != 0; }
inline bool all(bool p, ATTN_LOC) { return ballot(p, loc) == ~0u; }
template <class T>
inline T uniform(T v, ATTN_LOC) {
  const T first = shfl(v, 0, loc);
  if (std::memcmp(&first, &v, sizeof v) != 0)
    cpu::self->fault(FaultKind::divergent_collective, loc,
                     "uniform at " + to_string(loc) + ": lane " + std::to_string(lane_id()) +
                         " has another value than lane 0");
  return v;
}

// ---- arithmetic --------------------------------------------------------------------------------
template <class C, class A, class B>
ATTN_DEVICE auto choose(const C& condition, const A& a, const B& b) {
  return attn::select(condition, a, b);
}
template <class F, class... A>
ATTN_DEVICE auto per_lane(F&& f, const A&... a) {
  return f(a...);
}
ATTN_DEVICE float vmax(float a, float b) { return cpu::math::max_number(a, b); }
ATTN_DEVICE float vfma(float a, float b, float c) { return std::fma(a, b, c); }
ATTN_DEVICE float vexp2(float x) { return cpu::math::exp2(x); }
inline float vlog2(float x) { return std::log2(x); }
ATTN_DEVICE float vrcp(float x) { return 1.0f / x; }
template <class T>
ATTN_DEVICE std::uint32_t pack2(float lo, float hi) {
  return cpu::math::pack2<T>(lo, hi);
}
template <class T>
ATTN_DEVICE void unpack2(std::uint32_t packed, float& lo, float& hi) {
  lo = cpu::math::low_of<T>(packed);
  hi = cpu::math::high_of<T>(packed);
}
ATTN_DEVICE std::uint32_t round_to_tf32(float x) { return cpu::math::round_to_tf32(x); }
ATTN_DEVICE std::uint32_t word(const Vec16& v, int i) { return v.word[i]; }
ATTN_DEVICE Vec16 make_vec16(std::uint32_t w0, std::uint32_t w1, std::uint32_t w2,
                             std::uint32_t w3) {
  return {{w0, w1, w2, w3}};
}

// ---- shared memory -----------------------------------------------------------------------------
template <class T>
inline T lds(std::uint32_t address, bool ok = true, ATTN_LOC) {
  static_assert(sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16);
  T value{};
  if (!ok) return value;
  cpu::Block& b = *cpu::self;
  b.check_shared_read<sizeof(T)>(detail::who(b.at(loc)), address);
  std::memcpy(&value, b.smem() + address, sizeof(T));
  return value;
}
template <class T>
inline void sts(std::uint32_t address, T value, bool ok = true, ATTN_LOC) {
  static_assert(sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16);
  if (!ok) return;
  cpu::Block& b = *cpu::self;
  b.check_shared_write<sizeof(T)>(detail::who(b.at(loc)), address);
  std::memcpy(b.smem() + address, &value, sizeof(T));
}

namespace detail {
template <bool Transposed>
inline void ldmatrix(std::uint32_t (&r)[4], std::uint32_t address, cpu::Loc loc) {
  auto& e = exchange();
  e.in[0][lane_id()] = address;
  constexpr auto kind = Transposed ? cpu::Collective::ldmatrix_trans : cpu::Collective::ldmatrix;
  together(kind, loc, [&](cpu::Block::Exchange& all) {
    cpu::Block& b = *cpu::self;
    const cpu::Who warp{warp_id(), cpu::kAllLanes, b.at(loc)};
    for (int i = 0; i < 32; ++i) b.check_shared_read<16>(warp, all.in[0][i]);
    std::uint32_t* out[4] = {all.out[0], all.out[1], all.out[2], all.out[3]};
    cpu::math::ldmatrix_x4<Transposed>(out, b.smem(), all.in[0]);
  });
  for (int i = 0; i < 4; ++i) r[i] = e.out[i][lane_id()];
}
}  // namespace detail
inline void ldmatrix_x4(std::uint32_t (&r)[4], std::uint32_t address, ATTN_LOC) {
  detail::ldmatrix<false>(r, address, loc);
}
inline void ldmatrix_x4_trans(std::uint32_t (&r)[4], std::uint32_t address, ATTN_LOC) {
  detail::ldmatrix<true>(r, address, loc);
}
namespace detail {
// `product(d, a, b)` multiplies the fragments of the 32 lanes.
template <class Product>
inline void mma(cpu::Collective kind, float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                std::uint32_t b1, cpu::Loc loc, Product product) {
  auto& e = exchange();
  const int l = lane_id();
  for (int i = 0; i < 4; ++i) {
    e.in[i][l] = a[i];
    e.accumulator[i][l] = d[i];
  }
  e.in[4][l] = b0;
  e.in[5][l] = b1;
  together(kind, loc, [product](cpu::Block::Exchange& all) {
    float out[4][32];
    std::memcpy(out, all.accumulator, sizeof out);
    float* const dp[4] = {out[0], out[1], out[2], out[3]};
    const std::uint32_t* const ap[4] = {all.in[0], all.in[1], all.in[2], all.in[3]};
    const std::uint32_t* const bp[2] = {all.in[4], all.in[5]};
    product(dp, ap, bp);
    std::memcpy(all.out, out, sizeof out);
  });
  for (int i = 0; i < 4; ++i) d[i] = std::bit_cast<float>(e.out[i][l]);
}
}  // namespace detail
template <class T>
inline void mma_m16n8k16(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                         std::uint32_t b1, ATTN_LOC) {
  detail::mma(cpu::Collective::mma, d, a, b0, b1, loc, cpu::math::mma_m16n8k16<T>);
}
inline void mma_m16n8k8_tf32(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                             std::uint32_t b1, ATTN_LOC) {
  detail::mma(cpu::Collective::mma_tf32, d, a, b0, b1, loc, cpu::math::mma_m16n8k8_tf32);
}

// ---- global memory -----------------------------------------------------------------------------
template <class V, class T>
inline V ldg_as(const T* base, std::int64_t offset, bool ok = true, ATTN_LOC) {
  V value{};
  if (!ok) return value;
  cpu::Block& b = *cpu::self;
  const T* p = detail::address(base, offset);
  b.check_global<sizeof(V)>(detail::who(b.at(loc)), cpu::GlobalUse::read, b.allocation(base), p);
  std::memcpy(&value, p, sizeof(V));
  return value;
}
template <class T>
inline T ldg(const T* base, std::int64_t offset, bool ok = true, ATTN_LOC) {
  return ldg_as<T>(base, offset, ok, loc);
}
template <class T>
inline T ldg_uniform(const T* base, std::int64_t offset, ATTN_LOC) {
  return ldg_as<T>(base, offset, true, loc);
}
template <class V, class T>
inline void stg_as(T* base, std::int64_t offset, V value, bool ok = true, ATTN_LOC) {
  if (!ok) return;
  cpu::Block& b = *cpu::self;
  T* p = detail::address(base, offset);
  b.check_global<sizeof(V)>(detail::who(b.at(loc)), cpu::GlobalUse::write, b.allocation(base), p);
  std::memcpy(static_cast<void*>(p), &value, sizeof(V));
}
template <class T>
inline void stg(T* base, std::int64_t offset, std::type_identity_t<T> value, bool ok = true,
                ATTN_LOC) {
  stg_as<T>(base, offset, value, ok, loc);
}
template <class T>
requires cpu::math::atomic_addable<T>
inline void atomic_add(T* base, std::int64_t offset, std::type_identity_t<T> value, bool ok = true,
                       ATTN_LOC) {
  if (!ok) return;
  cpu::Block& b = *cpu::self;
  T* p = detail::address(base, offset);
  b.check_global<sizeof(T)>(detail::who(b.at(loc)), cpu::GlobalUse::atomic, b.allocation(base), p);
  cpu::math::AtomicAdd{}(*p, value);
}
template <class T>
requires cpu::math::atomic_comparable<T>
inline void atomic_max(T* base, std::int64_t offset, std::type_identity_t<T> value, bool ok = true,
                       ATTN_LOC) {
  if (!ok) return;
  cpu::Block& b = *cpu::self;
  T* p = detail::address(base, offset);
  b.check_global<sizeof(T)>(detail::who(b.at(loc)), cpu::GlobalUse::atomic, b.allocation(base), p);
  cpu::math::AtomicMax{}(*p, value);
}

// ---- asynchronous copies from global to shared memory ------------------------------------------
template <int Bytes, class T>
inline void cp_async_bytes(std::uint32_t to, const T* base, std::int64_t offset, int valid_bytes,
                           ATTN_LOC) {
  static_assert(Bytes == 4 || Bytes == 8 || Bytes == 16);
  cpu::Block& b = *cpu::self;
  const T* from = detail::address(base, valid_bytes > 0 ? offset : 0);
  b.issue_copy<Bytes>(detail::who(b.at(loc)), to, b.allocation(base),
                      reinterpret_cast<const char*>(from), valid_bytes);
}
template <int Bytes, class T>
inline void cp_async(std::uint32_t to, const T* base, std::int64_t offset, bool ok = true,
                     ATTN_LOC) {
  cp_async_bytes<Bytes>(to, base, offset, ok ? Bytes : 0, loc);
}
template <int Bytes, class T>
inline void cp_async_if(std::uint32_t to, const T* base, std::int64_t offset, bool ok, ATTN_LOC) {
  if (ok) cp_async_bytes<Bytes>(to, base, offset, Bytes, loc);
}
inline void cp_async_commit() { cpu::self->commit_copies(); }
template <int N>
inline void cp_async_wait() {
  cpu::self->wait_copies(N);
}

// ---- launch ------------------------------------------------------------------------------------
template <class Kernel, class... Args>
void launch(Grid grid, int threads, std::size_t smem_bytes, const LaunchOptions& options,
            Kernel kernel, Args... args) {
  cpu::run_grid(grid, threads, smem_bytes, options, 1, [=] { kernel(args...); });
}

}  // namespace ATTN_TARGET
}  // namespace attn::simt
