#pragma once

#include <cstdint>

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
/// @throws std::invalid_argument if the case names an unknown implementation or its tables cannot be
///   made. What the contract refuses is an outcome, not an exception.
Verdict run_case(const Case& c, const RunOptions& options = {});

/// What a kernel wrote, for comparing two engines bit by bit.
struct RawOutputs {
  std::vector<std::byte> o, lse;
  std::string_view target;
  bool operator==(const RawOutputs& other) const { return o == other.o && lse == other.lse; }
};
/// @throws as `run_case`, std::invalid_argument also for what the contract refuses, and
///   simt::CheckerFault.
RawOutputs run_raw(const Case& c, const RunOptions& options);

}  // namespace attn::fuzz
