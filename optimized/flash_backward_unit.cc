/// Flash backward for the mods and masks that are only known at run time; see
/// flash_forward_unit.cc.
#include <string_view>

#include "optimized/flash_backward_launch.h"

namespace attn {
inline namespace ATTN_TARGET {

/// Returns the name of this target, as proof of where it ran.
std::string_view run_flash_backward(ATTN_INSTANCE, const AttentionCall& call,
                                    const Implementation& row) {
  flash_backward<ATTN_INSTANCE>(call, row, call.mod, call.mask);
  return simt::engine_name();
}

}  // namespace ATTN_TARGET
}  // namespace attn
