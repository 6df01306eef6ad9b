#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "fuzz/commands.h"
#include "fuzz/file_verdict.h"

/// One file of outputs, judged: what `attnproof check` says of it.
namespace attn::fuzz {

struct CheckedFile {
  std::string name;
  std::string outcome;  ///< of the verdict, or "missing", "unreadable"
  std::string reason, looks_like;
  std::string case_line;  ///< of a file of `emit`
  std::string again;      ///< the command that checks it again
  bool is_failure = false;
  Verdict verdict;
  std::vector<HeatMap> planes;  ///< error over bound, worst first; only if a page is wanted
};

inline constexpr const char* file_suffix = ".safetensors";
inline constexpr const char* output_suffix = ".out.safetensors";

/// Judges the file: a case of `emit` with the outputs that stand beside it, or dumped tensors of a
/// run, inputs and outputs in one.
/// @throws std::invalid_argument for what is bad usage: a file or a description that poses no
///     problem.
CheckedFile check_file(const std::string& path, const CheckArguments& arguments);

/// What is printed of it: the first line, or `whole`.
std::string report(const CheckedFile& file, bool whole = true);
nlohmann::json to_json(const CheckedFile& file);

}  // namespace attn::fuzz
