#include "optimized/simt/cpu_location.h"

#include <cstring>

namespace attn::simt::cpu {

std::string to_string(Loc loc) {
  if (!loc.file) return "an unknown line";
  const char* slash = std::strrchr(loc.file, '/');
  return std::string(slash ? slash + 1 : loc.file) + ":" + std::to_string(loc.line);
}

void LocationTable::clear() {
  std::lock_guard lock(mutex_);
  locations_.resize(1);
}

LocId LocationTable::add(Loc loc) {
  std::lock_guard lock(mutex_);
  for (LocId id = 1; id < locations_.size(); ++id)
    if (locations_[id] == loc) return id;
  if (locations_.size() >> kLocBits) return 0;
  locations_.push_back(loc);
  return static_cast<LocId>(locations_.size() - 1);
}

Loc LocationTable::operator[](LocId id) const {
  std::lock_guard lock(mutex_);
  return id < locations_.size() ? locations_[id] : Loc{};
}

void LocationCache::reset(LocationTable* table) {
  table_ = table;
  for (Entry& e : entries_) e = {};
}

LocId LocationCache::miss(Entry& e, Loc loc) {
  e = {loc, table_->add(loc)};
  return e.id;
}

}  // namespace attn::simt::cpu
