#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fuzz/pass_inputs.h"
#include "fuzz/verdict.h"
#include "optimized/attention_options.h"
#include "optimized/implementations.h"
#include "optimized/planted_faults.h"

namespace attn::fuzz {

/// Where and how a case is run.
struct RunOptions {
  Engine engine = Engine::warp;  ///< of the shipped kernels
  /// Other than `none`: the build with planted faults, on the warp engine, committing this one.
  PlantedFault planted = PlantedFault::none;
  /// Copies land late or early and blocks run in an order drawn from the case's seed; false: copies
  /// late, fixed order.
  bool random_schedule = true;
  /// Run twice, in two orders, and compare the bits. One case in 16 is run twice anyway.
  bool repeat = false;
  /// Runs the call elsewhere than on an engine; returns the name of the target that really ran.
  std::string_view (*on_device)(const Implementation&, const AttentionCall&) = nullptr;
};

/// Runs one case: makes its inputs, bounds what a correct kernel may give, runs the kernel in
/// poisoned memory under the checker, and judges every output.
/// What is refused (an unknown implementation, tables that cannot be made, anything against the
/// contract) is an outcome, not an exception.
Verdict run_case(const Case& c, const RunOptions& options = {});

/// One run with all that was compared.
struct Details {
  Verdict verdict;                     ///< what `run_case` gives
  Expectation expected;                ///< of every output
  std::vector<Tensor<double, 4>> got;  ///< the outputs; empty if the kernel was stopped or refused
  Tensor<char, 4> attends;             ///< [B, Hq, Sq, Skv]: 1 where the mask lets a pair attend
};
/// Like `run_case`, for a page about the case (fuzz/report_html.h).
Details run_details(const Case& c, const RunOptions& options = {});

/// What a kernel wrote, for comparing two runs bit by bit. A NaN has no promised sign or payload,
/// so that all of them are one.
struct RawOutputs {
  /// Name and values, widened to fp64, as bits; of every output, in order.
  std::vector<std::pair<std::string, std::vector<std::uint64_t>>> outputs;
  std::string_view target;  ///< where the kernel really ran
  /// The same bits, wherever they were made.
  bool operator==(const RawOutputs& other) const { return outputs == other.outputs; }
};
/// @throws as `run_case`, std::invalid_argument also for what the contract refuses, and
///   simt::CheckerFault.
RawOutputs run_raw(const Case& c, const RunOptions& options);

/// The inputs of a case, without any pass over its scores.
PassInputs inputs_of(const Case& c);
/// Outputs by name: "O", "LSE", "dQ", ... A backward pass starts from what the forward kernel of
/// its kind gives, and its outputs are those of both.
using Outputs = std::map<std::string, Tensor<double, 4>>;
/// Runs the kernel of a case on other inputs than its own.
/// @throws std::invalid_argument for what the contract refuses, and simt::CheckerFault
Outputs run_on(const Case& c, const PassInputs& in, const RunOptions& options,
               Workspace workspace = {});

}  // namespace attn::fuzz
