// The words a kernel is declared with, on a CPU engine.
#pragma once
#include "optimized/simt/cpu_inline.h"

#define ATTN_KERNEL inline void
#define ATTN_LAUNCH_BOUNDS(threads, blocks)
#define ATTN_GRID_CONSTANT
#define ATTN_DEVICE ATTN_FORCE_INLINE
#define ATTN_DEVICE_LARGE [[gnu::noinline]] inline
#define ATTN_UNROLL
#define ATTN_NO_UNROLL
