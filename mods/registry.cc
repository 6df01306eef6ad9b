#include "mods/registry.h"

#include <stdexcept>

namespace attn {

const std::vector<ModEntry>& mod_registry() {
  static const std::vector<ModEntry> all = [] {
    std::vector<ModEntry> entries = detail::plain_mods();
    for (ModEntry& entry : detail::table_mods()) entries.push_back(std::move(entry));
    return entries;
  }();
  return all;
}

const ModEntry& mod_named(const std::string& name) {
  std::vector<std::string> names;
  for (const ModEntry& entry : mod_registry()) {
    if (entry.name == name) return entry;
    names.push_back(entry.name);
  }
  throw std::invalid_argument("no score mod is called '" + name + "'" + suggestion(name, names));
}

const std::vector<Excluded>& excluded_mods() {
  static const std::vector<Excluded> all = {
      {"tanh or sigmoid attention (FlashSigmoid of FlashInfer)",
       "it has no softmax, so it is no change of a score; the mod activation_sigmoid gives it up "
       "to "
       "the factor exp(LSE) of each row"},
      {"attention sink (FlashInfer, FlashAttention 4, cuDNN, splash, ggml)",
       "it adds exp(sink[h]) to the denominator and belongs to no pair: it is an argument of the "
       "attention call"},
  };
  return all;
}

NamedMod make_mod(const ModEntry& entry, const Sizes& sizes, const ParameterValues& parameters,
                  const Tables& tables) {
  NamedMod mod(
      entry, std::make_shared<Arguments>(entry.name, entry.parameters, sizes, parameters, tables));
  mod.arguments_->require_all_used();
  mod.mod_.check(sizes);
  return mod;
}

}  // namespace attn
