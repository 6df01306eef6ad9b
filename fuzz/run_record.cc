#include "fuzz/run_record.h"

#include <fmt/format.h>

#include <algorithm>

#include "fuzz/commands.h"
#include "fuzz/report_html.h"

namespace attn::fuzz {
namespace {

constexpr double mistrusted_budget = 0.2;

void write(const RunRecord& record, const RecordFiles& files) {
  constexpr auto replace = nlohmann::json::error_handler_t::replace;  // what is no UTF-8
  if (!files.json.empty())
    write_file(files.json, to_json(record).dump(2, ' ', false, replace) + "\n");
  if (!files.junit.empty()) write_file(files.junit, to_junit(record));
  if (!files.html.empty()) write_file(files.html, to_html(record.page));
}

/// The record of a run that did not come to its end.
RunRecord ended(RunRecord record, const std::string& why) {
  record.suites.push_back({"run", {{"run", why}}});
  record.page = {record.title + ": not finished", {{"Run", why}}, {}};
  return record;
}

}  // namespace

bool RunRecord::is_clean() const {
  return std::all_of(suites.begin(), suites.end(),
                     [](const Suite& suite) { return all_right(suite.checked); });
}

nlohmann::json to_json(const RunRecord& record) {
  nlohmann::json j = record.details;
  j["clean"] = record.is_clean();
  j["reasons"] = nlohmann::json::array();
  for (const Suite& suite : record.suites)
    for (const Checked& c : suite.checked)
      if (!c.failure.empty()) j["reasons"].push_back({{"name", c.name}, {"report", c.failure}});
  return j;
}

std::string to_junit(const RunRecord& record) { return junit_xml(record.title, record.suites); }

int recorded(const RecordFiles& files, const std::function<RunRecord()>& record,
             const std::function<void()>& work) {
  write(ended(record(), "not finished"), files);
  try {
    work();
  } catch (const std::exception& error) {
    write(ended(record(), fmt::format("ended by an error: {}", error.what())), files);
    throw;
  }
  const RunRecord whole = record();
  write(whole, files);
  return whole.is_clean() ? 0 : 1;
}

Checked power_of_bounds(std::uint64_t mistrusted, std::uint64_t cases) {
  const double share = cases > 0 ? static_cast<double>(mistrusted) / static_cast<double>(cases) : 0;
  if (share <= mistrusted_budget) return {"power", ""};
  return {"power",
          fmt::format("too many cases prove nothing: {:.0f} % mistrusted, at most {:.0f} % "
                      "are allowed\n",
                      100 * share, 100 * mistrusted_budget)};
}

}  // namespace attn::fuzz
