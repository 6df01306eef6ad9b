#pragma once

#include "optimized/planted_faults.h"
#include "optimized/simt/simt_target.h"

namespace attn {
inline namespace ATTN_TARGET {

/// Stands in a kernel where a known fault can be committed on purpose. In everything that ships no
/// fault is planted, and the compiler removes the question.
#if defined(ATTN_PLANT_FAULTS)
inline bool planted(PlantedFault fault) { return active_fault() == fault; }
#else
constexpr bool planted(PlantedFault) { return false; }
#endif

}  // namespace ATTN_TARGET
}  // namespace attn
