#include "fuzz/user_corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "fuzz/commands.h"
#include "fuzz/random.h"
#include "fuzz/text.h"

namespace attn::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view relation_option = " --relation ";

/// A case, and the relation that it is held to.
UserCase parse_line(std::string_view text) {
  const std::size_t end = text.find(relation_option);
  UserCase parsed{{}, parse_case(text.substr(0, end))};
  if (end != std::string_view::npos)
    parsed.relation = &relation_named(text.substr(end + relation_option.size()));
  return parsed;
}

UserCase read_case(const fs::path& path) {
  std::ifstream file(path);
  std::optional<UserCase> found;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    const std::string text(trim(line));
    if (text.empty() || text[0] == '#') continue;
    const auto fail = [&](const std::string& what) {
      throw std::invalid_argument(fmt::format("--corpus: {}:{}: {}", path.string(), number, what));
    };
    if (found) fail("a second case, expected one a file");
    try {
      found = parse_line(text);
    } catch (const std::invalid_argument& error) {
      fail(error.what());
    }
  }
  if (!found)
    throw std::invalid_argument(fmt::format("--corpus: {}: holds no case", path.string()));
  found->file = path.string();
  return *found;
}

/// Writes the line, with what is wrong as a remark, to a file whose name follows from the line.
std::string add_line(const std::string& folder, const std::string& line, Outcome outcome,
                     const std::string& what) {
  std::string name = name_of(outcome);
  std::replace(name.begin(), name.end(), ' ', '_');
  const fs::path path = fs::path(folder) / fmt::format("{}_{:016x}.case", name, hash_of_text(line));
  std::string remark = fmt::format("# {}: {}", name_of(outcome), what);
  std::replace(remark.begin(), remark.end(), '\n', ' ');
  write_file(path.string(), remark + "\n" + line + "\n");
  return path.string();
}

}  // namespace

std::vector<UserCase> read_user_corpus(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error || !fs::is_directory(folder))
    throw std::invalid_argument(
        fmt::format("--corpus: '{}', expected a folder, or the name of a new one", folder));
  std::vector<fs::path> paths;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".case") paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<UserCase> cases;
  for (const fs::path& path : paths) cases.push_back(read_case(path));
  return cases;
}

std::string add_to_user_corpus(const std::string& folder, const Failure& failure) {
  const Verdict& v = failure.verdict;
  const Discrepancy& d = v.discrepancy;
  const std::string what = v.outcome == Outcome::discrepancy
                               ? fmt::format("{} got {:.9g}, reference {:.9g}, bound {:.3g}",
                                             d.element, d.got, d.reference, d.bound)
                               : v.reason;
  return add_line(folder, to_text(failure.shrunk), v.outcome, what);
}

std::string add_to_user_corpus(const std::string& folder, const RelationFailure& failure) {
  const std::string line =
      fmt::format("{}{}{}", to_text(failure.shrunk), relation_option, failure.relation->name);
  return add_line(folder, line, failure.verdict.outcome, failure.verdict.reason);
}

}  // namespace attn::fuzz
