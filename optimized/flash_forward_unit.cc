/// Flash forward for the mods and masks that are only known at run time, compiled once for each
/// target and storage type (see optimized/instances.cmake).
#include <string_view>

#include "optimized/flash_forward_launch.h"

namespace attn {
inline namespace ATTN_TARGET {

/// Returns the name of this target, as proof of where it ran.
std::string_view run_flash_forward(ATTN_INSTANCE, const AttentionCall& call,
                                   const Implementation& row) {
  flash_forward<ATTN_INSTANCE>(call, row, call.mod, call.mask);
  return simt::engine_name();
}

}  // namespace ATTN_TARGET
}  // namespace attn
