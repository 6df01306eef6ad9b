// expect: write select(condition, a, b)
// A lane condition where one bool is asked for.
#define ATTN_ENGINE_WARP
#include "optimized/simt/simt.h"

float pick_one(bool first) { return first ? 1.0f : 2.0f; }
float use(attn::simt::lane<int> x) { return pick_one(x == 3); }
