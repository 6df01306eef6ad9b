#include "fuzz/tool.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "fuzz/commands.h"
#include "fuzz/functors.h"
#include "fuzz/gpu_check.h"
#include "fuzz/run_record.h"

namespace attn::fuzz {
namespace {

constexpr int bad_usage = 2, cannot_do = 3;

std::string& name_of_tool() {
  static std::string name = "attnproof";
  return name;
}

/// The first of several lines; what follows a newline is detail.
void complain(const std::string& message) { fmt::print(stderr, "{}: {}\n", tool_name(), message); }

/// `show list`, `show mask` and `show mod`.
void add_show_commands(CLI::App& app, ShowArguments& show) {
  using What = ShowArguments::What;
  app.require_subcommand(1);
  CLI::App* list = app.add_subcommand("list", "list masks and score mods by name");
  list->add_option("--json", show.json, "write the list to this file");
  list->callback([&show] { show.what = What::list; });
  for (const What what : {What::mask, What::mod}) {
    const bool is_mask = what == What::mask;
    CLI::App* one = app.add_subcommand(
        is_mask ? "mask" : "mod", is_mask ? "draw which pairs attend" : "draw how scores change");
    one->add_option("name", show.name, "a name of 'show list', or an expression")->required();
    one->add_option("--param", show.parameters, "a parameter of the name, such as width=8")
        ->allow_extra_args(false);
    one->add_option("--table", show.tables, "a table, such as 'ids[Skv]=documents(8)'")
        ->allow_extra_args(false);
    one->add_option("--size", show.size, "queries x keys (default 64x64)");
    one->add_option("--batch", show.batch, "the batch entry (default 0)");
    one->add_option("--head", show.head, "the head (default 0)");
    one->add_option("--svg", show.svg, "write a picture to this file");
    if (is_mask)
      one->add_option("--block", show.block, "draw blocks of this side");
    else
      one->add_option("--score", show.score, "the score that changes (default 1)");
    one->callback([&show, what] { show.what = what; });
  }
}

void add_relations_options(CLI::App& app, attn::fuzz::RelationsArguments& relations) {
  app.add_option("--impl", relations.implementation, "a row of 'impls' (default: all)");
  app.add_option("--engine", relations.engine, "warp (fast) or thread");
  app.add_option("--shape", relations.shape, "lengths, such as 'Sq4096 Skv4096' (default 1024)");
  app.add_option("--seconds", relations.seconds, "stop after this time (default 60)")
      ->check(CLI::PositiveNumber);
  app.add_option("--seed", relations.seed, "the same seed draws the same cases");
  app.add_option("--planted", relations.planted, "commit this known fault");
  app.add_option("--json", relations.json, "write the result to this file");
  app.add_option("--junit", relations.junit, "write it as JUnit XML to this file");
}

void add_gpu_check_options(CLI::App& app, GpuCheckArguments& gpu) {
  app.add_option("--seconds", gpu.seconds, "for everything (default 320)")
      ->check(CLI::PositiveNumber);
  app.add_option("--cases", gpu.cases, "random ones, at most, for each implementation")
      ->check(CLI::PositiveNumber);
  app.add_option("--seed", gpu.seed, "the same seed draws the same cases");
  app.add_option("--jobs", gpu.jobs, "threads that compute bounds (default: one a core)")
      ->check(CLI::Range(1, 1024));
  app.add_option("--json", gpu.json, "the result (default gpu-check.json)");
  app.add_option("--replay", gpu.replay, "run this case alone: the line of a report");
}

/// `emit` and `check`: problems for other programs, in files.
void add_emit_options(CLI::App& app, EmitArguments& emit) {
  app.add_option("folder", emit.directory, "where the files go: empty, or not there yet")
      ->required();
  app.add_option("--cases", emit.cases, "how many (default 100)")->check(CLI::Range(1, 100000));
  app.add_option("--seed", emit.seed, "the same seed draws the same cases");
  app.add_option("--impl", emit.implementations,
                 "rows of 'attnproof impls' whose problems are drawn (default: flash_forward, "
                 "flash_backward and flash_forward_fp32)")
      ->allow_extra_args(false);
  app.add_option("--dtype", emit.dtype, "fp16, bf16 or fp32 (default: all)");
  app.add_flag("--all-mods", emit.all_mods, "score mods too that do more than add to the score");
}

void add_check_options(CLI::App& app, CheckArguments& check) {
  app.add_option("path", check.path,
                 "a folder of 'attnproof emit' with what a program wrote, one of its cases, or a "
                 "file of tensors dumped from a run: q, k, v, o ...")
      ->required();
  app.add_option("--rounds", check.rounds, "what it may round: flash (default), fp32, tf32, eager");
  app.add_flag("--no-lse", check.no_lse, "the program gives no LSE");
  FileDescription& d = check.description;
  app.add_option("--mask", d.mask, "of dumped tensors: a name of 'show list', or an expression");
  app.add_option("--mod", d.mod, "of dumped tensors: the same for the score mod");
  app.add_option("--param", d.parameters, "a parameter of these names, such as width=8")
      ->allow_extra_args(false);
  app.add_option("--table", d.tables, "a table that the file lacks, such as 'slope[Hq]=alibi'")
      ->allow_extra_args(false);
  app.add_option("--scale", d.scale, "of the scores (default 1/sqrt(D))");
  app.add_option("--json", check.json, "write the result to this file");
  app.add_option("--junit", check.junit, "write it as JUnit XML to this file");
  app.add_option("--html", check.html,
                 "write a page of the file that is furthest off, with pictures of its errors");
}

/// A mod or mask that is a C++ type.
void add_type_options(CLI::App& app, TypeArguments& types) {
  app.add_option("--mod-file", types.mod_file, "a header with a score mod of yours");
  app.add_option("--mod-type,--type", types.mod_type, "its type, such as my::Mod");
  app.add_option("--mask-file", types.mask_file, "a header with a mask of yours");
  app.add_option("--mask-type", types.mask_type, "its type, such as my::Mask");
  app.add_option("--include", types.includes, "a folder that these headers include from")
      ->allow_extra_args(false);
  app.add_option("--cache", types.cache,
                 "where compiled types are kept (default: $XDG_CACHE_HOME or ~/.cache)");
}

int run(int argc, char** argv) {
  CLI::App app{"Attention kernels checked against what they should compute, on any CPU."};
  app.require_subcommand(1);

  FuzzArguments fuzz;
  CLI::App* fuzz_command_line = app.add_subcommand("fuzz", "fuzz the kernels against the oracle");
  fuzz_command_line->add_option("--cases", fuzz.cases, "stop after this many")
      ->check(CLI::PositiveNumber);
  fuzz_command_line->add_option("--seconds", fuzz.seconds, "stop after this time (default 60)")
      ->check(CLI::PositiveNumber);
  fuzz_command_line->add_option("--seed", fuzz.seed, "the same seed draws the same cases");
  fuzz_command_line->add_option("--jobs", fuzz.jobs, "threads (default: one a core)")
      ->check(CLI::Range(1, 1024));
  fuzz_command_line->add_option("--impl", fuzz.implementation,
                                "rows of 'impls', separated by commas, or all (default: those that "
                                "this program added to attnproof's, if any; else all)");
  fuzz_command_line->add_option("--engine", fuzz.engine, "warp (fast) or thread");
  fuzz_command_line->add_option("--dtype", fuzz.dtype, "fp16, bf16 or fp32 (default: all)");
  fuzz_command_line->add_option("--mod", fuzz.mod,
                                "a score mod, such as 'score + slope[h]*(kv - q)'");
  fuzz_command_line->add_option("--mask", fuzz.mask,
                                "a mask, such as 'q >= kv && doc[q] == doc[kv]'");
  fuzz_command_line
      ->add_option("--table", fuzz.tables,
                   "a table of these, such as 'slope[Hq]=uniform(0,0.5)', "
                   "'doc[Skv]=documents(40)' or 'slope[Hq]=FILE'")
      ->allow_extra_args(false);
  fuzz_command_line->add_option("--shape", fuzz.shape, "lengths to keep, such as 'Sq64 Skv65 D64'");
  fuzz_command_line->add_flag("--repeat", fuzz.repeat,
                              "run every case twice, in two orders (default: one in 16)");
  fuzz_command_line->add_option("--json", fuzz.json, "write the result to this file");
  fuzz_command_line->add_option("--html", fuzz.html,
                                "write a page of the failure, with pictures of its errors");
  fuzz_command_line->add_option("--junit", fuzz.junit, "write it as JUnit XML to this file");
  fuzz_command_line->add_option("--shard", fuzz.shard,
                                "i/n: run the i-th of n parts alone; --cases counts all of them");
  fuzz_command_line->add_option("--corpus", fuzz.corpus,
                                "a folder of cases of your own: replayed first, and what fails is "
                                "added to it");

  TypeArguments types;
  add_type_options(*fuzz_command_line, types);

  ExamineArguments examine;
  CLI::App* examine_command_line =
      app.add_subcommand("examine", "say what a mod or a mask is like, and what is wrong with it");
  examine_command_line->add_option("--mod", examine.mod, "a score mod, as an expression");
  examine_command_line->add_option("--mask", examine.mask, "a mask, as an expression");
  examine_command_line->add_option("--table", examine.tables, "a table of these")
      ->allow_extra_args(false);
  examine_command_line->add_option("--json", examine.json, "write the result to this file");
  examine_command_line->add_option("--junit", examine.junit, "write it as JUnit XML to this file");
  add_type_options(*examine_command_line, types);

  ReplayArguments replay;
  CLI::App* replay_command_line = app.add_subcommand("replay", "run one case again");
  replay_command_line->add_option("case", replay.line, "the line of a report")->required();
  replay_command_line->add_option("--engine", replay.engine, "warp (fast) or thread");
  replay_command_line->add_option("--planted", replay.planted, "commit this known fault");
  replay_command_line->add_flag("--repeat", replay.repeat, "run it twice and compare the bits");
  replay_command_line->add_option("--html", replay.html,
                                  "write a page of the run, with pictures of its errors");
  replay_command_line->add_option("--relation", replay.relation,
                                  "check this relation in place of the oracle");
  add_type_options(*replay_command_line, types);

  RelationsArguments relations;
  CLI::App* relations_command_line = app.add_subcommand(
      "relations", "check what runs must have to do with each other, at sizes beyond the oracle");
  add_relations_options(*relations_command_line, relations);

  FaultsArguments faults;
  CLI::App* faults_command_line =
      app.add_subcommand("faults", "plant known faults and see each one found");
  faults_command_line->add_option("--cases", faults.cases, "at most, for each fault")
      ->check(CLI::PositiveNumber);
  faults_command_line->add_option("--seed", faults.seed, "the same seed draws the same cases");
  faults_command_line->add_option("--jobs", faults.jobs, "threads (default: one a core)")
      ->check(CLI::Range(1, 1024));
  faults_command_line->add_option("--json", faults.json, "write the result to this file");
  faults_command_line->add_option("--junit", faults.junit, "write it as JUnit XML to this file");

  std::string implementations_json;
  CLI::App* implementations_command_line =
      app.add_subcommand("impls", "list the implementations and what each supports");
  implementations_command_line->add_option("--json", implementations_json, "write it to this file");

  ShowArguments show;
  CLI::App* show_command_line = app.add_subcommand("show", "look at a mask or a score mod");
  add_show_commands(*show_command_line, show);

  GpuCheckArguments gpu;
  CLI::App* gpu_command_line =
      app.add_subcommand("gpu-check", "check the kernels on this machine's GPU, and time them");
  add_gpu_check_options(*gpu_command_line, gpu);

  EmitArguments emit;
  CLI::App* emit_command_line =
      app.add_subcommand("emit", "write cases as files, for any other program to solve");
  add_emit_options(*emit_command_line, emit);

  CheckArguments check;
  CLI::App* check_command_line =
      app.add_subcommand("check", "judge what another program wrote, or tensors of a run");
  add_check_options(*check_command_line, check);

  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    const bool unknown = app.get_subcommands().empty() && argc > 1 && argv[1][0] != '-';
    complain(
        unknown
            ? fmt::format(
                  "'{}', expected one of fuzz, examine, replay, relations, faults, impls, show, "
                  "emit, check, gpu-check",
                  argv[1])
            : error.what());
    return bad_usage;
  }
  if (types.any() && !built_in_types()) {
    const RecordFiles files = *fuzz_command_line ? RecordFiles{fuzz.json, fuzz.junit, fuzz.html}
                                                 : RecordFiles{examine.json, examine.junit, {}};
    const auto nothing = [] { return RunRecord{"attnproof", {}}; };
    return recorded(files, nothing, [&] { become_built_tool(types, argv); });
  }
  if (*fuzz_command_line) return fuzz_command(fuzz);
  if (*examine_command_line) return examine_command(examine);
  if (*replay_command_line) return replay_command(replay);
  if (*relations_command_line) return relations_command(relations);
  if (*faults_command_line) return faults_command(faults);
  if (*show_command_line) return show_command(show);
  if (*emit_command_line) return emit_command(emit);
  if (*check_command_line) return check_command(check);
  if (*gpu_command_line) return gpu_check_command(gpu);
  return implementations_command(implementations_json);
}

}  // namespace

const std::string& tool_name() { return name_of_tool(); }

int tool_main(int argc, char** argv, const std::string& name,
              std::span<const Implementation> rows) {
  name_of_tool() = name;
  try {
    for (const Implementation& row : rows) add_implementation(row);
    return run(argc, argv);
  } catch (const std::invalid_argument& error) {
    complain(error.what());
    return bad_usage;
  } catch (const std::exception& error) {
    complain(error.what());
    return cannot_do;
  }
}

}  // namespace attn::fuzz
