#include "masks/registry.h"

#include <stdexcept>

namespace attn {

const std::vector<MaskEntry>& mask_registry() {
  static const std::vector<MaskEntry> all = [] {
    std::vector<MaskEntry> entries;
    for (const auto& part : {detail::position_masks(), detail::table_masks(), detail::grid_masks(),
                             detail::xformers_masks()})
      entries.insert(entries.end(), part.begin(), part.end());
    return entries;
  }();
  return all;
}

const MaskEntry& mask_named(const std::string& name) {
  std::vector<std::string> names;
  for (const MaskEntry& entry : mask_registry()) {
    if (entry.name == name) return entry;
    names.push_back(entry.name);
  }
  throw std::invalid_argument("no mask is called '" + name + "'" + suggestion(name, names));
}

NamedMask make_mask(const MaskEntry& entry, const Sizes& sizes, const ParameterValues& parameters,
                    const Tables& tables) {
  NamedMask mask(
      entry, std::make_shared<Arguments>(entry.name, entry.parameters, sizes, parameters, tables));
  mask.arguments_->require_all_used();
  mask.mask_.check(sizes);
  return mask;
}

}  // namespace attn
