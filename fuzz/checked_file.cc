#include "fuzz/checked_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "fuzz/tool.h"
#include "mods/lang/call.h"
#include "mods/lang/environments.h"
#include "mods/lang/tree_functor.h"

namespace attn::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t most_pairs = std::int64_t{1} << 22;  // of a page that shows them

/// [B, Hq, Sq, Skv]: 1 where the mask lets a pair attend; empty where they are too many to show.
Tensor<char, 4> attended(const FileProblem& p) {
  const Case& c = p.c;
  const std::int64_t rows = std::int64_t{c.b} * c.hq * c.sq;
  if (c.skv > 0 && rows > most_pairs / c.skv) return {};
  Tensor<char, 4> pairs({c.b, c.hq, c.sq, c.skv});
  const TreeMask mask(p.mask, p.tables);
  ExactEnv env{c.sizes()};
  const auto i = [&env](int n) { return Index<ExactEnv>{n, &env}; };
  for (int b = 0; b < c.b; ++b)
    for (int h = 0; h < c.hq; ++h)
      for (int q = 0; q < c.sq; ++q)
        for (int kv = 0; kv < c.skv; ++kv)
          pairs(b, h, q, kv) = call_mask(mask, i(b), i(h), i(q), i(kv));
  return pairs;
}

/// For a shell: between quotes if it has anything but letters, digits and harmless marks.
std::string quoted(const std::string& word) {
  constexpr const char* plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::string again(const std::string& path, const CheckArguments& a) {
  std::string line = fmt::format("{} check {}", tool_name(), quoted(path));
  const auto add = [&line](const char* option, const std::string& value) {
    line += fmt::format(" {} {}", option, quoted(value));
  };
  const FileDescription &d = a.description, plain;
  if (a.rounds != CheckArguments().rounds) add("--rounds", a.rounds);
  if (a.no_lse) line += " --no-lse";
  if (d.mask != plain.mask) add("--mask", d.mask);
  if (d.mod != plain.mod) add("--mod", d.mod);
  for (const std::string& parameter : d.parameters) add("--param", parameter);
  for (const std::string& table : d.tables) add("--table", table);
  if (d.scale) add("--scale", fmt::to_string(*d.scale));
  return line;
}

void judge_into(CheckedFile& file, const FileProblem& problem, const Safetensors& outputs,
                const CheckArguments& a, const std::vector<std::string>& required) {
  FileVerdict v = judge_outputs(problem, outputs, parse_rounds(a.rounds), required);
  file.verdict = v.verdict;
  file.outcome = name_of(v.verdict.outcome);
  file.reason = v.verdict.reason;
  file.looks_like = v.looks_like;
  file.is_failure = is_failure(v.verdict.outcome);
  if (!a.html.empty())
    file.planes = planes_of(
        problem.c,
        {v.verdict, std::move(v.outputs.expected), std::move(v.outputs.got), attended(problem)},
        {0, 0});  // nobody knows the program's tiles
  if (v.missing.empty()) return;
  const std::string what = fmt::format("{}", fmt::join(v.missing, ", "));
  if (!file.is_failure) {
    file.outcome = "missing";
    file.reason = fmt::format("no {} was written", what);
  } else {
    file.verdict.discrepancy.where += fmt::format("; no {} was written", what);
  }
  file.is_failure = true;
}

/// A case of `emit`, and what a program wrote for it.
void check_emitted(CheckedFile& file, const Safetensors& inputs, const std::string& path,
                   const CheckArguments& a) {
  if (!path.ends_with(file_suffix) || path.ends_with(output_suffix))
    throw std::invalid_argument(
        fmt::format("'{}': expected the name of a case, which ends in {}", path, file_suffix));
  file.name = fs::path(path).stem().string();
  file.case_line = inputs.metadata("case");
  const FileProblem problem = read_problem(inputs, described_by(inputs));
  check_rounds(problem, parse_rounds(a.rounds));  // bad usage, whatever the outputs are
  std::vector<std::string> required = required_outputs(problem.is_backward());
  if (a.no_lse) std::erase(required, "lse");
  const std::string outputs =
      path.substr(0, path.size() - std::string(file_suffix).size()) + output_suffix;
  const auto fail = [&file](const char* outcome, const std::string& reason) {
    file.outcome = outcome, file.reason = reason, file.is_failure = true;
  };
  if (!fs::exists(outputs)) return fail("missing", fmt::format("no file {}", outputs));
  try {
    judge_into(file, problem, Safetensors::read(outputs), a, required);
  } catch (const std::invalid_argument& refusal) {
    fail("unreadable", refusal.what());
  }
}

/// A file of `emit` says of itself what else the options say.
void refuse_description(const FileDescription& d) {
  const bool given =
      d.mod != "score" || d.mask != "true" || !d.parameters.empty() || !d.tables.empty() || d.scale;
  if (given)
    throw std::invalid_argument(
        "--mask, --mod, --param, --table, --scale: expected for a file of "
        "dumped tensors only; a file of 'attnproof emit' says these itself");
}

}  // namespace

CheckedFile check_file(const std::string& path, const CheckArguments& a) {
  CheckedFile file;
  file.name = fs::path(path).filename().string();
  file.again = again(path, a);
  const Safetensors tensors = Safetensors::read(path);
  if (tensors.metadata().contains(file_version_key) || fs::is_directory(a.path)) {
    refuse_description(a.description);
    check_emitted(file, tensors, path, a);
  } else {
    judge_into(file, read_problem(tensors, a.description), tensors, a, {});
  }
  return file;
}

std::string report(const CheckedFile& x, bool whole) {
  const Discrepancy& d = x.verdict.discrepancy;
  std::string text;
  if (x.outcome == name_of(Outcome::discrepancy)) {
    text =
        fmt::format("discrepancy  {}   {} got {:.9g}  reference {:.9g}  bound {:.3g} (mostly {})\n",
                    x.name, d.element, d.got, d.reference, d.bound, name_of(d.term));
    if (!whole) return text;
    if (d.proved) text += "proved       no order of rounding reaches this value\n";
    text += fmt::format("where        {}\n", d.where);
    text += fmt::format("looks like   {}\n",
                        x.looks_like.empty() ? "none of the known faults" : x.looks_like);
  } else {
    text =
        fmt::format("{:<12} {}{}{}\n", x.outcome, x.name, x.reason.empty() ? "" : "   ", x.reason);
    if (!whole) return text;
  }
  if (!x.case_line.empty()) text += fmt::format("case         {}\n", x.case_line);
  return text + fmt::format("again        {}\n", x.again);
}

nlohmann::json to_json(const CheckedFile& x) {
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

}  // namespace attn::fuzz
