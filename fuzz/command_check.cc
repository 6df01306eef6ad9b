#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "fuzz/checked_file.h"
#include "fuzz/commands.h"
#include "fuzz/run_record.h"

namespace attn::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr int most_explained = 5;  // failures of which all is printed
constexpr int most_told = 20;
constexpr int most_listed = 200;  // on a page

/// Every case of a folder, in the order of their names.
std::vector<std::string> cases_in(const std::string& directory) {
  std::vector<std::string> paths;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory)) {
    const std::string path = entry.path().string();
    if (path.ends_with(file_suffix) && !path.ends_with(output_suffix)) paths.push_back(path);
  }
  if (paths.empty())
    throw std::invalid_argument(fmt::format("'{}': no file *{}, expected those of 'attnproof emit'",
                                            directory, file_suffix));
  std::sort(paths.begin(), paths.end());
  return paths;
}

bool is_mistrusted(const CheckedFile& x) { return x.outcome == name_of(Outcome::mistrusted); }

/// The files of one run, and the page of the one that is furthest off.
class Check {
 public:
  explicit Check(const CheckArguments& a) : a_(a) {}

  void run() {
    parse_rounds(a_.rounds);  // bad usage, whatever the files are
    const bool folder = fs::is_directory(a_.path);
    for (const std::string& path : folder ? cases_in(a_.path) : std::vector{a_.path})
      add(check_file(path, a_), folder);
    if (told_ > most_told) fmt::print("and {} more\n", told_ - most_told);
    fmt::print("{}\n", summary());
    const std::string power = power_of_files().failure;
    fmt::print("{}", power);
    if (power.empty() && count(&CheckedFile::is_failure) == 0) fmt::print("no discrepancy\n");
  }

  RunRecord record() const {
    Suite suite{"files", {}, {{"rounds", a_.rounds}}};
    nlohmann::json results = nlohmann::json::array();
    for (const CheckedFile& x : files_) {
      suite.checked.push_back({x.name, x.is_failure ? report(x) : ""});
      results.push_back(to_json(x));
    }
    return {"attnproof check",
            {suite, {"whole", {power_of_files()}}},
            {{"checked", files_.size()},
             {"failed", count(&CheckedFile::is_failure)},
             {"mistrusted", count(is_mistrusted)},
             {"rounds", a_.rounds},
             {"results", results}},
            page()};
  }

 private:
  template <class Is>
  std::int64_t count(Is is) const {
    return std::count_if(files_.begin(), files_.end(),
                         [&](const CheckedFile& x) { return std::invoke(is, x); });
  }
  Checked power_of_files() const { return power_of_bounds(count(is_mistrusted), files_.size()); }

  void add(CheckedFile x, bool of_many) {
    const bool told = x.is_failure || (is_mistrusted(x) && !of_many);
    if (told && ++told_ <= most_told) fmt::print("{}", report(x, told_ <= most_explained));
    std::vector<HeatMap> planes = std::exchange(x.planes, {});
    const double worst = planes.empty() ? nothing_here : worst_of(planes[0]);
    if (worst > worst_) worst_ = worst, worst_file_ = files_.size(), planes_ = std::move(planes);
    files_.push_back(std::move(x));
  }

  /// "50 checked, rounds flash: 2 discrepancy, 48 pass".
  std::string summary() const {
    std::map<std::string, int> outcomes;
    for (const CheckedFile& x : files_) ++outcomes[x.outcome];
    std::string counts;
    for (const auto& [outcome, n] : outcomes)
      counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", n, outcome);
    return fmt::format("{} checked, rounds {}: {}", files_.size(), a_.rounds, counts);
  }

  ReportPage page() const {
    ReportPage page{summary(), {}, planes_};
    if (!planes_.empty()) {
      const CheckedFile& worst = files_[worst_file_];
      page.texts.push_back({"Furthest off: " + worst.name, report(worst)});
    }
    std::string failures;
    int listed = 0;
    for (const CheckedFile& x : files_)
      if (x.is_failure && ++listed <= most_listed) failures += report(x, false);
    if (listed > most_listed) failures += fmt::format("and {} more\n", listed - most_listed);
    if (listed > 0) page.texts.push_back({"Failures", failures});
    return page;
  }

  const CheckArguments& a_;
  std::vector<CheckedFile> files_;
  int told_ = 0;
  double worst_ = nothing_here;
  std::size_t worst_file_ = 0;
  std::vector<HeatMap> planes_;  // of that file
};

}  // namespace

int check_command(const CheckArguments& a) {
  Check check(a);
  return recorded(
      {a.json, a.junit, a.html}, [&] { return check.record(); }, [&] { check.run(); });
}

}  // namespace attn::fuzz
