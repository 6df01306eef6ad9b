#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "optimized/forward_call.h"
#include "optimized/numerics.h"

/// The table of implementations. The fuzzer, the differential tests and the benches iterate it;
/// adding a kernel is adding a row.
namespace attn {

/// Where emulated code runs.
enum class Engine {
  warp,    ///< one fiber a warp, 32-lane values: fast
  thread,  ///< one fiber a thread: closest to the programming model
};
const char* name_of(Engine engine);

struct Implementation {
  std::string_view name;
  std::string_view what;
  std::string_view tiles;
  bool deterministic = true;
  /// Why a problem is not supported; nothing if it is.
  std::optional<std::string> (*refusal)(const Problem&) = nullptr;
  /// What it may round, for a storage type that it supports.
  Numerics (*numerics)(DType) = nullptr;
  /// Runs on the engine named, and nowhere else. Returns the name of the target that really ran.
  /// @throws as `flash_forward`; std::invalid_argument if the problem is not supported.
  std::string_view (*run)(const ForwardCall&, Engine) = nullptr;
  /// Runs the build that can commit planted faults (optimized/planted.h), on the warp engine.
  std::string_view (*run_planted)(const ForwardCall&) = nullptr;
};

std::span<const Implementation> implementations();
/// @throws std::invalid_argument if there is none of that name; the message lists them.
const Implementation& implementation_named(std::string_view name);

}  // namespace attn
