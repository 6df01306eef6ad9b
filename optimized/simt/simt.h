// The SIMT layer: one kernel source for a GPU and for two CPU engines.
//
//   nvcc                      target `cuda`    each primitive is an intrinsic or a PTX instruction
//   g++ -DATTN_ENGINE_WARP    target `warp`    one fiber per warp, lane<T> is a vector of 32 values
//   g++ -DATTN_ENGINE_THREAD  target `thread`  one fiber per GPU thread, lane<T> is T
//
// Each target is an inline namespace with translation units of its own, so that all of them can be
// linked into one binary. A kernel header opens `namespace attn { inline namespace ATTN_TARGET {`
// and is written in these terms:
//   lane<T>       a value that each of the 32 threads of a warp has for itself
//   T             a value that is the same in all threads of a warp (loop counters, sizes)
//   uint32_t      an offset into shared memory, from smem_base(); never a pointer
//   (T*, offset)  global memory: a base pointer, the same in the whole warp, and 64-bit offsets in
//                 elements
// so that every access to memory goes through the layer and can be checked.
#pragma once
#include "mods/lang/storage.h"
#include "optimized/simt/launch.h"
#include "optimized/simt/simt_target.h"
#include "optimized/simt/types.h"

// ATTN_KERNEL           the type of a kernel:  template <...> ATTN_KERNEL name(args)
// ATTN_LAUNCH_BOUNDS    its threads a block and least blocks a multiprocessor; before ATTN_KERNEL
// ATTN_GRID_CONSTANT    a parameter that is not copied to each thread; after const
// ATTN_DEVICE           a function that kernels call
// ATTN_DEVICE_LARGE     a large one: inlined on a GPU, called on a CPU, which compiles faster
// ATTN_UNROLL           before a loop whose trip count is a constant
// ATTN_NO_UNROLL        before one whose copies would need too many registers
#if defined(__CUDACC__)
#include "optimized/simt/cuda_target.h"
#elif defined(ATTN_ENGINE_WARP)
#include "optimized/simt/warp_engine.h"
#else
#include "optimized/simt/thread_engine.h"
#endif
/// The SIMT layer: one kernel source for a GPU and two CPU engines (optimized/simt/cuda_target.h).
namespace attn::simt {
inline namespace ATTN_TARGET {

/// The target this translation unit is compiled for: "warp", "thread", "cuda", or one of these with
/// "_planted".
inline const char* engine_name() { return ATTN_STRING(ATTN_TARGET); }

}  // namespace ATTN_TARGET
}  // namespace attn::simt
