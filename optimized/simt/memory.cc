#include "optimized/simt/memory.h"

#include <stdexcept>
#include <string>

#include "optimized/simt/cpu_global.h"

namespace attn::simt {

Registration::Registration(std::vector<MemorySpan> spans, Access access) {
  std::erase_if(spans, [](const MemorySpan& s) { return s.bytes == 0; });
  const auto begin = [](const MemorySpan& s) { return static_cast<const char*>(s.base); };
  std::sort(spans.begin(), spans.end(),
            [&](const MemorySpan& a, const MemorySpan& b) { return begin(a) < begin(b); });
  try {
    for (std::size_t i = 0; i < spans.size();) {
      const char* base = begin(spans[i]);
      const char* end = base + spans[i].bytes;
      std::size_t element = spans[i].element_bytes;
      for (++i; i < spans.size() && begin(spans[i]) < end; ++i) {
        end = std::max(end, begin(spans[i]) + spans[i].bytes);
        element = std::min(element, spans[i].element_bytes);
      }
      auto allocation = std::make_shared<cpu::Allocation>(
          base, static_cast<std::size_t>(end - base), element, access);
      cpu::GlobalMemory::instance().add(allocation);
      allocations_.push_back(std::move(allocation));
    }
  } catch (...) {
    release();
    throw;
  }
}

Registration::~Registration() { release(); }

Registration& Registration::operator=(Registration&& other) noexcept {
  if (this != &other) {
    release();
    allocations_ = std::move(other.allocations_);
    other.allocations_.clear();
  }
  return *this;
}

void Registration::release() {
  for (const auto& a : allocations_) cpu::GlobalMemory::instance().remove(*a);
  allocations_.clear();
}

cpu::Allocation& Registration::find(const void* first, std::size_t bytes) const {
  const char* p = static_cast<const char*>(first);
  for (const auto& a : allocations_)
    if (a->holds(p) && p + bytes <= a->base() + a->bytes()) return *a;
  throw std::invalid_argument("a stretch of " + std::to_string(bytes) +
                              " bytes does not lie inside one registered span");
}

void Registration::mark(const void* first, std::size_t bytes, Access access) {
  if (bytes == 0) return;
  cpu::Allocation& a = find(first, bytes);
  a.mark(static_cast<std::size_t>(static_cast<const char*>(first) - a.base()), bytes, access);
}

bool Registration::initialised(const void* first, std::size_t bytes) const {
  if (bytes == 0) return true;
  const cpu::Allocation& a = find(first, bytes);
  return a.initialised(static_cast<std::size_t>(static_cast<const char*>(first) - a.base()), bytes);
}

}  // namespace attn::simt
