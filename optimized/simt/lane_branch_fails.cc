// expect: write select(condition, a, b)
// A branch on a lane: the 32 threads of the warp may disagree.
#define ATTN_ENGINE_WARP
#include "optimized/simt/simt.h"

float relu(attn::simt::lane<float> x) {
  if (x > 0.0f) return 1.0f;
  return 0.0f;
}
