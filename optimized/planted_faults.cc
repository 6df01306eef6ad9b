#include "optimized/planted_faults.h"

namespace attn {

PlantedFault& active_fault() {
  static PlantedFault fault = PlantedFault::none;
  return fault;
}

}  // namespace attn
