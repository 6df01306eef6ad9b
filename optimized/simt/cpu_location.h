// Source locations of the accesses that the checker remembers.
#pragma once
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "optimized/simt/cpu_inline.h"

namespace attn::simt::cpu {

/// File and line of the call of a primitive; every primitive takes one by default.
struct Loc {
  const char* file = nullptr;
  int line = 0;
  static constexpr Loc here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
  bool operator==(const Loc&) const = default;
};
#define ATTN_LOC ::attn::simt::cpu::Loc loc = ::attn::simt::cpu::Loc::here()

/// "flash_forward.h:118"
std::string to_string(Loc loc);

/// A location as a number that fits beside a time stamp. 0 stands for "unknown": a launch names at
/// most 1023 locations, later ones are checked as well but reported without their line.
using LocId = std::uint32_t;
inline constexpr int kLocBits = 10;

/// The locations of one launch, shared by its workers.
class LocationTable {
 public:
  void clear();
  LocId add(Loc loc);
  Loc operator[](LocId id) const;

 private:
  mutable std::mutex mutex_;
  std::vector<Loc> locations_{Loc{}};
};

/// One worker's front to the table: a direct-mapped cache.
class LocationCache {
 public:
  void reset(LocationTable* table);
  ATTN_FORCE_INLINE LocId id(Loc loc) {
    Entry& e = entries_[(reinterpret_cast<std::uintptr_t>(loc.file) + unsigned(loc.line)) % kSize];
    if (e.loc == loc) [[likely]]
      return e.id;
    return miss(e, loc);
  }
  const LocationTable& table() const { return *table_; }

 private:
  struct Entry {
    Loc loc;
    LocId id = 0;
  };
  static constexpr int kSize = 256;
  LocId miss(Entry& e, Loc loc);
  LocationTable* table_ = nullptr;
  Entry entries_[kSize];
};

}  // namespace attn::simt::cpu
