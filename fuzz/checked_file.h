#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "fuzz/commands.h"
#include "fuzz/file_verdict.h"

/// One file of outputs, judged: what `attnproof check` says of it.
namespace attn::fuzz {

/// One file of a check, and all that there is to say of it.
struct CheckedFile {
  std::string name;         ///< of the file, without its folder
  std::string outcome;      ///< of the verdict, or "missing", "unreadable"
  std::string reason;       ///< of every outcome but pass and discrepancy
  std::string looks_like;   ///< of a discrepancy: known faults with this pattern
  std::string case_line;    ///< of a file of `emit`
  std::string again;        ///< the command that checks it again
  bool is_failure = false;  ///< it makes the check fail
  Verdict verdict;  ///< of what the program wrote; as it starts where nothing could be judged
  std::vector<HeatMap> planes;  ///< error over bound, worst first; only if a page is wanted
};

/// How the names of a case and of what a program wrote for it end.
inline constexpr const char* file_suffix = ".safetensors";
/// See `file_suffix`.
inline constexpr const char* output_suffix = ".out.safetensors";

/// Judges the file: a case of `emit` with the outputs that stand beside it, or dumped tensors of a
/// run, inputs and outputs in one.
/// @throws std::invalid_argument for what is bad usage: a file or a description that poses no
///     problem.
CheckedFile check_file(const std::string& path, const CheckArguments& arguments);

/// What is printed of it: the first line, or `whole`.
std::string report(const CheckedFile& file, bool whole = true);
/// The same for other programs.
nlohmann::json to_json(const CheckedFile& file);

}  // namespace attn::fuzz
