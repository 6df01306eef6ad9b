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
  int q = 0, kv = 0;  ///< queries and keys
};

/// A row of the table.
struct Implementation {
  std::string_view name;                   ///< "flash_forward": as `--impl` takes it
  std::string_view what;                   ///< in a line, for people
  Pass pass = Pass::forward;               ///< what it computes
  Sequences sequences = Sequences::dense;  ///< how its tensors hold them
  bool block_sparse = false;   ///< visits what `AttentionCall::blocks` says, and needs it
  TileSize production, small;  ///< of TileChoice
  bool deterministic = true;   ///< two runs give the same bits
  /// The one mod and the one mask that it computes, as expressions without tables; empty: any, as
  /// the programs of the call.
  std::string_view mod, mask;
  /// What it does beside O = softmax(mod(scale Q K^T)) V. What it does not, nobody asks it for:
  /// `check_call` refuses it, and the fuzzer does not draw it.
  bool lse = true, row_max = true, sink = true, dropout = true;
  bool strides = true;  ///< any strides; false: contiguous [B, H, S, D]
  /// Why a problem is not supported; nothing if it is.
  std::optional<std::string> (*refusal)(const Problem&) = nullptr;
  /// What it may round, for a storage type that it supports.
  Numerics (*numerics)(DType) = nullptr;
  /// The kernels of each target, each in its own units; null: not built for it.
  using Run = std::string_view (*)(const AttentionCall&, const Implementation&);
  Run warp = nullptr, thread = nullptr, warp_planted = nullptr;  ///< by engine; with faults

  /// Runs on the engine named, and nowhere else. Returns the name of the target that really ran.
  /// @throws std::invalid_argument if an argument does not fit, the problem is not supported or
  ///     there is no build for the engine, before any work; simt::CheckerFault if the checker finds
  ///     a fault.
  std::string_view run(const AttentionCall& call, Engine engine) const;
  /// Runs the build that can commit planted faults (optimized/planted.h), on the warp engine.
  /// @throws as `run`.
  std::string_view run_planted(const AttentionCall& call) const;
  /// True if there is a build for the engine.
  bool runs_on(Engine engine) const { return (engine == Engine::warp ? warp : thread) != nullptr; }
};

/// Keys come from a cache: decode.
inline bool has_cache(const Implementation& row) {
  return row.sequences == Sequences::cached || row.sequences == Sequences::paged;
}

/// All rows: the shipped ones, then those that were added.
std::span<const Implementation> implementations();
/// The rows of attnproof itself; these have builds that commit planted faults, and kernels for
/// GPUs.
std::span<const Implementation> shipped_implementations();
/// Adds a row of the user's, at the start of a program: rows and spans given before are no longer
/// valid, and no other thread may use the table meanwhile. Its texts are not copied.
/// @throws std::invalid_argument naming the member that is missing, malformed or taken.
void add_implementation(const Implementation& row);
/// @throws std::invalid_argument if there is none of that name; the message lists them.
const Implementation& implementation_named(std::string_view name);

}  // namespace attn
