// Global memory under the checker: what is registered, the state of each byte, and which blocks of
// the running launch have touched each element that kernels may write.
#pragma once
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "optimized/simt/cpu_inline.h"
#include "optimized/simt/cpu_location.h"
#include "optimized/simt/cpu_words.h"
#include "optimized/simt/memory.h"

namespace attn::simt::cpu {

enum class GlobalUse { read, write, atomic };

/// The blocks of one launch are not ordered: they may run in any order, or at the same time. So an
/// element that one block writes may not be touched by another, in either order, unless both use
/// atomics. This is what has been done to one element so far.
struct ElementHistory {
  std::uint32_t launch = 0;  ///< the rest is void unless it is the launch now running
  std::uint32_t writer = 0;  ///< block + 1 | kAtomic; 0: none
  std::uint32_t reader = 0;  ///< block + 1; 0: none
  std::uint16_t write_at = 0, read_at = 0;

  static constexpr std::uint32_t kAtomic = 1u << 31, kMany = kAtomic - 1;
};

/// One registered stretch of memory.
class Allocation {
 public:
  Allocation(const char* base, std::size_t bytes, std::size_t element_bytes, Access access);

  const char* base() const { return base_; }
  std::size_t bytes() const { return bytes_; }
  bool holds(const void* p) const {
    return static_cast<const char*>(p) >= base_ && static_cast<const char*>(p) < base_ + bytes_;
  }
  void mark(std::size_t first, std::size_t bytes, Access access);
  bool initialised(std::size_t first, std::size_t bytes) const;

  /// True for a read that needs no more looking: in bounds, and of inputs only.
  template <int Bytes>
  ATTN_FORCE_INLINE bool plain_input(std::int64_t offset) const {
    if (offset < 0 || static_cast<std::size_t>(offset) + Bytes > bytes_) return false;
    constexpr int part = Bytes < 8 ? Bytes : 8;
    constexpr auto input = repeated<part>(static_cast<std::uint8_t>(Access::input));
    bool all = true;
    for (int i = 0; i < Bytes; i += part)
      all &= word_of<part>(&state_[static_cast<std::size_t>(offset) + i]) == input;
    return all;
  }

  enum class Verdict { ok, out_of_bounds, guard, uninitialised, read_only, race };
  /// What one access was found to be, and who the other party is.
  struct Finding {
    Verdict verdict = Verdict::ok;
    std::int64_t at = 0;  ///< byte offset of the first offending byte
    ElementHistory history;
  };
  /// Checks an access by block number `block` of `launch`, and remembers it.
  Finding access(GlobalUse use, std::int64_t offset, std::size_t bytes, std::uint32_t launch,
                 std::uint32_t block, LocId at);

 private:
  /// What is wrong with an access to bytes of which one has not the state that `use` needs.
  Finding refusal(GlobalUse use, std::size_t first, std::size_t bytes) const;
  static bool conflicts(const ElementHistory& h, GlobalUse use, std::uint32_t block);
  static void remember(ElementHistory& h, GlobalUse use, std::uint32_t block, LocId at);

  const char* base_;
  std::size_t bytes_, element_bytes_;
  std::vector<std::uint8_t> state_;  // one Access for each byte; bit 1 is set by the first write
  struct Free {
    void operator()(ElementHistory* p) const;
  };
  std::unique_ptr<ElementHistory[], Free> history_;  // where some byte is writable
};

/// All registered memory of the process.
class GlobalMemory {
 public:
  static GlobalMemory& instance();
  void add(const std::shared_ptr<Allocation>& allocation);
  void remove(const Allocation& allocation);
  /// The allocation that holds p, or null.
  Allocation* find(const void* p) const;

 private:
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<Allocation>> sorted_;  // by base
};

}  // namespace attn::simt::cpu
