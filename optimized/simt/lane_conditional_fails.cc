// expect: write select(condition, a, b)
// The conditional operator picks one of two values for all 32 threads.
#define ATTN_ENGINE_WARP
#include "optimized/simt/simt.h"

attn::simt::lane<float> relu(attn::simt::lane<float> x) { return x > 0.0f ? x : 0.0f * x; }
