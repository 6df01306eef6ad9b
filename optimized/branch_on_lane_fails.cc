// expect: select
//
// A mod that branches on a condition cannot run on the 32 lanes of a warp, which may disagree: it
// must not compile, and the message must name what to write.
#define ATTN_ENGINE_WARP
#include "mods/lang/call.h"
#include "optimized/kernel_env.h"

struct Branches {
  template <class Score, class Index>
  Score operator()(Score s, Index, Index, Index q, Index kv) const {
    if (kv <= q) return s;
    return s * 2;
  }
};

attn::simt::lane<float> run(attn::simt::lane<float> s, attn::Index<attn::KernelEnv> i) {
  return attn::call_mod(Branches{}, s, i, i, i, i);
}
