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

UserCase read_case(const fs::path& path) {
  std::ifstream file(path);
  std::optional<Case> found;
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
      found = parse_case(text);
    } catch (const std::invalid_argument& error) {
      fail(error.what());
    }
  }
  if (!found)
    throw std::invalid_argument(fmt::format("--corpus: {}: holds no case", path.string()));
  return {path.string(), *found};
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
  const std::string line = to_text(failure.shrunk);
  std::string outcome = name_of(failure.verdict.outcome);
  std::replace(outcome.begin(), outcome.end(), ' ', '_');
  const fs::path path =
      fs::path(folder) / fmt::format("{}_{:016x}.case", outcome, hash_of_text(line));
  const Discrepancy& d = failure.verdict.discrepancy;
  const std::string what = failure.verdict.outcome == Outcome::discrepancy
                               ? fmt::format("{} got {:.9g}, reference {:.9g}, bound {:.3g}",
                                             d.element, d.got, d.reference, d.bound)
                               : failure.verdict.reason;
  std::string text = fmt::format("# {}: ", name_of(failure.verdict.outcome));
  for (const char c : what) text += c == '\n' ? ' ' : c;
  write_file(path.string(), text + "\n" + line + "\n");
  return path.string();
}

}  // namespace attn::fuzz
