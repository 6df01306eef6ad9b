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

/// The options of `attnproof fuzz`, as text where the command reads them itself; empty: not given.
struct FuzzArguments {
  std::uint64_t cases = 0;     ///< of all shards together; 0: no limit
  double seconds = 0;          ///< 0: 60, or no limit where `cases` is given
  std::uint64_t seed = 1;      ///< the same seed draws the same cases
  int jobs = 0;                ///< 0: one a processor core
  std::string implementation;  ///< rows of the table, separated by commas; "all" or empty: all
  std::string engine = "warp", dtype, mod, mask, shape, json;  ///< shape: "Sq64 Skv65"
  std::string junit, corpus, shard;                            ///< a file; a folder; "i/n"
  std::string html;                                            ///< the page of the case that failed
  std::vector<std::string> tables;  ///< of the mod and the mask: "slope[Hq]=alibi"
  bool repeat = false;              ///< run every case twice and compare the bits
};
/// Replays the corpora, runs a campaign, then examines a mod or mask of the user's. Prints its
/// progress and a report of what failed, and writes the files that were asked for.
int fuzz_command(const FuzzArguments& arguments);

/// The options of `attnproof examine`: expressions, and the tables that they read.
struct ExamineArguments {
  std::string mod, mask;            ///< expressions
  std::string json, junit;          ///< files of the result; empty: none
  std::vector<std::string> tables;  ///< that the two read: "slope[Hq]=alibi"
};
/// Prints the examinations of a mod, a mask or both. Returns 1 if one of them is wrong.
int examine_command(const ExamineArguments& arguments);
/// Prints what there is to say of the mod, the mask or both of a case, and adds it to `result`.
/// Returns these, each with what is wrong with it.
std::vector<Checked> examine(const Case& c, const FixedLengths& fixed, bool mod, bool mask,
                             nlohmann::json& result);

/// The options of `attnproof replay`: a case line, and how to run it.
struct ReplayArguments {
  std::string line, engine = "warp", planted, html;  ///< html: the file of its page
  std::string relation;                              ///< checked in place of the oracle
  bool repeat = false;                               ///< run it twice and compare the bits
};
/// Runs one case, or one relation on it, and prints what came of it.
int replay_command(const ReplayArguments& arguments);

/// The options of `attnproof faults`.
struct FaultsArguments {
  std::uint64_t cases = 4000;  ///< at most, for each fault
  std::uint64_t seed = 1;      ///< of the cases that every fault is hunted with
  int jobs = 0;                ///< threads; 0: one a processor core
  std::string json, junit;     ///< files of the result; empty: none
};
/// Plants each fault of `hunted_faults` and hunts it with random cases of the shipped rows. Returns
/// 1 if one was not found.
int faults_command(const FaultsArguments& arguments);

/// The options of `attnproof relations`.
struct RelationsArguments {
  std::string implementation;                   ///< a row of the table; empty: all
  std::string engine = "warp", planted, shape;  ///< shape: "Sq4096 Skv4096"
  std::string json, junit;                      ///< files of the result; empty: none
  double seconds = 60;                          ///< after which no new case is begun
  std::uint64_t seed = 1;                       ///< the same seed draws the same cases
};
/// Draws cases for one relation after another (fuzz/relations.h), until the time is up or one is
/// broken.
int relations_command(const RelationsArguments& arguments);

/// Lists the table of implementations, with what each row takes and leaves out; as JSON too, to the
/// file `json` unless it is empty.
int implementations_command(const std::string& json);

/// The options of `attnproof show`.
struct ShowArguments {
  enum class What { list, mask, mod };          ///< the subcommands of `show`
  What what = What::list;                       ///< which of them was given
  std::string name;                             ///< of the registry, or an expression
  std::vector<std::string> parameters, tables;  ///< "width=8"; "ids[Skv]=documents(8)"
  std::string size = "64x64";                   ///< queries x keys
  std::optional<int> block;                     ///< lines between blocks of this side
  double score = 1;                             ///< the s at which a mod is shown
  int batch = 0, head = 0;                      ///< the b and h at which it is asked
  std::string svg, json;  ///< files; empty: none, and the terminal gets the picture
};
/// Draws one mask or mod in the terminal, or as SVG to a file; or lists the registries.
int show_command(const ShowArguments& arguments);

/// The options of `attnproof emit`.
struct EmitArguments {
  std::uint64_t cases = 100, seed = 1;       ///< how many are written, and from which seed
  std::vector<std::string> implementations;  ///< rows of plain tensors; none: the flash kernels
  std::string dtype, directory;  ///< empty: every type; the folder, made if it is not there
  bool all_mods = false;         ///< those too that do more than add to the score
};
/// Writes the inputs of each case as a safetensors file, and manifest.json, which lists them with
/// what a program is to write for each. @throws std::invalid_argument if the folder is not empty.
int emit_command(const EmitArguments& arguments);
/// The tensors that a program must write for an emitted case.
std::vector<std::string> required_outputs(bool backward);

/// The options of `attnproof check`.
struct CheckArguments {
  std::string path;  ///< a folder of `emit`, one of its files, or a file of dumped tensors
  std::string rounds = "flash", json, junit;  ///< what the program may round (Rounds); two files
  std::string html;                           ///< the page of the file that is furthest off
  FileDescription description;                ///< of dumped tensors
  bool no_lse = false;                        ///< the program gives none
};
/// Judges what another program wrote for emitted cases, or tensors dumped from a run of it.
int check_command(const CheckArguments& arguments);

/// Shared by the commands.
PlantedFault parse_planted(const std::string& name);  ///< empty: none
/// `Sq64 Skv65 B2`: lengths that every case has.
void fix_shape(const std::string& text, Fixed& fixed);
/// "warp" or "thread". @throws std::invalid_argument for any other.
Engine parse_engine(const std::string& name);
/// `jobs`, or the number of processor cores where it is 0.
int jobs_or_cores(int jobs);
/// Runs a case that failed once more, for its page; `original`: what it was shrunk from.
ReportPage failure_page(const Case& c, const RunOptions& options, const std::string& original = {});
/// @throws std::invalid_argument if the file cannot be written.
void write_file(const std::string& path, const std::string& text);

}  // namespace attn::fuzz
