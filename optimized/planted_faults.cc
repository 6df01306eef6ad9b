#include "optimized/planted_faults.h"

namespace attn {

// Of each thread its own: campaigns run planted kernels on several at once, and the first to end
// must not take the fault from the others. A launch on several workers commits it on the caller's
// alone.
PlantedFault& active_fault() {
  thread_local PlantedFault fault = PlantedFault::none;
  return fault;
}

}  // namespace attn
