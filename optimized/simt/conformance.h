// One small kernel for each primitive of the layer. Each takes its operands from global memory and
// writes what the primitive gave to global memory, so that the same kernels can be run on both CPU
// engines and on a GPU and be held against the tables of the PTX ISA.
#pragma once
#include "optimized/simt/simt.h"

namespace attn {
inline namespace ATTN_TARGET {
namespace conformance {

using simt::lane;
using simt::lane_id;
using simt::ldg;
using simt::stg;
using simt::Vec16;

/// out[block][thread][10]: what each thread is told about itself.
ATTN_KERNEL identity(int* out) {
  const int block =
      (simt::block_z() * simt::grid_y() + simt::block_y()) * simt::grid_x() + simt::block_x();
  const lane<int> row = (simt::thread_id() + block * simt::block_threads()) * 10;
  const int uniform[8] = {simt::block_x(), simt::block_y(), simt::block_z(),       simt::grid_x(),
                          simt::grid_y(),  simt::grid_z(),  simt::block_threads(), simt::warp_id()};
  for (int i = 0; i < 8; ++i) stg(out, row + i, uniform[i]);
  stg(out, row + 8, simt::thread_id());
  stg(out, row + 9, lane_id());
}

/// One warp. T has 4 or 8 bytes; out[3][32]: shfl from lane `source[l]`, shfl_xor, shfl_down.
template <class T>
ATTN_KERNEL shuffles(const T* in, const int* source, int mask, int distance, T* out) {
  const lane<T> v = ldg(in, lane_id());
  stg(out, lane_id(), simt::shfl(v, ldg(source, lane_id())));
  stg(out, lane_id() + 32, simt::shfl_xor(v, mask));
  stg(out, lane_id() + 64, simt::shfl_down(v, distance));
}

/// One warp. out[4]: any, all, ballot of in[l] != 0, and `uniform` of in[0].
ATTN_KERNEL votes(const int* in, std::uint32_t* out) {
  const lane<bool> p = ldg(in, lane_id()) != 0;
  const lane<bool> first = lane_id() == 0;
  stg(out, 0, simt::any(p) ? 1u : 0u, first);
  stg(out, 1, simt::all(p) ? 1u : 0u, first);
  stg(out, 2, simt::ballot(p), first);
  const int same = simt::uniform(simt::shfl(ldg(in, lane_id()), lane_id() * 0));
  stg(out, 3, static_cast<std::uint32_t>(same), first);
}

/// Elementwise on n triples; out[6][n]: vexp2(a), vlog2(a), vrcp(a), vmax(a, b), vfma(a, b, c) and
/// per_lane and choose together: a < b ? a : b.
ATTN_KERNEL arithmetic(const float* a, const float* b, const float* c, float* out, int n) {
  const lane<int> i = simt::thread_id() + simt::block_x() * simt::block_threads();
  const lane<bool> ok = i < n;
  const lane<float> x = ldg(a, i, ok), y = ldg(b, i, ok), z = ldg(c, i, ok);
  stg(out, i, simt::vexp2(x), ok);
  stg(out, i + n, simt::vlog2(x), ok);
  stg(out, i + 2 * n, simt::vrcp(x), ok);
  stg(out, i + 3 * n, simt::vmax(x, y), ok);
  stg(out, i + 4 * n, simt::vfma(x, y, z), ok);
  const lane<bool> less = simt::per_lane([](float p, float q) { return p < q; }, x, y);
  stg(out, i + 5 * n, simt::choose(less, x, y), ok);
}

/// Elementwise on n pairs: packed[i] = pack2<T>(lo[i], hi[i]), and the pair unpacked again.
template <class T>
ATTN_KERNEL conversions(const float* lo, const float* hi, std::uint32_t* packed, float* lo_back,
                        float* hi_back, int n) {
  const lane<int> i = simt::thread_id() + simt::block_x() * simt::block_threads();
  const lane<bool> ok = i < n;
  const lane<std::uint32_t> p = simt::pack2<T>(ldg(lo, i, ok), ldg(hi, i, ok));
  lane<float> l, h;
  simt::unpack2<T>(p, l, h);
  stg(packed, i, p, ok);
  stg(lo_back, i, l, ok);
  stg(hi_back, i, h, ok);
}

/// Elementwise on n values: rounded[i] = round_to_tf32(x[i]).
ATTN_KERNEL tf32_conversion(const float* x, std::uint32_t* rounded, int n) {
  const lane<int> i = simt::thread_id() + simt::block_x() * simt::block_threads();
  const lane<bool> ok = i < n;
  stg(rounded, i, simt::round_to_tf32(ldg(x, i, ok)), ok);
}

/// One block of two warps. Every thread stores in[t], and thread t with t < limit loads what thread
/// 63 - t stored; the others get T{}.
template <class T>
ATTN_KERNEL shared_memory(const T* in, T* out, int limit) {
  const lane<int> t = simt::thread_id();
  const lane<std::uint32_t> slot(t * static_cast<int>(sizeof(T)));
  const lane<std::uint32_t> other((63 - t) * static_cast<int>(sizeof(T)));
  simt::sts<T>(slot + simt::smem_base(), ldg(in, t));
  simt::block_sync();
  stg(out, t, simt::lds<T>(other + simt::smem_base(), t < limit));
}

/// One warp. Stores where the predicate holds only: smem holds 0, then in[t] for odd t.
ATTN_KERNEL predicated_store(const std::uint32_t* in, std::uint32_t* out) {
  const lane<std::uint32_t> slot(lane_id() * 4);
  simt::sts<std::uint32_t>(slot + simt::smem_base(), 0u);
  simt::sts<std::uint32_t>(slot + simt::smem_base(), ldg(in, lane_id()), lane_id() % 2 == 1);
  stg(out, lane_id(), simt::lds<std::uint32_t>(slot + simt::smem_base()));
}

/// One warp. rows[64][8]: 16-bit values; lane l gives the address of rows[address[l]];
/// out[4][32]: the fragments.
template <bool Transposed>
ATTN_KERNEL ldmatrix(const std::uint16_t* rows, const int* address, std::uint32_t* out) {
  for (int i = 0; i < 2; ++i) {
    const lane<int> row = lane_id() + 32 * i;
    simt::sts<Vec16>(lane<std::uint32_t>(row * 16) + simt::smem_base(),
                     simt::ldg_as<Vec16>(rows, row * 8));
  }
  simt::warp_sync();
  const lane<std::uint32_t> from(ldg(address, lane_id()) * 16);
  lane<std::uint32_t> r[4];
  if (Transposed)
    simt::ldmatrix_x4_trans(r, from + simt::smem_base());
  else
    simt::ldmatrix_x4(r, from + simt::smem_base());
  for (int i = 0; i < 4; ++i) stg(out, lane_id() + 32 * i, r[i]);
}

/// One warp. a[4][32], b[2][32], d[4][32]: the fragments of the lanes; d is updated.
template <class T>
ATTN_KERNEL mma(const std::uint32_t* a, const std::uint32_t* b, float* d) {
  lane<std::uint32_t> left[4];
  lane<float> sum[4];
  for (int i = 0; i < 4; ++i) {
    left[i] = ldg(a, lane_id() + 32 * i);
    sum[i] = ldg(d, lane_id() + 32 * i);
  }
  simt::mma_m16n8k16<T>(sum, left, ldg(b, lane_id()), ldg(b, lane_id() + 32));
  for (int i = 0; i < 4; ++i) stg(d, lane_id() + 32 * i, sum[i]);
}

/// The same for TF32: the words of the fragments are used as they are.
ATTN_KERNEL mma_tf32(const std::uint32_t* a, const std::uint32_t* b, float* d) {
  lane<std::uint32_t> left[4];
  lane<float> sum[4];
  for (int i = 0; i < 4; ++i) {
    left[i] = ldg(a, lane_id() + 32 * i);
    sum[i] = ldg(d, lane_id() + 32 * i);
  }
  simt::mma_m16n8k8_tf32(sum, left, ldg(b, lane_id()), ldg(b, lane_id() + 32));
  for (int i = 0; i < 4; ++i) stg(d, lane_id() + 32 * i, sum[i]);
}

/// One warp. Copies the first `valid[l]` bytes of chunk l of in[32][Bytes] and zero-fills the rest;
/// chunks with l >= limit are filled with zeros by the predicate of a second copy.
/// out[2][32][Bytes].
template <int Bytes>
ATTN_KERNEL async_copies(const std::uint8_t* in, const int* valid, int limit, std::uint8_t* out) {
  const lane<int> chunk = lane_id() * Bytes;
  const lane<std::uint32_t> to = lane<std::uint32_t>(chunk) + simt::smem_base();
  simt::cp_async_bytes<Bytes>(to, in, chunk, ldg(valid, lane_id()));
  simt::cp_async_commit();
  simt::cp_async<Bytes>(to + 32 * Bytes, in, chunk, lane_id() < limit);
  simt::cp_async_commit();
  simt::cp_async_wait<1>();
  for (int i = 0; i < Bytes; i += 4)  // a thread sees its own copies after the wait
    simt::stg_as<std::uint32_t>(out, chunk + i, simt::lds<std::uint32_t>(to + i));
  simt::cp_async_wait<0>();
  for (int i = 0; i < Bytes; i += 4)
    simt::stg_as<std::uint32_t>(out, chunk + (32 * Bytes + i),
                                simt::lds<std::uint32_t>(to + (32 * Bytes + i)));
}

/// One warp. cp_async_if leaves shared memory alone where the predicate is false: out[l] is in[l]
/// for l < limit and 7 elsewhere.
ATTN_KERNEL conditional_copy(const std::uint32_t* in, int limit, std::uint32_t* out) {
  const lane<std::uint32_t> to = lane<std::uint32_t>(lane_id() * 4) + simt::smem_base();
  simt::sts<std::uint32_t>(to, 7u);
  simt::cp_async_if<4>(to, in, lane_id(), lane_id() < limit);
  simt::cp_async_commit();
  simt::cp_async_wait<0>();
  stg(out, lane_id(), simt::lds<std::uint32_t>(to));
}

/// One warp. Reads n values backwards and writes them forwards; past n nothing is touched. The last
/// element written, out[n], is in[0], read by the warp as one.
template <class T>
ATTN_KERNEL global_memory(const T* in, T* out, int n) {
  for (int i = 0; i < n; i += 32) {
    const lane<int> at = lane_id() + i;
    stg(out, at, ldg(in, n - 1 - at, at < n), at < n);
  }
  stg(out, n, simt::ldg_uniform(in, 0), lane_id() == 0);
}

/// One warp. Moves 32 x 16 bytes as Vec16, its words reversed.
ATTN_KERNEL wide_global_memory(const std::uint16_t* in, std::uint16_t* out) {
  const lane<Vec16> v = simt::ldg_as<Vec16>(in, lane_id() * 8);
  simt::stg_as<Vec16>(
      out, lane_id() * 8,
      simt::make_vec16(simt::word(v, 3), simt::word(v, 2), simt::word(v, 1), simt::word(v, 0)));
}

/// Adds in[i] to sum[i % 3] and takes the maximum in max[i % 3], for i < n; one element a thread.
template <class T>
ATTN_KERNEL atomic_sums(const T* in, T* sum, int n) {
  const lane<int> i = simt::thread_id() + simt::block_x() * simt::block_threads();
  simt::atomic_add(sum, i % 3, ldg(in, i, i < n), i < n);
}
template <class T>
ATTN_KERNEL atomic_maxima(const T* in, T* max, int n) {
  const lane<int> i = simt::thread_id() + simt::block_x() * simt::block_threads();
  simt::atomic_max(max, i % 3, ldg(in, i, i < n), i < n);
}

/// One block of four warps. Warps 0 and 1 write and arrive at barrier 1; warps 2 and 3 wait at it,
/// add 1, wait for each other at barrier 2 and read mirrored: out[t] = in[63 - t] + 1 for t < 64.
ATTN_KERNEL named_barriers(const int* in, int* out) {
  const lane<int> t = simt::thread_id();
  const lane<std::uint32_t> slot = lane<std::uint32_t>((t % 64) * 4) + simt::smem_base();
  if (simt::warp_id() < 2) {
    simt::sts<int>(slot, ldg(in, t));
    simt::named_arrive(1, 128);
  } else {
    simt::named_sync(1, 128);
    const lane<int> v = simt::lds<int>(slot) + 1;
    simt::sts<int>(slot + 256, v);
    simt::named_sync(2, 64);
    const lane<std::uint32_t> mirrored((63 - t % 64) * 4);
    stg(out, t % 64, simt::lds<int>(mirrored + simt::smem_base() + 256));
  }
}

}  // namespace conformance
}  // namespace ATTN_TARGET
}  // namespace attn
