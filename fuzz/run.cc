#include "fuzz/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "fuzz/inputs.h"
#include "fuzz/random.h"
#include "fuzz/setup.h"
#include "optimized/simt/fault.h"

namespace attn::fuzz {
namespace {

/// True unless the row says that it does not write this output.
bool gives(const Implementation& row, const std::string& output) {
  return row.lse || output != "LSE";
}

Expectation expected_of(const Setup& setup, BoundKind kind = BoundKind::working) {
  Expectation expected = setup.expected(kind);
  std::erase_if(expected.outputs, [&](const ExpectedOutput& output) {
    return !gives(setup.implementation(), output.name);
  });
  return expected;
}

/// What one run of a kernel left behind.
struct Run {
  std::vector<std::string> names;
  std::vector<Tensor<double, 4>> values;  ///< of the outputs, in order
  std::string trespass;                   ///< what was written beside them; empty: nothing
  std::string_view target;

  Run(const StoredPass& stored, const Implementation& row, std::string_view ran_on)
      : target(ran_on) {
    for (const StoredOutput& output : stored.outputs()) {
      if (!gives(row, output.name)) continue;
      names.push_back(output.name);
      values.push_back(output.load());
      if (const auto at = output.tensor.trespass(); at && trespass.empty())
        trespass =
            fmt::format("{}: element {} of the memory around it was written", output.name, *at);
    }
  }
};

/// `order` chooses among the schedules that belong to the case's seed.
simt::LaunchOptions schedule(const Case& c, int order) {
  simt::LaunchOptions launch;
  const std::uint64_t hash = hash_of(c.seed, 0x5c4ed, order);
  launch.schedule_seed = hash | 1;
  launch.lazy_copies = hash >> 32 & 3;  // early one time in four
  return launch;
}

/// Commits a planted fault while it lives.
class Planted {
 public:
  explicit Planted(PlantedFault fault) { active_fault() = fault; }
  ~Planted() { active_fault() = PlantedFault::none; }
  Planted(const Planted&) = delete;
  Planted& operator=(const Planted&) = delete;
};

Run run_kernel(const Setup& setup, const RunOptions& options, int order = 0,
               Workspace workspace = {}) {
  const StoredPass stored = setup.stored();
  std::vector<float*> d_captured;
  AttentionCall call = setup.call(stored, d_captured);
  call.options.workspace = workspace;
  if (options.random_schedule) call.options.launch = schedule(setup.c(), order);
  const Implementation& implementation = setup.implementation();
  if (!implementation.lse) call.lse = {};
  const bool elsewhere = options.on_device || options.planted != PlantedFault::none;
  if (setup.has_types() && elsewhere)
    throw std::invalid_argument(
        "case: a C++ type has kernels for the engines alone, expected "
        "expressions for planted faults and other devices");
  if (options.on_device)
    return Run(stored, implementation, options.on_device(implementation, call));
  if (options.planted == PlantedFault::none)
    return Run(stored, implementation, setup.run(call, options.engine));
  const Planted planted(options.planted);
  return Run(stored, implementation, implementation.run_planted(call));
}

std::vector<std::uint64_t> bits_of(const Tensor<double, 4>& values) {
  std::vector<std::uint64_t> bits;
  for (const double x : values.values())
    bits.push_back(
        std::bit_cast<std::uint64_t>(std::isnan(x) ? std::numeric_limits<double>::quiet_NaN() : x));
  return bits;
}

/// The first output whose bits are not the same in both runs; empty if there is none.
std::string first_difference(const Run& one, const Run& other) {
  for (std::size_t i = 0; i < one.values.size(); ++i) {
    const auto a = bits_of(one.values[i]), b = bits_of(other.values[i]);
    const auto at = std::mismatch(a.begin(), a.end(), b.begin()).first - a.begin();
    if (at < static_cast<std::ptrdiff_t>(a.size()))
      return fmt::format("{}: element {} is {:.9g} in one run and {:.9g} in another", one.names[i],
                         at, one.values[i].values()[at], other.values[i].values()[at]);
  }
  return {};
}

Verdict failed(Outcome outcome, const std::string& reason, const RunOptions& options) {
  Verdict v;
  v.outcome = outcome;
  v.reason = reason;
  v.target = options.on_device                       ? "device"
             : options.planted == PlantedFault::none ? name_of(options.engine)
                                                     : "warp_planted";
  return v;
}

bool is_run_twice(const Setup& setup, const RunOptions& options) {
  constexpr int one_in = 16;
  return setup.implementation().deterministic &&
         (options.repeat || hash_of(setup.c().seed, 0x2e9ea7) % one_in == 0);
}

Tensor<char, 4> attended(const Setup& setup) {
  const Case& c = setup.c();
  Tensor<char, 4> pairs({c.b, c.hq, c.sq, c.skv});
  for (int b = 0; b < c.b; ++b)
    for (int h = 0; h < c.hq; ++h)
      for (int q = 0; q < setup.inputs().sequences[b].queries.count; ++q)
        for (int kv = 0; kv < setup.inputs().sequences[b].keys.count; ++kv)
          pairs(b, h, q, kv) = setup.attends(b, h, q, kv);
  return pairs;
}

/// What was compared is left in `details`, if it is wanted.
Verdict run_and_judge(const Case& c, const RunOptions& options, Details* details) {
  try {
    const Setup setup(c);
    const Expectation expected = expected_of(setup);
    const Run run = run_kernel(setup, options);
    if (details) *details = {{}, expected, run.values, attended(setup)};
    if (!run.trespass.empty()) return failed(Outcome::checker_fault, run.trespass, options);
    Verdict verdict = judge(c, setup.inputs(), expected, run.values,
                            [&] { return expected_of(setup, BoundKind::rigorous); });
    verdict.target = run.target;
    if (verdict.outcome == Outcome::discrepancy || !is_run_twice(setup, options)) return verdict;
    const std::string difference = first_difference(run, run_kernel(setup, options, 1));
    if (!difference.empty()) return failed(Outcome::not_deterministic, difference, options);
    return verdict;
  } catch (const simt::CheckerFault& fault) {
    return failed(Outcome::checker_fault, fault.what(), options);
  } catch (const std::invalid_argument& refusal) {
    return failed(Outcome::refused, refusal.what(), options);
  }
}

}  // namespace

Verdict run_case(const Case& c, const RunOptions& options) {
  return run_and_judge(c, options, nullptr);
}

Details run_details(const Case& c, const RunOptions& options) {
  Details details;
  details.verdict = run_and_judge(c, options, &details);
  return details;
}

RawOutputs run_raw(const Case& c, const RunOptions& options) {
  const Setup setup(c);
  const Run run = run_kernel(setup, options);
  RawOutputs raw;
  for (std::size_t i = 0; i < run.values.size(); ++i)
    raw.outputs.emplace_back(run.names[i], bits_of(run.values[i]));
  raw.target = run.target;
  return raw;
}

PassInputs inputs_of(const Case& c) {
  const TableStore tables(c.tables, c.sizes(), c.seed);
  return make_inputs(c, functors_of(c, tables.tables())->ask());
}

Outputs run_on(const Case& c, const PassInputs& in, const RunOptions& options,
               Workspace workspace) {
  Outputs outputs;
  StoredForwardResult forward;
  if (implementation_named(c.implementation).pass == Pass::backward) {
    Case before = c;
    const std::size_t at = c.implementation.find("backward");
    if (at == std::string::npos)
      throw std::invalid_argument(fmt::format(
          "relation: {} is a backward pass whose forward pass is not known", c.implementation));
    before.implementation.replace(at, 8, "forward");
    before.d_lse = false;
    outputs = run_on(before, in, options, workspace);
    forward.o = outputs.at("O");
    forward.lse = Tensor<double, 3>({c.b, c.hq, c.sq});
    forward.lse.values() = outputs.at("LSE").values();
  }
  const Run run = run_kernel(Setup(c, in, std::move(forward)), options, 0, workspace);
  if (!run.trespass.empty())
    throw simt::CheckerFault(simt::FaultKind::out_of_bounds, "", 0, {}, run.trespass);
  for (std::size_t i = 0; i < run.names.size(); ++i) outputs[run.names[i]] = run.values[i];
  return outputs;
}

}  // namespace attn::fuzz
