#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "fuzz/commands.h"
#include "fuzz/examination.h"
#include "fuzz/functors.h"
#include "fuzz/run_record.h"
#include "mods/lang/parse.h"

namespace attn::fuzz {

std::vector<Checked> examine(const Case& c, const FixedLengths& fixed, bool mod, bool mask,
                             nlohmann::json& result) {
  std::vector<Checked> examined;
  const auto add = [&](const char* what, const auto& report) {
    fmt::print("{}", to_text(report));
    result[what] = to_json(report);
    examined.push_back({what, fmt::format("{}", fmt::join(report.wrong, "\n"))});
  };
  if (mod) add("mod", examine_mod(c, fixed));
  if (mask) add("mask", examine_mask(c, fixed));
  return examined;
}

static void run_examine(const ExamineArguments& a, RunRecord& record) {
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
  record.suites = {{"examination", examine(c, {0, 0, 0, 0, 0}, mod, mask, record.details)}};
}

int examine_command(const ExamineArguments& a) {
  RunRecord record;
  record.title = "attnproof examine";
  return recorded(
      {a.json, a.junit, {}}, [&] { return record; }, [&] { run_examine(a, record); });
}

}  // namespace attn::fuzz
