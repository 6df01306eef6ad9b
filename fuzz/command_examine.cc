#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "fuzz/commands.h"
#include "fuzz/examination.h"
#include "fuzz/functors.h"
#include "mods/lang/parse.h"

namespace attn::fuzz {

bool examine(const Case& c, const FixedLengths& fixed, bool mod, bool mask,
             nlohmann::json& result) {
  bool right = true;
  if (mod) {
    const ModReport report = examine_mod(c, fixed);
    fmt::print("{}", to_text(report));
    result["mod"] = to_json(report);
    right &= report.wrong.empty();
  }
  if (mask) {
    const MaskReport report = examine_mask(c, fixed);
    fmt::print("{}", to_text(report));
    result["mask"] = to_json(report);
    right &= report.wrong.empty();
  }
  return right;
}

int examine_command(const ExamineArguments& a) {
  Case c;
  c.seed = 1;
  for (const std::string& t : a.tables) c.tables.push_back(parse_table_spec(t));
  if (!a.mod.empty()) c.mod = parse_mod(a.mod, c.declarations());
  if (!a.mask.empty()) c.mask = parse_mask(a.mask, c.declarations());
  if (const BuiltInTypes* types = built_in_types())
    c.mod_type = types->mod_type(), c.mask_type = types->mask_type();
  const bool mod = !a.mod.empty() || !c.mod_type.empty(),
             mask = !a.mask.empty() || !c.mask_type.empty();
  if (!mod && !mask)
    throw std::invalid_argument(
        "examine: nothing, expected --mod, --mask, --mod-file or "
        "--mask-file");
  if (!a.json.empty()) write_file(a.json, "");
  nlohmann::json result;
  const bool right = examine(c, {0, 0, 0, 0, 0}, mod, mask, result);
  if (!a.json.empty()) write_file(a.json, result.dump(2) + "\n");
  return right ? 0 : 1;
}

}  // namespace attn::fuzz
