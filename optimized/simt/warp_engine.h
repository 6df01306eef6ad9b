// The layer on the warp engine: one fiber per warp, lane<T> holds 32 values, and what the lanes of
// a warp do together is a plain function call. Branches on a lane do not compile, so the 32 threads
// of a warp always run the same path. What each primitive means is documented in cuda_target.h.
#pragma once
#include <atomic>
#include <concepts>
#include <limits>

#include "mods/lang/number.h"
#include "optimized/simt/cpu_block.h"
#include "optimized/simt/cpu_macros.h"
#include "optimized/simt/cpu_math.h"
#include "optimized/simt/lane.h"
#include "optimized/simt/types.h"

namespace attn::simt {
inline namespace ATTN_TARGET {

// ---- who am I ----------------------------------------------------------------------------------
ATTN_DEVICE int block_x() { return cpu::self->x; }
ATTN_DEVICE int block_y() { return cpu::self->y; }
ATTN_DEVICE int block_z() { return cpu::self->z; }
ATTN_DEVICE int grid_x() { return cpu::self->grid.x; }
ATTN_DEVICE int grid_y() { return cpu::self->grid.y; }
ATTN_DEVICE int grid_z() { return cpu::self->grid.z; }
ATTN_DEVICE int block_threads() { return cpu::self->threads; }
ATTN_DEVICE int warp_id() { return cpu::self->strand; }
ATTN_DEVICE lane<int> lane_id() {
  lane<int> r;
  for (int i = 0; i < 32; ++i) r.v[i] = i;
  return r;
}
ATTN_DEVICE lane<int> thread_id() { return lane_id() + warp_id() * 32; }
ATTN_DEVICE std::uint32_t smem_base() { return 0; }

namespace detail {
ATTN_DEVICE cpu::Who who(int lane_index, cpu::LocId at) {
  return {cpu::self->strand, lane_index, at};
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
  if (!cpu::self->arrive(id, threads, warp_id(), true, loc)) cpu::self->wait();
}
inline void named_arrive(int id, int threads, ATTN_LOC) {
  cpu::self->arrive(id, threads, warp_id(), false, loc);
}
inline void block_sync(ATTN_LOC) { named_sync(0, cpu::self->threads, loc); }
ATTN_DEVICE void warp_sync() { cpu::self->sync_warp(warp_id()); }

// ---- exchange between the lanes of a warp ------------------------------------------------------
template <class T>
ATTN_DEVICE lane<T> shfl(const lane<T>& v, const lane<int>& source) {
  lane<T> r;
  for (int i = 0; i < 32; ++i) r.v[i] = v.v[source.v[i] & 31];
  return r;
}
template <class T>
ATTN_DEVICE lane<T> shfl_xor(const lane<T>& v, int mask) {
  lane<T> r;
  for (int i = 0; i < 32; ++i) r.v[i] = v.v[(i ^ mask) & 31];
  return r;
}
template <class T>
ATTN_DEVICE lane<T> shfl_down(const lane<T>& v, int distance) {
  lane<T> r;
  for (int i = 0; i < 32; ++i) r.v[i] = v.v[i + distance < 32 ? i + distance : i];
  return r;
}
ATTN_DEVICE bool any(const lane<bool>& p) {
  std::int32_t r = 0;
  for (int i = 0; i < 32; ++i) r |= p.v[i];
  return r != 0;
}
ATTN_DEVICE bool all(const lane<bool>& p) {
  std::int32_t r = -1;
  for (int i = 0; i < 32; ++i) r &= p.v[i];
  return r != 0;
}
ATTN_DEVICE std::uint32_t ballot(const lane<bool>& p) {
  std::uint32_t r = 0;
  for (int i = 0; i < 32; ++i) r |= static_cast<std::uint32_t>(p[i]) << i;
  return r;
}
template <class T>
inline T uniform(const lane<T>& v, ATTN_LOC) {
  for (int i = 1; i < 32; ++i)
    if (std::memcmp(&v.v[i], &v.v[0], sizeof v.v[0]) != 0)
      cpu::self->fault(FaultKind::divergent_collective, loc,
                       "uniform at " + to_string(loc) + ": lane " + std::to_string(i) +
                           " has another value than lane 0");
  return v[0];
}

// ---- arithmetic --------------------------------------------------------------------------------
template <class C, class A, class B>
ATTN_DEVICE auto choose(const C& condition, const A& a, const B& b) {
  return attn::select(condition, a, b);
}
template <class F, class... A>
ATTN_DEVICE auto per_lane(F&& f, const A&... a) {
  lane<decltype(f(pick(a, 0)...))> r;
  for (int i = 0; i < 32; ++i) r.set(i, f(pick(a, i)...));
  return r;
}
ATTN_DEVICE lane<float> vmax(const lane<float>& a, const lane<float>& b) {
  lane<float> r;
  for (int i = 0; i < 32; ++i) r.v[i] = cpu::math::max_number(a.v[i], b.v[i]);
  return r;
}
ATTN_DEVICE lane<float> vfma(const lane<float>& a, const lane<float>& b, const lane<float>& c) {
  lane<float> r;
  for (int i = 0; i < 32; ++i) r.v[i] = std::fma(a.v[i], b.v[i], c.v[i]);
  return r;
}
ATTN_DEVICE lane<float> vexp2(const lane<float>& x) {
  lane<float> r;
  for (int i = 0; i < 32; i += 8) cpu::math::exp2_row(r.v + i, x.v + i);
  return r;
}
inline lane<float> vlog2(const lane<float>& x) {
  lane<float> r;
  for (int i = 0; i < 32; ++i) r.v[i] = std::log2(x.v[i]);
  return r;
}
ATTN_DEVICE lane<float> vrcp(const lane<float>& x) { return 1.0f / x; }
template <class T>
ATTN_DEVICE lane<std::uint32_t> pack2(const lane<float>& lo, const lane<float>& hi) {
  lane<std::uint32_t> r;
  for (int i = 0; i < 32; i += 8) cpu::math::pack2_row<T>(r.v + i, lo.v + i, hi.v + i);
  return r;
}
template <class T>
ATTN_DEVICE void unpack2(const lane<std::uint32_t>& packed, lane<float>& lo, lane<float>& hi) {
  for (int i = 0; i < 32; ++i) {
    lo.v[i] = cpu::math::low_of<T>(packed.v[i]);
    hi.v[i] = cpu::math::high_of<T>(packed.v[i]);
  }
}
ATTN_DEVICE lane<std::uint32_t> round_to_tf32(const lane<float>& x) {
  lane<std::uint32_t> r;
  for (int i = 0; i < 32; ++i) r.v[i] = cpu::math::round_to_tf32(x.v[i]);
  return r;
}
ATTN_DEVICE lane<std::uint32_t> word(const lane<Vec16>& v, int i) {
  lane<std::uint32_t> r;
  for (int l = 0; l < 32; ++l) r.v[l] = v.v[l].word[i];
  return r;
}
ATTN_DEVICE lane<Vec16> make_vec16(const lane<std::uint32_t>& w0, const lane<std::uint32_t>& w1,
                                   const lane<std::uint32_t>& w2, const lane<std::uint32_t>& w3) {
  lane<Vec16> r;
  for (int l = 0; l < 32; ++l) r.v[l] = {{w0.v[l], w1.v[l], w2.v[l], w3.v[l]}};
  return r;
}

// ---- shared memory -----------------------------------------------------------------------------
namespace detail {
// Lanes that read what two others before them do: their neighbours, or those in their place in the
// quads before. Both were checked, and at most one of them by the right of a thread to what it
// wrote itself since the last warp_sync; so this lane may read it too, and "several lanes" is
// noted.
ATTN_DEVICE lane<bool> third_readers(const lane<std::uint32_t>& address, const lane<bool>& ok) {
  lane<bool> third = false;
  const auto same = [&](int i, int j) { return ok.v[j] & -(address.v[i] == address.v[j]); };
  for (int i = 2; i < 32; ++i) third.v[i] = same(i, i - 1) & same(i, i - 2);
  for (int i = 8; i < 32; ++i) third.v[i] |= same(i, i - 4) & same(i, i - 8);
  return third;
}
}  // namespace detail
template <class T>
inline lane<T> lds(const lane<std::uint32_t>& address, const lane<bool>& ok = true, ATTN_LOC) {
  static_assert(sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16);
  cpu::Block& b = *cpu::self;
  const cpu::LocId at = b.at(loc);
  const lane<bool> checked = detail::third_readers(address, ok);
  lane<T> r(T{});
  for (int i = 0; i < 32; ++i)
    if (ok.v[i]) {
      if (!checked.v[i]) b.check_shared_read<sizeof(T)>(detail::who(i, at), address.v[i]);
      std::memcpy(&r.v[i], b.smem() + address.v[i], sizeof(T));
    }
  return r;
}
template <class T>
inline void sts(const lane<std::uint32_t>& address, const lane<T>& value,
                const lane<bool>& ok = true, ATTN_LOC) {
  static_assert(sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16);
  cpu::Block& b = *cpu::self;
  const cpu::LocId at = b.at(loc);
  for (int i = 0; i < 32; ++i)
    if (ok.v[i]) {
      b.check_shared_write<sizeof(T)>(detail::who(i, at), address.v[i]);
      std::memcpy(b.smem() + address.v[i], &value.v[i], sizeof(T));
    }
}

namespace detail {
template <bool Transposed>
inline void ldmatrix(lane<std::uint32_t> (&r)[4], const lane<std::uint32_t>& address,
                     cpu::Loc loc) {
  cpu::Block& b = *cpu::self;
  const cpu::LocId at = b.at(loc);
  for (int i = 0; i < 32; ++i) b.check_shared_read<16>(who(cpu::kAllLanes, at), address.v[i]);
  std::uint32_t* out[4] = {r[0].v, r[1].v, r[2].v, r[3].v};
  cpu::math::ldmatrix_x4<Transposed>(out, b.smem(), address.v);
}
}  // namespace detail
inline void ldmatrix_x4(lane<std::uint32_t> (&r)[4], const lane<std::uint32_t>& address, ATTN_LOC) {
  detail::ldmatrix<false>(r, address, loc);
}
inline void ldmatrix_x4_trans(lane<std::uint32_t> (&r)[4], const lane<std::uint32_t>& address,
                              ATTN_LOC) {
  detail::ldmatrix<true>(r, address, loc);
}
template <class T>
ATTN_DEVICE void mma_m16n8k16(lane<float> (&d)[4], const lane<std::uint32_t> (&a)[4],
                              const lane<std::uint32_t>& b0, const lane<std::uint32_t>& b1) {
  float* const dp[4] = {d[0].v, d[1].v, d[2].v, d[3].v};
  const std::uint32_t* const ap[4] = {a[0].v, a[1].v, a[2].v, a[3].v};
  const std::uint32_t* const bp[2] = {b0.v, b1.v};
  cpu::math::mma_m16n8k16<T>(dp, ap, bp);
}

ATTN_DEVICE void mma_m16n8k8_tf32(lane<float> (&d)[4], const lane<std::uint32_t> (&a)[4],
                                  const lane<std::uint32_t>& b0, const lane<std::uint32_t>& b1) {
  float* const dp[4] = {d[0].v, d[1].v, d[2].v, d[3].v};
  const std::uint32_t* const ap[4] = {a[0].v, a[1].v, a[2].v, a[3].v};
  const std::uint32_t* const bp[2] = {b0.v, b1.v};
  cpu::math::mma_m16n8k8_tf32(dp, ap, bp);
}

// ---- global memory -----------------------------------------------------------------------------
template <class V, class T>
inline lane<V> ldg_as(const T* base, const lane<std::int64_t>& offset, const lane<bool>& ok = true,
                      ATTN_LOC) {
  cpu::Block& b = *cpu::self;
  const cpu::LocId at = b.at(loc);
  cpu::Allocation* const memory = b.allocation(base);
  lane<V> r(V{});
  for (int i = 0; i < 32; ++i)
    if (ok.v[i]) {
      const T* p = detail::address(base, offset.v[i]);
      b.check_global<sizeof(V)>(detail::who(i, at), cpu::GlobalUse::read, memory, p);
      V value;
      std::memcpy(&value, p, sizeof(V));
      r.set(i, value);
    }
  return r;
}
template <class T>
inline lane<T> ldg(const T* base, const lane<std::int64_t>& offset, const lane<bool>& ok = true,
                   ATTN_LOC) {
  return ldg_as<T>(base, offset, ok, loc);
}
template <class T>
inline T ldg_uniform(const T* base, std::int64_t offset, ATTN_LOC) {
  cpu::Block& b = *cpu::self;
  const T* p = detail::address(base, offset);
  b.check_global<sizeof(T)>(detail::who(cpu::kAllLanes, b.at(loc)), cpu::GlobalUse::read,
                            b.allocation(base), p);
  return *p;
}
template <class V, class T>
inline void stg_as(T* base, const lane<std::int64_t>& offset, const lane<V>& value,
                   const lane<bool>& ok = true, ATTN_LOC) {
  cpu::Block& b = *cpu::self;
  const cpu::LocId at = b.at(loc);
  cpu::Allocation* const memory = b.allocation(base);
  for (int i = 0; i < 32; ++i)
    if (ok.v[i]) {
      T* p = detail::address(base, offset.v[i]);
      b.check_global<sizeof(V)>(detail::who(i, at), cpu::GlobalUse::write, memory, p);
      const V v = value[i];
      std::memcpy(static_cast<void*>(p), &v, sizeof(V));
    }
}
template <class T>
inline void stg(T* base, const lane<std::int64_t>& offset,
                const lane<std::type_identity_t<T>>& value, const lane<bool>& ok = true, ATTN_LOC) {
  stg_as<T>(base, offset, value, ok, loc);
}

namespace detail {
template <class T, class Update>
inline void atomic(T* base, const lane<std::int64_t>& offset, const lane<T>& value,
                   const lane<bool>& ok, cpu::Loc loc, Update update) {
  cpu::Block& b = *cpu::self;
  const cpu::LocId at = b.at(loc);
  cpu::Allocation* const memory = b.allocation(base);
  for (int i = 0; i < 32; ++i)
    if (ok.v[i]) {
      T* p = address(base, offset.v[i]);
      b.check_global<sizeof(T)>(who(i, at), cpu::GlobalUse::atomic, memory, p);
      update(*p, value.v[i]);
    }
}
}  // namespace detail
template <class T>
requires cpu::math::atomic_addable<T>
inline void atomic_add(T* base, const lane<std::int64_t>& offset,
                       const lane<std::type_identity_t<T>>& value, const lane<bool>& ok = true,
                       ATTN_LOC) {
  detail::atomic<T>(base, offset, value, ok, loc, cpu::math::AtomicAdd{});
}
template <class T>
requires cpu::math::atomic_comparable<T>
inline void atomic_max(T* base, const lane<std::int64_t>& offset,
                       const lane<std::type_identity_t<T>>& value, const lane<bool>& ok = true,
                       ATTN_LOC) {
  detail::atomic<T>(base, offset, value, ok, loc, cpu::math::AtomicMax{});
}

// ---- asynchronous copies from global to shared memory ------------------------------------------
template <int Bytes, class T>
inline void cp_async_bytes(const lane<std::uint32_t>& to, const T* base,
                           const lane<std::int64_t>& offset, const lane<int>& valid_bytes,
                           ATTN_LOC) {
  static_assert(Bytes == 4 || Bytes == 8 || Bytes == 16);
  cpu::Block& b = *cpu::self;
  const cpu::LocId at = b.at(loc);
  cpu::Allocation* const source = b.allocation(base);
  for (int i = 0; i < 32; ++i) {
    const T* from = detail::address(base, valid_bytes.v[i] > 0 ? offset.v[i] : 0);
    b.issue_copy<Bytes>(detail::who(i, at), to.v[i], source, reinterpret_cast<const char*>(from),
                        valid_bytes.v[i]);
  }
}
template <int Bytes, class T>
inline void cp_async(const lane<std::uint32_t>& to, const T* base, const lane<std::int64_t>& offset,
                     const lane<bool>& ok = true, ATTN_LOC) {
  cp_async_bytes<Bytes>(to, base, offset, choose(ok, Bytes, 0), loc);
}
template <int Bytes, class T>
inline void cp_async_if(const lane<std::uint32_t>& to, const T* base,
                        const lane<std::int64_t>& offset, const lane<bool>& ok, ATTN_LOC) {
  static_assert(Bytes == 4 || Bytes == 8 || Bytes == 16);
  cpu::Block& b = *cpu::self;
  const cpu::LocId at = b.at(loc);
  cpu::Allocation* const source = b.allocation(base);
  for (int i = 0; i < 32; ++i)
    if (ok.v[i])
      b.issue_copy<Bytes>(detail::who(i, at), to.v[i], source,
                          reinterpret_cast<const char*>(detail::address(base, offset.v[i])), Bytes);
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
  cpu::run_grid(grid, threads, smem_bytes, options, 32, [=] { kernel(args...); });
}

}  // namespace ATTN_TARGET
}  // namespace attn::simt
