// Which target this translation unit is compiled for: the macro ATTN_TARGET names its namespace.
#pragma once

#if defined(__CUDACC__)
#define ATTN_ENGINE cuda
#elif defined(ATTN_ENGINE_WARP) && defined(ATTN_ENGINE_THREAD)
#error "a translation unit belongs to one engine: define ATTN_ENGINE_WARP or ATTN_ENGINE_THREAD"
#elif defined(ATTN_ENGINE_WARP)
#define ATTN_ENGINE warp
#elif defined(ATTN_ENGINE_THREAD)
#define ATTN_ENGINE thread
#else
#error "compile with nvcc, or define ATTN_ENGINE_WARP or ATTN_ENGINE_THREAD"
#endif

// A build with planted faults is another namespace: it can stand beside the clean one in a binary.
#define ATTN_CONCAT_(a, b) a##b
#define ATTN_CONCAT(a, b) ATTN_CONCAT_(a, b)
#if defined(ATTN_PLANT_FAULTS)
#define ATTN_TARGET ATTN_CONCAT(ATTN_ENGINE, _planted)
#else
#define ATTN_TARGET ATTN_ENGINE
#endif
#define ATTN_STRING_(a) #a
#define ATTN_STRING(a) ATTN_STRING_(a)
