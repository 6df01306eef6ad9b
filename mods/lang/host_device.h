#pragma once

/// Marks a function that runs on the host and, under nvcc, on the device as well.
#if defined(__CUDACC__)
#define ATTN_HOST_DEVICE __host__ __device__
#define ATTN_INLINE __host__ __device__ __forceinline__
#else
#define ATTN_HOST_DEVICE
#define ATTN_INLINE inline
#endif
