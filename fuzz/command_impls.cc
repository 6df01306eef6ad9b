#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "fuzz/commands.h"
#include "fuzz/row_limits.h"

namespace attn::fuzz {
namespace {

using nlohmann::json;

/// What the row leaves out, such as "no sink"; empty: nothing.
std::vector<std::string> limits_of(const Implementation& row) {
  std::vector<std::string> limits;
  if (!row.mod.empty()) limits.push_back(fmt::format("mod '{}' only", row.mod));
  if (!row.mask.empty()) limits.push_back(fmt::format("mask '{}' only", row.mask));
  for (const auto& [has, name] : {std::pair(row.lse, "LSE"),
                                  {row.row_max, "row maxima"},
                                  {row.sink, "sink"},
                                  {row.dropout, "dropout"},
                                  {row.strides, "strides"}})
    if (!has) limits.push_back(fmt::format("no {}", name));
  return limits;
}

json describe(const Implementation& row) {
  json dtypes = json::array(), engines = json::array();
  for (const DType t : {DType::f64, DType::f32, DType::f16, DType::bf16})
    if (takes(row, t)) dtypes.push_back(name_of(t));
  for (const Engine e : {Engine::warp, Engine::thread})
    if (row.runs_on(e)) engines.push_back(name_of(e));
  return {{"name", row.name},
          {"what", row.what},
          {"tiles", fmt::format("{}x{}, small {}x{}", row.production.q, row.production.kv,
                                row.small.q, row.small.kv)},
          {"pass", row.pass == Pass::forward ? "forward" : "backward"},
          {"dtypes", dtypes},
          {"deterministic", row.deterministic},
          {"limits", limits_of(row)},
          {"engines", engines},
          {"devices", {"cpu"}}};
}

}  // namespace

int implementations_command(const std::string& path) {
  json rows = json::array();
  for (const Implementation& row : implementations()) {
    const json described = describe(row);
    const auto listed = [&](const char* key) {
      return fmt::format("{}", fmt::join(described[key].get<std::vector<std::string>>(), ", "));
    };
    fmt::print("{:<21} {}\n", row.name, row.what);
    fmt::print("{:<21} tiles {}; {}; engines {}\n", "", described["tiles"].get<std::string>(),
               row.deterministic ? "deterministic" : "not deterministic", listed("engines"));
    fmt::print("{:<21} storage {}\n", "", described["dtypes"].dump());
    if (!described["limits"].empty()) fmt::print("{:<21} {}\n", "", listed("limits"));
    rows.push_back(described);
  }
  if (!path.empty()) write_file(path, json{{"implementations", rows}}.dump(2) + "\n");
  return 0;
}

}  // namespace attn::fuzz
