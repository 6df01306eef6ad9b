#include "optimized/simt/cpu_global.h"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string>

namespace attn::simt::cpu {
namespace {

constexpr std::uint8_t kAddressable = 1, kInitialised = 2, kWritable = 4;

// Workers update the history of one element under a lock, chosen by its address.
class Lock {
 public:
  explicit Lock(std::uintptr_t address) : flag_(flags[(address >> 6) % kFlags]) {
    while (flag_.test_and_set(std::memory_order_acquire)) {
    }
  }
  ~Lock() { flag_.clear(std::memory_order_release); }

 private:
  static constexpr int kFlags = 64;
  inline static std::atomic_flag flags[kFlags];
  std::atomic_flag& flag_;
};

auto first_after(const std::vector<std::shared_ptr<Allocation>>& sorted, const char* p) {
  return std::upper_bound(sorted.begin(), sorted.end(), p,
                          [](const char* q, const auto& a) { return q < a->base(); });
}

}  // namespace

void Allocation::Free::operator()(ElementHistory* p) const { std::free(p); }

Allocation::Allocation(const char* base, std::size_t bytes, std::size_t element_bytes,
                       Access access)
    : base_(base),
      bytes_(bytes),
      element_bytes_(std::clamp<std::size_t>(element_bytes, 1, 4)),
      state_(bytes) {
  mark(0, bytes, access);
}

void Allocation::mark(std::size_t first, std::size_t bytes, Access access) {
  std::fill_n(state_.begin() + static_cast<std::ptrdiff_t>(first), bytes,
              static_cast<std::uint8_t>(access));
  if ((static_cast<std::uint8_t>(access) & kWritable) && !history_) {
    // calloc: pages that are never touched cost nothing.
    auto* p = std::calloc(bytes_ / element_bytes_ + 1, sizeof(ElementHistory));
    if (!p) throw std::bad_alloc();
    history_.reset(static_cast<ElementHistory*>(p));
  }
}

bool Allocation::initialised(std::size_t first, std::size_t bytes) const {
  return std::all_of(state_.begin() + static_cast<std::ptrdiff_t>(first),
                     state_.begin() + static_cast<std::ptrdiff_t>(first + bytes),
                     [](std::uint8_t s) { return s & kInitialised; });
}

ATTN_FORCE_INLINE bool Allocation::conflicts(const ElementHistory& h, GlobalUse use,
                                             std::uint32_t block) {
  const std::uint32_t writer = h.writer & ElementHistory::kMany;
  const bool foreign_write = writer != 0 && writer != block + 1;
  const bool foreign_read = h.reader != 0 && h.reader != block + 1;
  const bool atomic = h.writer & ElementHistory::kAtomic;
  switch (use) {
    case GlobalUse::read:
      return foreign_write;
    case GlobalUse::write:
      return foreign_write || foreign_read;
    case GlobalUse::atomic:
      return (foreign_write && !atomic) || foreign_read;
  }
  return false;
}

ATTN_FORCE_INLINE void Allocation::remember(ElementHistory& h, GlobalUse use, std::uint32_t block,
                                            LocId at) {
  const std::uint32_t me = block + 1;
  switch (use) {
    case GlobalUse::read:
      h.reader = h.reader == 0 || h.reader == me ? me : ElementHistory::kMany;
      h.read_at = static_cast<std::uint16_t>(at);
      return;
    case GlobalUse::write:
      h.writer = me;
      break;
    case GlobalUse::atomic:  // a plain write of this block stays: others may not add to it
      if (h.writer == me) return;
      if (h.writer == 0)
        h.writer = me | ElementHistory::kAtomic;
      else if ((h.writer & ElementHistory::kMany) != me)
        h.writer = ElementHistory::kMany | ElementHistory::kAtomic;
      break;
  }
  h.write_at = static_cast<std::uint16_t>(at);
}

Allocation::Finding Allocation::refusal(GlobalUse use, std::size_t first, std::size_t bytes) const {
  for (std::size_t i = first; i < first + bytes; ++i) {
    const std::uint8_t s = state_[i];
    const auto here = static_cast<std::int64_t>(i);
    if (!(s & kAddressable)) return {Verdict::guard, here, {}};
    if (use != GlobalUse::write && !(s & kInitialised)) return {Verdict::uninitialised, here, {}};
    if (use != GlobalUse::read && !(s & kWritable)) return {Verdict::read_only, here, {}};
  }
  return {};
}

Allocation::Finding Allocation::access(GlobalUse use, std::int64_t offset, std::size_t bytes,
                                       std::uint32_t launch, std::uint32_t block, LocId at) {
  if (offset < 0 || static_cast<std::size_t>(offset) + bytes > bytes_)
    return {Verdict::out_of_bounds, offset, {}};
  const auto first = static_cast<std::size_t>(offset);
  const Lock lock(reinterpret_cast<std::uintptr_t>(base_) + first);
  std::uint8_t all = 0xff, any = 0;
  for (std::size_t i = first; i < first + bytes; ++i) {
    all &= state_[i];
    any |= state_[i];
  }
  const int needed = kAddressable | (use == GlobalUse::write ? 0 : kInitialised) |
                     (use == GlobalUse::read ? 0 : kWritable);
  if ((all & needed) != needed) [[unlikely]]
    return refusal(use, first, bytes);
  if (!(any & kWritable)) return {};
  for (std::size_t e = first / element_bytes_; e <= (first + bytes - 1) / element_bytes_; ++e) {
    ElementHistory& h = history_[e];
    if (h.launch != launch) h = {.launch = launch};
    if (conflicts(h, use, block))
      return {Verdict::race, static_cast<std::int64_t>(e * element_bytes_), h};
    remember(h, use, block, at);
  }
  if (use != GlobalUse::read && !(all & kInitialised))
    for (std::size_t i = first; i < first + bytes; ++i) state_[i] |= kInitialised;
  return {};
}

GlobalMemory& GlobalMemory::instance() {
  static GlobalMemory memory;
  return memory;
}

void GlobalMemory::add(const std::shared_ptr<Allocation>& allocation) {
  std::lock_guard lock(mutex_);
  const auto next = first_after(sorted_, allocation->base());
  const char* end = allocation->base() + allocation->bytes();
  const bool clear_before =
      next == sorted_.begin() || !(*std::prev(next))->holds(allocation->base());
  if (!clear_before || (next != sorted_.end() && (*next)->base() < end))
    throw std::invalid_argument("memory of " + std::to_string(allocation->bytes()) +
                                " bytes overlaps memory that is registered already; expected "
                                "overlapping views in one Registration");
  sorted_.insert(next, allocation);
}

void GlobalMemory::remove(const Allocation& allocation) {
  std::lock_guard lock(mutex_);
  std::erase_if(sorted_, [&](const auto& a) { return a.get() == &allocation; });
}

Allocation* GlobalMemory::find(const void* p) const {
  std::lock_guard lock(mutex_);
  const auto next = first_after(sorted_, static_cast<const char*>(p));
  if (next == sorted_.begin()) return nullptr;
  Allocation* a = std::prev(next)->get();
  return a->holds(p) ? a : nullptr;
}

}  // namespace attn::simt::cpu
