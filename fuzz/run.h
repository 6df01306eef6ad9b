#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "fuzz/verdict.h"
#include "optimized/implementations.h"
#include "optimized/planted_faults.h"

namespace attn::fuzz {

/// Where and how a case is run.
struct RunOptions {
  Engine engine = Engine::warp;
  /// Other than `none`: the build with planted faults, on the warp engine, committing this one.
  PlantedFault planted = PlantedFault::none;
  /// Copies land late or early and blocks run in an order drawn from the case's seed; false: copies
  /// late, fixed order.
  bool random_schedule = true;
};

/// Runs one case: makes its inputs, bounds what a correct kernel may give, runs the kernel in
/// poisoned memory under the checker, and judges.
/// What is refused (an unknown implementation, tables that cannot be made, anything against the
/// contract) is an outcome, not an exception.
Verdict run_case(const Case& c, const RunOptions& options = {});

/// What a kernel wrote, for comparing two engines bit by bit. A NaN has no promised sign or
/// payload, so that all of them are one.
struct RawOutputs {
  std::vector<std::uint64_t> o, lse;  ///< the values, widened to fp64, as bits
  std::string_view target;
  bool operator==(const RawOutputs& other) const { return o == other.o && lse == other.lse; }
};
/// @throws as `run_case`, std::invalid_argument also for what the contract refuses, and
///   simt::CheckerFault.
RawOutputs run_raw(const Case& c, const RunOptions& options);

}  // namespace attn::fuzz
