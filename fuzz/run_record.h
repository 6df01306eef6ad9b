#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "fuzz/junit.h"
#include "fuzz/report_page.h"

/// What a command found, for other programs: as JSON, as JUnit XML and as a page.
namespace attn::fuzz {

/// All that was checked, and what there is to say of it.
struct RunRecord {
  std::string title;                                  ///< "attnproof check"
  std::vector<Suite> suites;                          ///< what was checked
  nlohmann::json details = nlohmann::json::object();  ///< what JSON tells beside the suites
  ReportPage page = {};                               ///< for `--html`

  bool is_clean() const;  ///< nothing that was checked failed
};

/// The details; `clean`; and `reasons`: name and report of everything that failed.
nlohmann::json to_json(const RunRecord& record);
/// JUnit XML of its suites.
std::string to_junit(const RunRecord& record);

/// Where the record of a run goes, by option. Empty: it was not asked for.
struct RecordFiles {
  std::string json, junit, html;  ///< paths
};

/// Does the work of a command and writes the record of it, as it stands at each time. The files are
/// there before the work, so that a bad path is bad usage and a run that is killed leaves files
/// that say "not finished"; a run that ends by an error leaves its message in them.
/// @returns the exit status: 0 where the record is clean in the end, else 1.
/// @throws std::invalid_argument if a file cannot be written, and whatever the work throws.
int recorded(const RecordFiles& files, const std::function<RunRecord()>& record,
             const std::function<void()>& work);

/// Whether the bounds had power: not where more than 20 % of the cases are mistrusted.
Checked power_of_bounds(std::uint64_t mistrusted, std::uint64_t cases);

}  // namespace attn::fuzz
