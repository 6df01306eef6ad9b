#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>

#include "fuzz/commands.h"
#include "fuzz/corpus.h"
#include "fuzz/gpu_check.h"
#include "fuzz/gpu_watchdog.h"
#include "optimized/gpu.h"

namespace attn::fuzz {
namespace {

using nlohmann::json;
constexpr int no_gpu = 3;

/// The JSON file, kept up to date on disk. For several threads.
class ResultFile {
 public:
  explicit ResultFile(std::string path) : path_(std::move(path)) {
    put("tool", "attnproof gpu-check");
    put("status", "running");  // a bad path is bad usage, before any work
  }
  void put(const std::string& key, json value) {
    const std::lock_guard guard(lock_);
    result_[key] = std::move(value);
    write_file(path_, result_.dump(2) + "\n");
  }

 private:
  std::string path_;
  std::mutex lock_;
  json result_;
};

class GpuCheck {
 public:
  GpuCheck(Gpu& gpu, const GpuCheckArguments& arguments, ResultFile& file)
      : gpu_(gpu), arguments_(arguments), file_(file) {
    options_.on_device = run_on_linked_gpu;
  }

  /// Runs every part; true if all is clean.
  bool run() {
    part("conformance", [&] { return conformance(); });
    part("corpus", [&] { return replay_corpus(); });
    part("fuzz", [&] { return fuzz(0.5 * arguments_.seconds); });
    part("determinism", [&] { return determinism(0.6 * arguments_.seconds); });
    part("bench", [&] { return bench(0.95 * arguments_.seconds); });
    file_.put("seconds", elapsed());
    return clean_;
  }

  /// Runs one case.
  bool replay(const Case& c) {
    const Verdict v = run_case(c, options_);
    fmt::print("{}", report(c, v));
    file_.put("replay", json{{"case", to_text(c)},
                             {"outcome", name_of(v.outcome)},
                             {"target", std::string(v.target)}});
    return !is_failure(v.outcome);
  }

 private:
  using Clock = std::chrono::steady_clock;
  double elapsed() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  /// Prints and remembers what makes the run fail.
  void complain(const std::string& text) {
    clean_ = false;
    fmt::print("{}\n", text);
  }

  template <class Run>
  void part(const std::string& name, Run run) {
    file_.put("part", name);
    try {
      gpu_.info();  // a GPU that a kernel has broken is of no use any more
      file_.put(name, run());
    } catch (const std::exception& error) {
      complain(fmt::format("{}: {}", name, error.what()));
      file_.put(name, json{{"error", error.what()}});
    }
    fmt::print("{:<12} done after {:.0f} s\n", name, elapsed());
    std::fflush(stdout);
  }

  json conformance() {
    HostMemory memory;
    const auto expected = warp::run_conformance(memory);
    const auto differences = conformance_differences(gpu_.conformance(), expected);
    for (const std::string& line : differences) complain("conformance  " + line);
    return {{"primitives", expected.size()}, {"differences", differences}};
  }

  json replay_corpus() {
    std::uint64_t cases = 0, refused = 0;
    json failures = json::array();
    std::set<std::string> targets;
    for (const CorpusEntry& entry : corpus()) {
      if (entry.line.empty()) continue;
      ++cases;
      const Case c = parse_case(entry.line);
      const Verdict v = run_case(c, options_);
      targets.insert(std::string(v.target));
      refused += v.outcome == Outcome::refused;
      if (!is_failure(v.outcome)) continue;
      complain(fmt::format("corpus {} ({})\n{}", entry.id, entry.source, report(c, v)));
      failures.push_back({{"id", entry.id}, {"case", entry.line}, {"report", report(c, v)}});
    }
    return {{"cases", cases}, {"refused", refused}, {"failures", failures}, {"targets", targets}};
  }

  /// Shares the time until `end` among the rows of the table.
  json fuzz(double end) {
    json rows = json::array();
    const auto all = shipped_implementations();
    for (std::size_t i = 0; i < all.size(); ++i) {
      CampaignOptions o;
      o.seconds = std::max(0.5, (end - elapsed()) / static_cast<double>(all.size() - i));
      o.cases = arguments_.cases;
      o.seed = arguments_.seed;
      o.jobs = jobs_or_cores(arguments_.jobs);
      o.shrink_seconds = o.seconds / 2;
      o.fixed.implementations = {std::string(all[i].name)};
      o.run = options_;
      rows.push_back(fuzz_row(all[i], o, run_campaign(o)));
    }
    return rows;
  }

  json fuzz_row(const Implementation& implementation, const CampaignOptions& o,
                const CampaignResult& r) {
    const std::string name(implementation.name);
    json row{
        {"implementation", name}, {"cases", r.cases}, {"seconds", r.seconds}, {"seed", o.seed}};
    std::uint64_t judged = 0;
    for (const auto& [outcome, n] : r.outcomes) {
      row["outcomes"][name_of(outcome)] = n;
      if (outcome != Outcome::refused) judged += n;
    }
    fmt::print("  {:<24}{:>7} cases, {:.0f} a second\n", name, r.cases, r.cases_per_second());
    if (!r.refused.empty()) row["refused"] = {{"reason", r.refused}, {"case", r.refused_case}};
    if (judged == 0) complain(fmt::format("{}: nothing was checked: {}", name, r.refused));
    if (r.failure) {
      const std::string text = report(r.failure->shrunk, r.failure->verdict);
      complain(text);
      row["failure"] = {{"outcome", name_of(r.failure->verdict.outcome)},
                        {"case", to_text(r.failure->shrunk)},
                        {"original", to_text(r.failure->original)},
                        {"report", text}};
    }
    return row;
  }

  json determinism(double end) {
    const std::uint64_t most_cases = arguments_.cases > 0 ? arguments_.cases : 50;
    json rows = json::array();
    const auto all = shipped_implementations();
    for (std::size_t i = 0; i < all.size(); ++i) {
      const double stop = elapsed() + (end - elapsed()) / static_cast<double>(all.size() - i);
      Fixed fixed;
      fixed.implementations = {std::string(all[i].name)};
      std::uint64_t cases = 0;
      json different = json::array();
      for (std::uint64_t n = 0; n < most_cases && (cases == 0 || elapsed() < stop); ++n) {
        const Case c = drawn_case(fixed, arguments_.seed + 1, n).value();
        try {
          const bool same = run_raw(c, options_) == run_raw(c, options_);
          ++cases;
          if (same) continue;
          different.push_back(to_text(c));
          complain(fmt::format("two runs, different bits: '{}'", to_text(c)));
        } catch (const std::invalid_argument&) {
          continue;  // refused: another case is drawn
        }
      }
      rows.push_back({{"implementation", std::string(all[i].name)},
                      {"cases", cases},
                      {"different", different}});
    }
    return rows;
  }

  bool is_lost() {
    try {
      gpu_.info();
      return false;
    } catch (const std::runtime_error&) {
      return true;
    }
  }

  json bench(double end) {
    json rows = json::array();
    const std::vector<GpuBench> shapes = gpu_benches();
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      const double share = (end - elapsed()) / static_cast<double>(shapes.size() - i);
      rows.push_back(bench_row(shapes[i], std::min(2.0, share)));
      if (rows.back().contains("error") && is_lost()) break;
    }
    return rows;
  }

  json bench_row(const GpuBench& s, double seconds) {
    json row{{"name", s.name()},
             {"variant", name_of(s.variant)},
             {"pass", s.pass == Pass::forward ? "forward" : "backward"},
             {"decode", s.decode},
             {"dtype", name_of(s.dtype)},
             {"B", s.b},
             {"Hq", s.hq},
             {"Hkv", s.hkv},
             {"Sq", s.sq},
             {"Skv", s.skv},
             {"D", s.d},
             {"flops", s.flops()}};
    if (seconds <= 0) {
      row["skipped"] = "out of time";
      return row;
    }
    try {
      if (const std::optional<GpuTiming> t = gpu_.bench(s, seconds)) {
        const double tflops = s.flops() / t->mean_ms / 1e9;
        row["implementation"] = t->implementation;
        row["ms"] = {{"mean", t->mean_ms},
                     {"std", t->std_ms},
                     {"min", t->min_ms},
                     {"max", t->max_ms},
                     {"runs", t->runs}};
        row["tflops"] = tflops;
        row["peak_bytes"] = t->peak_bytes;
        fmt::print("  {:<64}{:>9.3f} ms {:>7.1f} TFLOPS\n", s.name(), t->mean_ms, tflops);
      } else {
        row["skipped"] = "does not fit in memory";
      }
    } catch (const std::exception& error) {
      complain(fmt::format("bench {}: {}", s.name(), error.what()));
      row["error"] = error.what();
    }
    return row;
  }

  Gpu& gpu_;
  const GpuCheckArguments& arguments_;
  ResultFile& file_;
  RunOptions options_;
  Clock::time_point start_ = Clock::now();
  bool clean_ = true;
};

json to_json(const GpuInfo& info) {
  return {{"name", info.name},
          {"compute_capability", fmt::format("{}.{}", info.major, info.minor)},
          {"multiprocessors", info.multiprocessors},
          {"memory_bytes", info.memory_bytes},
          {"driver", info.driver},
          {"runtime", info.runtime}};
}

}  // namespace

int gpu_check_command(const GpuCheckArguments& arguments) {
  if (!(arguments.seconds > 0))
    throw std::invalid_argument(
        fmt::format("--seconds: {}, expected more than 0", arguments.seconds));
  std::optional<Case> replay;
  if (!arguments.replay.empty()) replay = parse_case(arguments.replay);
  ResultFile file(arguments.json);
  Gpu* const gpu = linked_gpu();
  GpuInfo info;
  try {
    if (gpu == nullptr) throw std::runtime_error("no GPU: this attnproof was built without CUDA");
    info = gpu->info();
  } catch (const std::runtime_error& error) {
    fmt::print(stderr, "attnproof: {}\n", error.what());
    file.put("status", "no GPU");
    file.put("reason", error.what());
    return no_gpu;
  }
  fmt::print("{}, compute capability {}.{}\n", info.name, info.major, info.minor);
  file.put("gpu", to_json(info));
  const Watchdog watchdog(1.1 * arguments.seconds + 1, [&file] {
    file.put("status", "timed out");
    fmt::print(stderr, "attnproof: gpu-check: timed out; the last part named in the file hangs\n");
    std::_Exit(1);
  });
  GpuCheck check(*gpu, arguments, file);
  const bool clean = replay ? check.replay(*replay) : check.run();
  file.put("status", clean ? "clean" : "discrepancy");
  fmt::print("{}; the result is in {}\n", clean ? "no discrepancy" : "DISCREPANCY", arguments.json);
  return clean ? 0 : 1;
}

}  // namespace attn::fuzz
