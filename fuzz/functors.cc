#include "fuzz/functors.h"

#include <fmt/format.h>

#include <stdexcept>

namespace attn::fuzz {
namespace {

/// Expressions: walked as trees here, run as programs by the kernels of the table.
class TreeFunctors final : public TypedFunctors<TreeMod, TreeMask> {
 public:
  using TypedFunctors::TypedFunctors;
  std::string_view run(const Implementation& row, const AttentionCall& call,
                       Engine engine) const override {
    return row.run(call, engine);
  }
};

[[noreturn]] void refuse_types(const Case& c) {
  std::string options;
  if (!c.mod_type.empty()) options += fmt::format(" --mod-file FILE --mod-type {}", c.mod_type);
  if (!c.mask_type.empty()) options += fmt::format(" --mask-file FILE --mask-type {}", c.mask_type);
  throw std::invalid_argument(fmt::format("case: {} is not built into this program, expected{}",
                                          c.mod_type.empty() ? c.mask_type : c.mod_type, options));
}

}  // namespace

const BuiltInTypes*& built_in_types() {
  static const BuiltInTypes* types = nullptr;
  return types;
}

std::size_t tables_of_types(const Case& c) {
  const bool typed = !c.mod_type.empty() || !c.mask_type.empty();
  return typed && built_in_types() ? built_in_types()->tables() : 0;
}

std::unique_ptr<Functors> functors_of(const Case& c, const Tables& tables) {
  if (c.mod_type.empty() && c.mask_type.empty())
    return std::make_unique<TreeFunctors>(TreeMod(c.mod, tables), TreeMask(c.mask, tables));
  const BuiltInTypes* types = built_in_types();
  if (!types || types->mod_type() != c.mod_type || types->mask_type() != c.mask_type)
    refuse_types(c);
  return types->functors(c, tables);
}

}  // namespace attn::fuzz
