#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "fuzz/campaign.h"
#include "fuzz/examination.h"
#include "fuzz/file_problem.h"
#include "fuzz/functor_build.h"
#include "fuzz/junit.h"
#include "fuzz/report_page.h"

/// The commands of the tool `attnproof`. Each returns its exit status: 0 clean, 1 a discrepancy was
/// found, 2 bad usage (thrown as std::invalid_argument), 3 it could not do what was asked.
namespace attn::fuzz {

struct FuzzArguments {
  std::uint64_t cases = 0;
  double seconds = 0;
  std::uint64_t seed = 1;
  int jobs = 0;                ///< 0: one a processor core
  std::string implementation;  ///< rows of the table, separated by commas; "all" or empty: all
  std::string engine = "warp", dtype, mod, mask, shape, json;
  std::string junit, corpus, shard;
  std::string html;  ///< the page of the case that failed
  std::vector<std::string> tables;
  bool repeat = false;  ///< run every case twice and compare the bits
};
int fuzz_command(const FuzzArguments& arguments);

struct ExamineArguments {
  std::string mod, mask, json, junit;
  std::vector<std::string> tables;
};
int examine_command(const ExamineArguments& arguments);
/// Prints what there is to say of the mod, the mask or both of a case, and adds it to `result`.
/// Returns these, each with what is wrong with it.
std::vector<Checked> examine(const Case& c, const FixedLengths& fixed, bool mod, bool mask,
                             nlohmann::json& result);

struct ReplayArguments {
  std::string line, engine = "warp", planted, html;
  std::string relation;  ///< checked in place of the oracle
  bool repeat = false;
};
int replay_command(const ReplayArguments& arguments);

struct FaultsArguments {
  std::uint64_t cases = 4000;  ///< at most, for each fault
  std::uint64_t seed = 1;
  int jobs = 0;
  std::string json, junit;
};
int faults_command(const FaultsArguments& arguments);

struct RelationsArguments {
  std::string implementation;  ///< a row of the table; empty: all
  std::string engine = "warp", planted, shape;
  double seconds = 60;
  std::uint64_t seed = 1;
};
int relations_command(const RelationsArguments& arguments);

int implementations_command(const std::string& json);

struct ShowArguments {
  enum class What { list, mask, mod };
  What what = What::list;
  std::string name;  ///< of the registry, or an expression
  std::vector<std::string> parameters, tables;
  std::string size = "64x64";
  std::optional<int> block;  ///< lines between blocks of this side
  double score = 1;          ///< the s at which a mod is shown
  int batch = 0, head = 0;
  std::string svg, json;
};
int show_command(const ShowArguments& arguments);

struct EmitArguments {
  std::uint64_t cases = 100, seed = 1;
  std::vector<std::string> implementations;  ///< rows of plain tensors; none: the flash kernels
  std::string dtype, directory;
  bool all_mods = false;  ///< those too that do more than add to the score
};
int emit_command(const EmitArguments& arguments);
/// The tensors that a program must write for an emitted case.
std::vector<std::string> required_outputs(bool backward);

struct CheckArguments {
  std::string path;  ///< a folder of `emit`, one of its files, or a file of dumped tensors
  std::string rounds = "flash", json, junit;
  std::string html;             ///< the page of the file that is furthest off
  FileDescription description;  ///< of dumped tensors
  bool no_lse = false;          ///< the program gives none
};
int check_command(const CheckArguments& arguments);

/// Shared by the commands.
PlantedFault parse_planted(const std::string& name);  ///< empty: none
/// `Sq64 Skv65 B2`: lengths that every case has.
void fix_shape(const std::string& text, Fixed& fixed);
Engine parse_engine(const std::string& name);
int jobs_or_cores(int jobs);
/// Runs a case that failed once more, for its page; `original`: what it was shrunk from.
ReportPage failure_page(const Case& c, const RunOptions& options, const std::string& original = {});
/// @throws std::invalid_argument if the file cannot be written.
void write_file(const std::string& path, const std::string& text);

}  // namespace attn::fuzz
