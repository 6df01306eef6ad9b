#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "optimized/attention_call.h"
#include "optimized/numerics.h"

/// The table of implementations. The fuzzer, the differential tests and the benches iterate it;
/// adding a kernel is adding a row.
namespace attn {

/// Where emulated code runs.
enum class Engine {
  warp,    ///< one fiber a warp, 32-lane values: fast
  thread,  ///< one fiber a thread: closest to the programming model
};
/// "warp" or "thread".
const char* name_of(Engine engine);

/// What an implementation computes.
enum class Pass { forward, backward };

/// How the queries and keys of a sequence lie in the tensors.
enum class Sequences {
  dense,   ///< a batch entry each
  packed,  ///< one after another: `cu_q`, `cu_kv`
  cached,  ///< keys: the filled rows of a cache: `lengths`
  paged,   ///< the same, in pages: `lengths`, `page_table`
};

/// Query rows and keys that a block of threads works on at a time.
struct TileSize {
  int q = 0, kv = 0;
};

/// A row of the table.
struct Implementation {
  std::string_view name;
  std::string_view what;
  Pass pass = Pass::forward;
  Sequences sequences = Sequences::dense;
  bool block_sparse = false;  ///< visits what `AttentionCall::blocks` says, and needs it
  TileSize production, small;
  bool deterministic = true;
  /// Why a problem is not supported; nothing if it is.
  std::optional<std::string> (*refusal)(const Problem&) = nullptr;
  /// What it may round, for a storage type that it supports.
  Numerics (*numerics)(DType) = nullptr;
  /// The kernels of each target, each in its own units.
  using Run = std::string_view (*)(const AttentionCall&, const Implementation&);
  Run warp = nullptr, thread = nullptr, warp_planted = nullptr;

  /// Runs on the engine named, and nowhere else. Returns the name of the target that really ran.
  /// @throws std::invalid_argument if an argument does not fit or the problem is not supported,
  ///     before any work; simt::CheckerFault if the checker finds a fault.
  std::string_view run(const AttentionCall& call, Engine engine) const {
    return (engine == Engine::warp ? warp : thread)(call, *this);
  }
  /// Runs the build that can commit planted faults (optimized/planted.h), on the warp engine.
  std::string_view run_planted(const AttentionCall& call) const {
    return warp_planted(call, *this);
  }
};

/// Keys come from a cache: decode.
inline bool has_cache(const Implementation& row) {
  return row.sequences == Sequences::cached || row.sequences == Sequences::paged;
}

/// All rows.
std::span<const Implementation> implementations();
/// @throws std::invalid_argument if there is none of that name; the message lists them.
const Implementation& implementation_named(std::string_view name);

}  // namespace attn
