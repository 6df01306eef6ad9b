// Fibers: stacks that one operating-system thread switches between in about ten nanoseconds.
#pragma once
#include <boost/context/detail/fcontext.hpp>
#include <cstddef>
#include <vector>

#include "optimized/simt/cpu_inline.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace attn::simt::cpu {

/// A set of fibers beside the thread's own stack (the "outside").
///
/// Each fiber runs `entry(argument)`, which must never return: it loops, and leaves by a switch.
/// Below every stack lies a page without access rights, so that an overflow is a crash at the spot.
class Fibers {
 public:
  static constexpr int kOutside = -1;

  Fibers() = default;
  Fibers(const Fibers&) = delete;
  ~Fibers() { release(); }

  /// Makes `count` fibers that have not started yet.
  void create(int count, std::size_t stack_bytes, void (*entry)(void*), void* argument);

  /// Leaves the fiber that is running (`from`, kOutside for the thread's own stack) for `to`.
  /// Returns when something switches back to `from`.
  ATTN_FORCE_INLINE void switch_to(int from, int to) {
    Context& target = contexts_[to + 1];
    Context& source = contexts_[from + 1];
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(&source.fake_stack, target.bottom, target.bytes);
#endif
    const auto back = boost::context::detail::jump_fcontext(target.context, &source);
    arrive(back);
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(source.fake_stack, nullptr, nullptr);
#endif
  }

 private:
  struct Context {
    boost::context::detail::fcontext_t context = nullptr;
    char* bottom = nullptr;  // lowest address of the stack, above the guard page
    std::size_t bytes = 0;
    void* fake_stack = nullptr;  // AddressSanitizer's
    Fibers* owner = nullptr;
  };
  // Whoever is switched to stores where the one that left it can be resumed.
  static ATTN_FORCE_INLINE Context& arrive(boost::context::detail::transfer_t from) {
    auto& left = *static_cast<Context*>(from.data);
    left.context = from.fctx;
    return left;
  }
  static void start(boost::context::detail::transfer_t from);
  void release();

  std::vector<Context> contexts_;  // [0] is the outside, [i + 1] is fiber i
  void (*entry_)(void*) = nullptr;
  void* argument_ = nullptr;
};

}  // namespace attn::simt::cpu
