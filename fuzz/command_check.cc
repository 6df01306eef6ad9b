#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "fuzz/commands.h"
#include "fuzz/file_verdict.h"

namespace attn::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr const char* suffix = ".safetensors";
constexpr const char* output_suffix = ".out.safetensors";
constexpr int most_explained = 5;  // failures of which all is told
constexpr int most_told = 20;
/// As in a fuzz run: more cases that prove nothing are no pass.
constexpr double mistrusted_budget = 0.2;

/// What became of one file.
struct Checked {
  std::string name, outcome, reason, looks_like;
  Verdict verdict;
  std::string case_line;  ///< of an emitted file
  bool is_failure = false;
};

std::string outputs_beside(const std::string& inputs) {
  return inputs.substr(0, inputs.size() - std::string(suffix).size()) + output_suffix;
}

void take(const FileVerdict& v, Checked& checked) {
  checked.verdict = v.verdict;
  checked.outcome = name_of(v.verdict.outcome);
  checked.reason = v.verdict.reason;
  checked.looks_like = v.looks_like;
  checked.is_failure = is_failure(v.verdict.outcome);
  if (v.missing.empty()) return;
  const std::string what = fmt::format("{}", fmt::join(v.missing, ", "));
  if (!checked.is_failure) {
    checked.outcome = "missing";
    checked.reason = fmt::format("no {} was written", what);
  } else {
    checked.verdict.discrepancy.where += fmt::format("; no {} was written", what);
  }
  checked.is_failure = true;
}

/// A case of `emit`, and what a program wrote for it.
Checked check_emitted(const Safetensors& file, const std::string& path, Rounds rounds,
                      bool no_lse) {
  Checked checked;
  checked.name = fs::path(path).stem().string();
  checked.case_line = file.metadata("case");
  const FileProblem problem = read_problem(file, described_by(file));
  check_rounds(problem, rounds);  // bad usage, whatever the outputs are
  std::vector<std::string> required = required_outputs(problem.is_backward());
  if (no_lse) std::erase(required, "lse");
  const std::string outputs = outputs_beside(path);
  if (!fs::exists(outputs)) {
    checked.outcome = "missing";
    checked.reason = fmt::format("no file {}", outputs);
    checked.is_failure = true;
    return checked;
  }
  try {
    take(judge_outputs(problem, Safetensors::read(outputs), rounds, required), checked);
  } catch (const std::invalid_argument& refusal) {
    checked.outcome = "unreadable";
    checked.reason = refusal.what();
    checked.is_failure = true;
  }
  return checked;
}

/// Tensors of a run, inputs and outputs in one file.
Checked check_dumped(const Safetensors& file, const CheckArguments& a, Rounds rounds) {
  Checked checked;
  checked.name = fs::path(a.path).filename().string();
  const FileProblem problem = read_problem(file, a.description);
  take(judge_outputs(problem, file, rounds, {}), checked);
  return checked;
}

void print(const Checked& x, const std::string& again, bool whole) {
  const Discrepancy& d = x.verdict.discrepancy;
  if (x.outcome == name_of(Outcome::discrepancy)) {
    fmt::print("discrepancy  {}   {} got {:.9g}  reference {:.9g}  bound {:.3g} (mostly {})\n",
               x.name, d.element, d.got, d.reference, d.bound, name_of(d.term));
    if (!whole) return;
    if (d.proved) fmt::print("proved       no order of rounding reaches this value\n");
    fmt::print("where        {}\n", d.where);
    fmt::print("looks like   {}\n",
               x.looks_like.empty() ? "none of the known faults" : x.looks_like);
  } else {
    fmt::print("{:<12} {}   {}\n", x.outcome, x.name, x.reason);
    if (!whole) return;
  }
  if (!x.case_line.empty()) fmt::print("case         {}\n", x.case_line);
  fmt::print("again        {}\n", again);
}

nlohmann::json to_json(const Checked& x) {
  nlohmann::json j = {{"name", x.name}, {"outcome", x.outcome}};
  if (!x.case_line.empty()) j["case"] = x.case_line;
  if (!x.reason.empty()) j["reason"] = x.reason;
  if (x.outcome != name_of(Outcome::discrepancy)) return j;
  const Discrepancy& d = x.verdict.discrepancy;
  j["element"] = d.element;
  j["got"] = fmt::format("{:.9g}", d.got);  // a NaN is no number of JSON
  j["reference"] = fmt::format("{:.9g}", d.reference);
  j["bound"] = fmt::format("{:.3g}", d.bound);
  j["where"] = d.where;
  j["looks_like"] = x.looks_like;
  return j;
}

/// Every case of a folder, in the order of their names.
std::vector<std::string> cases_in(const std::string& directory) {
  std::vector<std::string> paths;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory)) {
    const std::string path = entry.path().string();
    if (path.ends_with(suffix) && !path.ends_with(output_suffix)) paths.push_back(path);
  }
  if (paths.empty())
    throw std::invalid_argument(
        fmt::format("'{}': no file *{}, expected those of 'attnproof emit'", directory, suffix));
  std::sort(paths.begin(), paths.end());
  return paths;
}

void refuse_description(const FileDescription& d) {
  const bool given =
      d.mod != "score" || d.mask != "true" || !d.parameters.empty() || !d.tables.empty() || d.scale;
  if (given)
    throw std::invalid_argument(
        "--mask, --mod, --param, --table, --scale: expected for a file of "
        "dumped tensors only; a file of 'attnproof emit' says these itself");
}

int summarize(const std::vector<Checked>& all, int untold, const CheckArguments& a) {
  if (untold > 0) fmt::print("and {} more\n", untold);
  std::map<std::string, int> outcomes;
  int failed = 0;
  for (const Checked& x : all) {
    ++outcomes[x.outcome];
    failed += x.is_failure;
  }
  std::string counts;
  for (const auto& [outcome, n] : outcomes)
    counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", n, outcome);
  fmt::print("{} checked, rounds {}: {}\n", all.size(), a.rounds, counts);
  const int mistrusted = outcomes[name_of(Outcome::mistrusted)];
  if (!a.json.empty()) {
    nlohmann::json j = {{"checked", all.size()},
                        {"failed", failed},
                        {"mistrusted", mistrusted},
                        {"rounds", a.rounds},
                        {"results", nlohmann::json::array()}};
    for (const Checked& x : all) j["results"].push_back(to_json(x));
    write_file(a.json, j.dump(2) + "\n");
  }
  if (failed > 0) return 1;
  if (mistrusted > mistrusted_budget * static_cast<double>(all.size())) {
    fmt::print("too much proves nothing: {} mistrusted, at most {:.0f} % are allowed\n", mistrusted,
               100 * mistrusted_budget);
    return 1;
  }
  fmt::print("no discrepancy\n");
  return 0;
}

}  // namespace

int check_command(const CheckArguments& a) {
  const Rounds rounds = parse_rounds(a.rounds);
  if (!a.json.empty()) write_file(a.json, "");  // a bad path is bad usage, before any work
  std::vector<Checked> all;
  int told = 0;
  const auto add = [&](Checked x, const std::string& path) {
    const bool shown = x.is_failure || x.outcome == name_of(Outcome::mistrusted);
    const std::string again = fmt::format("attnproof check {}{}", path,
                                          a.rounds == "flash" ? "" : " --rounds " + a.rounds);
    if (shown && (x.is_failure || !fs::is_directory(a.path)) && ++told <= most_told)
      print(x, again, told <= most_explained);
    all.push_back(std::move(x));
  };
  if (fs::is_directory(a.path)) {
    refuse_description(a.description);
    for (const std::string& path : cases_in(a.path))
      add(check_emitted(Safetensors::read(path), path, rounds, a.no_lse), path);
    return summarize(all, told - most_told, a);
  }
  const Safetensors file = Safetensors::read(a.path);
  if (file.metadata().contains(file_version_key)) {
    refuse_description(a.description);
    if (!a.path.ends_with(suffix) || a.path.ends_with(output_suffix))
      throw std::invalid_argument(
          fmt::format("'{}': expected the name of a case, which ends in {}", a.path, suffix));
    add(check_emitted(file, a.path, rounds, a.no_lse), a.path);
  } else {
    add(check_dumped(file, a, rounds), a.path);
  }
  return summarize(all, told - most_told, a);
}

}  // namespace attn::fuzz
