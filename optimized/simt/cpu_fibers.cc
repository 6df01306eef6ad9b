#include "optimized/simt/cpu_fibers.h"

#include <sys/mman.h>
#include <unistd.h>

#include <new>

namespace attn::simt::cpu {
namespace {
std::size_t page_bytes() {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}
}  // namespace

void Fibers::create(int count, std::size_t stack_bytes, void (*entry)(void*), void* argument) {
  release();
  entry_ = entry;
  argument_ = argument;
  contexts_.assign(static_cast<std::size_t>(count) + 1, Context{});
  contexts_[0].owner = this;
  for (int i = 1; i <= count; ++i) {
    void* memory = mmap(nullptr, stack_bytes + page_bytes(), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
      release();
      throw std::bad_alloc();
    }
    Context& c = contexts_[i];
    c.owner = this;
    c.bottom = static_cast<char*>(memory) + page_bytes();
    c.bytes = stack_bytes;
    if (mprotect(memory, page_bytes(), PROT_NONE) != 0) {
      release();
      throw std::bad_alloc();
    }
    c.context = boost::context::detail::make_fcontext(c.bottom + stack_bytes, stack_bytes, start);
  }
}

void Fibers::start(boost::context::detail::transfer_t from) {
  Context& left = arrive(from);
#if defined(__SANITIZE_ADDRESS__)
  const void* bottom = nullptr;
  std::size_t bytes = 0;
  __sanitizer_finish_switch_fiber(nullptr, &bottom, &bytes);
  if (&left == &left.owner->contexts_[0]) {  // the bounds of the thread's own stack
    left.bottom = const_cast<char*>(static_cast<const char*>(bottom));
    left.bytes = bytes;
  }
#endif
  left.owner->entry_(left.owner->argument_);
}

void Fibers::release() {
  for (Context& c : contexts_)
    if (&c != &contexts_[0] && c.bottom) munmap(c.bottom - page_bytes(), c.bytes + page_bytes());
  contexts_.clear();
}

}  // namespace attn::simt::cpu
