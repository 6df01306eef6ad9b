// The kernel that docs/ci_gate.md ports, as people write it: O = softmax(scale Q K^T) V and LSE,
// causal, aligned bottom right. Contiguous q, o [B, Hq, Sq, D], k, v [B, Hkv, Skv, D],
// lse [B, Hq, Sq]; D is a multiple of 4, at most 64. Grid: (ceil(Sq / 4), B Hq); 128 threads.
#include <cuda_runtime.h>

constexpr int kWarps = 4, kKeys = 32, kHead = 64;  // a warp a query; keys of a tile

__global__ void attention(const float* q, const float* k, const float* v, float* o, float* lse,
                          int hq, int hkv, int sq, int skv, int d, float scale) {
  //! [where]
  __shared__ float q_rows[kWarps][kHead];
  __shared__ float k_tile[kKeys][kHead + 4], v_tile[kKeys][kHead + 4];  // 4 more: bank conflicts
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int row = blockIdx.x * kWarps + warp, head = blockIdx.y;  // of Q, the batch included
  const int kv_head = head / hq * hkv + head % hq / (hq / hkv);
  q += (size_t)head * sq * d, o += (size_t)head * sq * d, lse += (size_t)head * sq;
  k += (size_t)kv_head * skv * d, v += (size_t)kv_head * skv * d;
  //! [where]

  //! [query]
  for (int c = lane; c < d; c += 32) q_rows[warp][c] = row < sq ? q[(size_t)row * d + c] : 0;
  //! [query]
  float m = -INFINITY, l = 0, acc[2] = {};  // channels lane and lane + 32
  const int last_row = min((int)(blockIdx.x + 1) * kWarps, sq) - 1;
  const int keys = min(skv, last_row + skv - sq + 1);  // that a row of this block attends
  for (int kv0 = 0; kv0 < keys; kv0 += kKeys) {
    //! [load]
    for (int i = threadIdx.x; i < kKeys * (d / 4); i += blockDim.x) {
      const int j = i / (d / 4), c = i % (d / 4) * 4;
      float4 k4 = {}, v4 = {};
      if (kv0 + j < skv) {
        k4 = *(const float4*)&k[(size_t)(kv0 + j) * d + c];
        v4 = *(const float4*)&v[(size_t)(kv0 + j) * d + c];
      }
      *(float4*)&k_tile[j][c] = k4;
      *(float4*)&v_tile[j][c] = v4;
    }
    __syncthreads();
    //! [load]

    //! [score]
    float s = 0;  // of key kv0 + lane
    for (int c = 0; c < d; ++c) s += q_rows[warp][c] * k_tile[lane][c];
    const int key = kv0 + lane;
    s = key < skv && key <= row + skv - sq ? s * scale : -INFINITY;
    //! [score]

    //! [softmax]
    float larger = fmaxf(m, s);
    for (int x = 16; x > 0; x /= 2) larger = fmaxf(larger, __shfl_xor_sync(~0u, larger, x));
    const float base = larger == -INFINITY ? 0 : larger;  // no key yet: exp(-inf) is 0
    const float p = exp2f((s - base) * 1.44269504f), rescale = exp2f((m - base) * 1.44269504f);
    float sum = p;
    for (int x = 16; x > 0; x /= 2) sum += __shfl_xor_sync(~0u, sum, x);
    l = l * rescale + sum;
    m = larger;
    //! [softmax]

    //! [values]
    for (int e = 0; e < 2; ++e) acc[e] *= rescale;
    for (int j = 0; j < kKeys; ++j) {
      const float weight = __shfl_sync(~0u, p, j);
      for (int e = 0; e < 2; ++e)
        if (lane + 32 * e < d) acc[e] += weight * v_tile[j][lane + 32 * e];
    }
    __syncthreads();  // the next tile may land
    //! [values]
  }

  //! [store]
  if (row < sq) {
    for (int e = 0; e < 2; ++e)
      if (lane + 32 * e < d) o[(size_t)row * d + lane + 32 * e] = l == 0 ? 0 : acc[e] / l;
    if (lane == 0) lse[row] = m + logf(l);
  }
  //! [store]
}
