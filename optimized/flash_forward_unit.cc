/// Flash forward for the mods and masks that are only known at run time, compiled once for each
/// target and storage type (see optimized/instances.cmake).
#include <string_view>

#include "optimized/flash_forward_launch.h"
#include "optimized/forward_call.h"

namespace attn {
inline namespace ATTN_TARGET {

/// Returns the name of this target, as proof of where it ran.
std::string_view run_flash_forward(ATTN_INSTANCE, const ForwardCall& call) {
  using T = ATTN_INSTANCE;
  flash_forward<T>(view_of<const T, 4>(call.q), view_of<const T, 4>(call.k),
                   view_of<const T, 4>(call.v), view_of<T, 4>(call.o), view_of<float, 3>(call.lse),
                   call.mod, call.mask, call.options);
  return simt::engine_name();
}

}  // namespace ATTN_TARGET
}  // namespace attn
