// The layer on a GPU (sm_80 and later): each primitive is one intrinsic or one PTX instruction.
//
// This file is also the documentation of the primitives; the CPU engines have the same functions
// with the same meaning. Section names refer to the PTX ISA, 8.x.
#pragma once
#include <cuda_runtime.h>

#include <bit>
#include <concepts>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "mods/lang/number.h"
#include "optimized/simt/launch.h"
#include "optimized/simt/simt_target.h"
#include "optimized/simt/types.h"

// Kernels are defined in headers that several units include. nvcc says that it ignores `inline` on
// one, and still lets the units share it.
#pragma nv_diag_suppress 20050
#define ATTN_KERNEL inline __global__ void
#define ATTN_LAUNCH_BOUNDS(threads, blocks) __launch_bounds__(threads, blocks)
#define ATTN_GRID_CONSTANT __grid_constant__
#define ATTN_DEVICE __device__ __forceinline__
#define ATTN_DEVICE_LARGE __device__ __forceinline__
#define ATTN_UNROLL _Pragma("unroll")
#define ATTN_NO_UNROLL _Pragma("unroll 1")

namespace attn::simt {
inline namespace ATTN_TARGET {

/// A value that each thread has for itself. On the warp engine a class of 32 values.
template <class T>
using lane = T;

// ---- who am I ----------------------------------------------------------------------------------
ATTN_DEVICE int block_x() { return static_cast<int>(blockIdx.x); }  ///< of the block in the grid
ATTN_DEVICE int block_y() { return static_cast<int>(blockIdx.y); }  ///< of the block in the grid
ATTN_DEVICE int block_z() { return static_cast<int>(blockIdx.z); }  ///< of the block in the grid
ATTN_DEVICE int grid_x() { return static_cast<int>(gridDim.x); }    ///< blocks along x
ATTN_DEVICE int grid_y() { return static_cast<int>(gridDim.y); }    ///< blocks along y
ATTN_DEVICE int grid_z() { return static_cast<int>(gridDim.z); }    ///< blocks along z
ATTN_DEVICE int block_threads() { return static_cast<int>(blockDim.x); }  ///< threads of a block
ATTN_DEVICE int thread_id() { return static_cast<int>(threadIdx.x); }     ///< in the block
ATTN_DEVICE int lane_id() { return static_cast<int>(threadIdx.x & 31); }  ///< in the warp, 0 to 31
/// The shuffle tells the compiler that the value is the same in the whole warp.
ATTN_DEVICE int warp_id() {
  return __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x >> 5), 0);
}
/// Offset of the block's dynamic shared memory: a multiple of 1024.
ATTN_DEVICE std::uint32_t smem_base() {
  extern __shared__ __align__(1024) unsigned char attn_dynamic_smem[];
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(attn_dynamic_smem));
}

// ---- synchronisation ---------------------------------------------------------------------------
// Only these order accesses of different threads to shared memory. Shuffles, votes, ldmatrix and
// mma do not, although all lanes take part in them.

/// All threads of the block wait for each other (bar.sync 0).
ATTN_DEVICE void block_sync() { __syncthreads(); }
/// The 32 lanes of the warp wait for each other (bar.warp.sync).
ATTN_DEVICE void warp_sync() { __syncwarp(); }
/// Barrier `id` (1 to 15): waits until `threads` threads, in whole warps, have arrived (bar.sync).
ATTN_DEVICE void named_sync(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
/// Arrives at barrier `id` without waiting (bar.arrive).
ATTN_DEVICE void named_arrive(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// ---- exchange between the lanes of a warp: all 32 must take part -------------------------------

/// The value of lane `source` % 32, which each lane chooses for itself. T has at most 8 bytes.
template <class T>
ATTN_DEVICE T shfl(T v, int source) {
  return __shfl_sync(0xffffffffu, v, source);
}
/// The value of lane (own id ^ mask).
template <class T>
ATTN_DEVICE T shfl_xor(T v, int mask) {
  return __shfl_xor_sync(0xffffffffu, v, mask);
}
/// The value of lane (own id + distance); its own value where there is no such lane.
template <class T>
ATTN_DEVICE T shfl_down(T v, int distance) {
  return __shfl_down_sync(0xffffffffu, v, static_cast<unsigned>(distance));
}
/// One answer for the warp: does the condition hold in some lane, in all lanes; its bits by lane.
ATTN_DEVICE bool any(bool p) { return __any_sync(0xffffffffu, p); }
ATTN_DEVICE bool all(bool p) { return __all_sync(0xffffffffu, p); }  ///< in all lanes
ATTN_DEVICE std::uint32_t ballot(bool p) { return __ballot_sync(0xffffffffu, p); }  ///< bit a lane
/// A lane value as a plain one; the 32 lanes must agree (the CPU engines check that).
template <class T>
ATTN_DEVICE T uniform(T v) {
  return __shfl_sync(0xffffffffu, v, 0);
}

// ---- arithmetic --------------------------------------------------------------------------------

/// `condition ? a : b` in each lane; both are evaluated.
template <class C, class A, class B>
ATTN_DEVICE auto choose(const C& condition, const A& a, const B& b) {
  return attn::select(condition, a, b);
}
/// Calls the scalar function f once in each lane, on that lane's arguments.
template <class F, class... A>
ATTN_DEVICE auto per_lane(F&& f, const A&... a) {
  return f(a...);
}
/// The larger one; a NaN loses against a number, and +0 is larger than -0 (max.f32).
ATTN_DEVICE float vmax(float a, float b) { return fmaxf(a, b); }
/// a * b + c with one rounding.
ATTN_DEVICE float vfma(float a, float b, float c) { return __fmaf_rn(a, b, c); }
/// 2^x, relative error at most 2^-22 (ex2.approx.ftz): exact at 0; subnormal results are 0.
ATTN_DEVICE float vexp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
/// The binary logarithm, at most 1 ulp off.
ATTN_DEVICE float vlog2(float x) { return log2f(x); }
/// 1 / x, correctly rounded.
ATTN_DEVICE float vrcp(float x) { return __frcp_rn(x); }

/// Two fp32 values as T (half or bfloat16), `lo` in bits 0..15: round to nearest even, overflow to
/// infinity, NaN to 0x7fff (cvt.rn).
template <class T>
ATTN_DEVICE std::uint32_t pack2(float lo, float hi) {
  std::uint32_t r;
  if constexpr (std::is_same_v<T, bfloat16>)
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
  else
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
  return r;
}
/// The two values of a pair, widened exactly.
template <class T>
ATTN_DEVICE void unpack2(std::uint32_t packed, float& lo, float& hi) {
  if constexpr (std::is_same_v<T, bfloat16>) {
    lo = __uint_as_float(packed << 16);
    hi = __uint_as_float(packed & 0xffff0000u);
  } else {
    asm("cvt.f32.f16 %0, %1;" : "=f"(lo) : "h"(static_cast<std::uint16_t>(packed)));
    asm("cvt.f32.f16 %0, %1;" : "=f"(hi) : "h"(static_cast<std::uint16_t>(packed >> 16)));
  }
}
/// An fp32 value as TF32 (8 bits of exponent, 10 of fraction): round to nearest, ties away from
/// zero, overflow to infinity (cvt.rna). The bits are those of an fp32 number; the low 13, which
/// no product looks at, are zero on the CPU engines and not promised on a GPU.
ATTN_DEVICE std::uint32_t round_to_tf32(float x) {
  std::uint32_t r;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(x));
  return r;
}
/// Word i (0..3, the same in all lanes) of 16 bytes, and 16 bytes from four words.
ATTN_DEVICE std::uint32_t word(const Vec16& v, int i) { return v.word[i]; }
ATTN_DEVICE Vec16 make_vec16(std::uint32_t w0, std::uint32_t w1, std::uint32_t w2,
                             std::uint32_t w3) {  /// w0 first in memory
  return {{w0, w1, w2, w3}};
}

// ---- shared memory -----------------------------------------------------------------------------
// Addresses are offsets that begin at smem_base(), multiples of the access size.

/// Loads a T of 2, 4, 8 or 16 bytes; where `ok` is false touches nothing and gives T{}.
template <class T>
ATTN_DEVICE T lds(std::uint32_t address, bool ok = true) {
  T value{};
  if (!ok) return value;
  if constexpr (sizeof(T) == 2) {
    std::uint16_t w;
    asm volatile("ld.shared.u16 %0, [%1];" : "=h"(w) : "r"(address) : "memory");
    value = std::bit_cast<T>(w);
  } else if constexpr (sizeof(T) == 4) {
    std::uint32_t w;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(w) : "r"(address) : "memory");
    value = std::bit_cast<T>(w);
  } else if constexpr (sizeof(T) == 8) {
    std::uint64_t w;
    asm volatile("ld.shared.u64 %0, [%1];" : "=l"(w) : "r"(address) : "memory");
    value = std::bit_cast<T>(w);
  } else {
    static_assert(sizeof(T) == 16);
    Vec16 w;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(w.word[0]), "=r"(w.word[1]), "=r"(w.word[2]), "=r"(w.word[3])
                 : "r"(address)
                 : "memory");
    value = std::bit_cast<T>(w);
  }
  return value;
}
/// Stores a T of 2, 4, 8 or 16 bytes; where `ok` is false touches nothing.
template <class T>
ATTN_DEVICE void sts(std::uint32_t address, T value, bool ok = true) {
  if (!ok) return;
  if constexpr (sizeof(T) == 2) {
    asm volatile("st.shared.u16 [%0], %1;" ::"r"(address), "h"(std::bit_cast<std::uint16_t>(value))
                 : "memory");
  } else if constexpr (sizeof(T) == 4) {
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(address), "r"(std::bit_cast<std::uint32_t>(value))
                 : "memory");
  } else if constexpr (sizeof(T) == 8) {
    asm volatile("st.shared.u64 [%0], %1;" ::"r"(address), "l"(std::bit_cast<std::uint64_t>(value))
                 : "memory");
  } else {
    static_assert(sizeof(T) == 16);
    const Vec16 w = std::bit_cast<Vec16>(value);
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(w.word[0]),
                 "r"(w.word[1]), "r"(w.word[2]), "r"(w.word[3])
                 : "memory");
  }
}
/// Four 8x8 matrices of 16-bit values. Lanes 8i to 8i+7 give the addresses of the rows of matrix i
/// (16 bytes each, multiples of 16); lane l receives in r[i] row l / 4, columns 2 (l % 4) and the
/// next.
ATTN_DEVICE void ldmatrix_x4(std::uint32_t (&r)[4], std::uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}
/// As above, each matrix transposed: lane l receives rows 2 (l % 4) and the next of column l / 4.
ATTN_DEVICE void ldmatrix_x4_trans(std::uint32_t (&r)[4], std::uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}
/// D[16][8] += A[16][16] B[16][8]; A and B of T (half or bfloat16), D of fp32. With g = lane / 4
/// and t = lane % 4 a lane holds
///     a[0] = A[g][2t, 2t+1]   a[1] = A[g+8][2t, 2t+1]   a[2] = A[g][2t+8, 2t+9]
///     a[3] = A[g+8][2t+8, 2t+9]   b0 = B[2t, 2t+1][g]   b1 = B[2t+8, 2t+9][g]
///     d[0] = D[g][2t]   d[1] = D[g][2t+1]   d[2] = D[g+8][2t]   d[3] = D[g+8][2t+1]
template <class T>
ATTN_DEVICE void mma_m16n8k16(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                              std::uint32_t b1) {
  if constexpr (std::is_same_v<T, bfloat16>)
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  else
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// D[16][8] += A[16][8] B[8][8]; A and B of TF32 in 32-bit words, whose low 13 bits are ignored; D
/// of fp32. With g = lane / 4 and t = lane % 4 a lane holds
///     a[0] = A[g][t]   a[1] = A[g+8][t]   a[2] = A[g][t+4]   a[3] = A[g+8][t+4]
///     b0 = B[t][g]   b1 = B[t+4][g]   d as in mma_m16n8k16
/// So a word is to these fragments what a pair is to those of mma_m16n8k16: ldmatrix_x4 on rows of
/// four words gives A, and B where memory holds it by column.
ATTN_DEVICE void mma_m16n8k8_tf32(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                  std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// ---- global memory -----------------------------------------------------------------------------
// The base pointer is the same in the whole warp; offsets count elements of T. Addresses must be
// multiples of the access size. Nothing orders the accesses of different blocks.

/// Loads a V (1, 2, 4, 8 or 16 bytes) at base + offset; where `ok` is false touches nothing and
/// gives V{}.
template <class V, class T>
ATTN_DEVICE V ldg_as(const T* base, std::int64_t offset, bool ok = true) {
  return ok ? *reinterpret_cast<const V*>(base + offset) : V{};
}
template <class T>
ATTN_DEVICE T ldg(const T* base, std::int64_t offset, bool ok = true) {  /// loads a T; see ldg_as
  return ok ? base[offset] : T{};
}
/// One value for the whole warp, from one address.
template <class T>
ATTN_DEVICE T ldg_uniform(const T* base, std::int64_t offset) {
  return base[offset];
}
/// Stores a V at base + offset; where `ok` is false touches nothing.
template <class V, class T>
ATTN_DEVICE void stg_as(T* base, std::int64_t offset, V value, bool ok = true) {
  if (ok) *reinterpret_cast<V*>(base + offset) = value;
}
template <class T>
ATTN_DEVICE void stg(T* base, std::int64_t offset, std::type_identity_t<T> value, bool ok = true) {
  if (ok) base[offset] = value;  /// stores a T; see stg_as
}
/// Atomic updates; T is float, int32_t, uint32_t or uint64_t for add, int32_t or uint32_t for max.
/// The order of float additions, and so the sum's last bits, is not determined.
template <class T>
ATTN_DEVICE void atomic_add(T* base, std::int64_t offset, std::type_identity_t<T> value,
                            bool ok = true) {
  if (!ok) return;
  if constexpr (std::is_same_v<T, std::uint64_t>)
    atomicAdd(reinterpret_cast<unsigned long long*>(base + offset),
              static_cast<unsigned long long>(value));
  else
    atomicAdd(base + offset, value);
}
template <class T>
ATTN_DEVICE void atomic_max(T* base, std::int64_t offset, std::type_identity_t<T> value,
                            bool ok = true) {  /// the larger one stays
  static_assert(std::is_same_v<T, std::int32_t> || std::is_same_v<T, std::uint32_t>);
  if (ok) atomicMax(base + offset, value);
}

// ---- asynchronous copies from global to shared memory ------------------------------------------
// A copy lands some time between its issue and the wait that covers its group; until then its
// target must not be touched. The wait makes it visible to the thread that issued it; others need
// warp_sync or a barrier after that.

/// Copies the first `valid_bytes` (0 to Bytes) and fills the rest of the Bytes (4, 8 or 16) with
/// zeros. Global memory past the valid bytes is not read, but the address must still be a multiple
/// of Bytes; with 0 valid bytes `offset` is not used.
template <int Bytes, class T>
ATTN_DEVICE void cp_async_bytes(std::uint32_t to, const T* base, std::int64_t offset,
                                int valid_bytes) {
  static_assert(Bytes == 4 || Bytes == 8 || Bytes == 16);
  const T* from = base + (valid_bytes > 0 ? offset : 0);
  if constexpr (Bytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
                 "r"(valid_bytes)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;" ::"r"(to), "l"(from),
                 "r"(valid_bytes), "n"(Bytes)
                 : "memory");
}
/// Copies Bytes where `ok`; where not, fills with zeros and does not touch global memory.
template <int Bytes, class T>
ATTN_DEVICE void cp_async(std::uint32_t to, const T* base, std::int64_t offset, bool ok = true) {
  cp_async_bytes<Bytes>(to, base, offset, ok ? Bytes : 0);
}
/// Copies Bytes where `ok`; where not, does nothing and leaves shared memory as it is.
template <int Bytes, class T>
ATTN_DEVICE void cp_async_if(std::uint32_t to, const T* base, std::int64_t offset, bool ok) {
  if (ok) cp_async_bytes<Bytes>(to, base, offset, Bytes);
}
/// Closes the group of the copies this thread has issued since the last commit.
ATTN_DEVICE void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Waits until at most N of this thread's latest groups are still on their way.
template <int N>
ATTN_DEVICE void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

// ---- launch ------------------------------------------------------------------------------------

/// Runs `kernel(args...)` in `threads` threads (a multiple of 32) of each block of the grid, with
/// `smem_bytes` of dynamic shared memory. On a GPU it returns once the kernel is queued and throws
/// std::runtime_error if CUDA refuses the launch; on a CPU engine it returns when the kernel is
/// done, throws CheckerFault for a fault, std::invalid_argument for a shape that no GPU takes, and
/// passes on what the kernel's functors throw.
template <class... Parameters, class... Args>
void launch(Grid grid, int threads, std::size_t smem_bytes, const LaunchOptions& options,
            void (*kernel)(Parameters...), Args... args) {
  const auto require = [](cudaError_t status) {
    if (status != cudaSuccess)
      throw std::runtime_error(std::string("launch: ") + cudaGetErrorString(status));
  };
  require(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(smem_bytes)));
  const dim3 blocks(static_cast<unsigned>(grid.x), static_cast<unsigned>(grid.y),
                    static_cast<unsigned>(grid.z));
  kernel<<<blocks, static_cast<unsigned>(threads), smem_bytes,
           static_cast<cudaStream_t>(options.stream)>>>(args...);
  require(cudaGetLastError());
}

}  // namespace ATTN_TARGET
}  // namespace attn::simt
