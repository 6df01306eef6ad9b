/// Forward for fp32 tensors, for the mods and masks that are only known at run time.
#include <string_view>

#include "optimized/fp32_forward_launch.h"

namespace attn {
inline namespace ATTN_TARGET {

/// Returns the name of this target, as proof of where it ran.
std::string_view run_fp32_forward(const AttentionCall& call, const Implementation& row) {
  fp32_forward(call, row, call.mod, call.mask);
  return simt::engine_name();
}

}  // namespace ATTN_TARGET
}  // namespace attn
