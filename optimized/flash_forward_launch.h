#pragma once

#include <cstdint>
#include <type_traits>

#include "optimized/combine_splits.h"
#include "optimized/default_configuration.h"
#include "optimized/flash_forward.h"
#include "optimized/launch_support.h"

namespace attn {

inline namespace ATTN_TARGET {

/// One forward pass on its way to the kernels: everything but the choice of the tile.
template <class T, class Mod, class Mask>
class FlashForwardLaunch {
 public:
  FlashForwardLaunch(const AttentionArguments& call, const CheckedCall& checked,
                     const Implementation& row, const Mod& mod, const Mask& mask)
      : call_(call),
        checked_(checked),
        row_(row),
        source_(call, checked),
        args_{.mod = mod, .mask = mask} {
    const Problem& p = checked.problem;
    args_.q = head_rows<const T>(call.q);
    args_.k = head_rows<const T>(call.k);
    args_.v = head_rows<const T>(call.v);
    args_.o = head_rows<T>(call.o);
    args_.lse = view_of<float, 3>(call.lse);
    args_.row_max = view_of<float, 3>(call.row_max);
    if (call.options.sink) args_.sink = *call.options.sink;
    args_.d = p.d;
    args_.dv = p.dv;
    args_.scale = static_cast<float>(p.scale);
    args_.heads_per_tile = decodes() ? p.group() : 1;
    if (planted(PlantedFault::M28) && decodes() && p.hq % 2 == 0)
      args_.heads_per_tile = p.hq % 4 == 0 ? 4 : 2;
    args_.dropout = kernel_dropout(call.options);
  }

  /// Bytes of workspace that a launch with this tile takes.
  template <class Tile>
  std::size_t workspace_bytes(int multiprocessors) {
    return plan<Tile>(multiprocessors).bytes();
  }

  template <class Tile>
  void run(int multiprocessors) {
    const WorkspacePlan workspace = plan<Tile>(multiprocessors);
    const CallMemory memory(call_, Pass::forward, checked_.problem.sizes(), args_.mod, args_.mask);
    const PlacedWorkspace placed(workspace, call_.options);
    const simt::LaunchOptions& options = call_.options.launch;
    simt::launch({grid_blocks(blocks<Tile>()), args_.split.splits, 1}, Tile::kThreads,
                 flash_forward_shared_bytes<Tile>, options,
                 flash_forward_kernel<Tile, T, Mod, Mask>, args_);
    if (args_.split.splits == 1) return;
    const CombineArgs<T> combine{args_.split,        args_.o, args_.lse, args_.row_max, args_.sink,
                                 args_.source.sizes, args_.dv};
    const std::int64_t rows = split_rows();
    simt::launch({grid_blocks(tiles_of(rows, combine_warps)), 1, 1}, combine_warps * 32, 0, options,
                 combine_splits_kernel<T>, combine);
  }

 private:
  bool decodes() const { return has_cache(row_); }
  std::int64_t split_rows() const {
    const Sizes& s = args_.source.sizes;
    return std::int64_t{s.b} * s.hq * s.sq;
  }
  template <class Tile>
  std::int64_t q_tiles() const {
    return tiles_of(std::int64_t{args_.source.sizes.sq} * args_.heads_per_tile, Tile::kBlockQ);
  }
  template <class Tile>
  std::int64_t blocks() const {
    const Sizes& s = args_.source.sizes;
    return q_tiles<Tile>() * (s.hq / args_.heads_per_tile) * s.b;
  }

  /// Names the parts of the workspace, and splits the keys.
  template <class Tile>
  WorkspacePlan plan(int multiprocessors) {
    if (call_.blocks != nullptr)
      source_.visit(retile(*call_.blocks, Tile::kBlockQ, Tile::kBlockKV));
    if (decodes()) visit_what_queries_see<Tile>();
    WorkspacePlan plan;
    source_.upload(plan, args_.source);
    if (!decodes()) return plan;
    const int longest = largest_sizes(checked_.sequences).skv;
    const int tiles = source_.most_tiles(static_cast<int>(tiles_of(longest, Tile::kBlockKV)));
    args_.split.splits = call_.options.splits > 0
                             ? call_.options.splits
                             : chosen_splits(blocks<Tile>(), tiles, multiprocessors);
    if (args_.split.splits == 1) return plan;
    const std::int64_t parts = args_.split.splits * split_rows();
    plan.scratch(args_.split.o, parts * args_.dv);
    plan.scratch(args_.split.lse, parts);
    plan.scratch(args_.split.max, parts);
    return plan;
  }

  /// Decode takes no block mask: rows are few, so the mask is asked for the tiles they see.
  template <class Tile>
  void visit_what_queries_see() {
    if (planted(PlantedFault::M28)) return;
    const int heads = args_.heads_per_tile, groups = checked_.problem.hq / heads;
    const auto tiles =
        static_cast<int>(tiles_of(std::int64_t{checked_.problem.sq} * heads, Tile::kBlockQ));
    std::vector<std::int64_t> row_begin{0};
    std::vector<BlockSpan> spans;
    for (const Sequence& s : checked_.sequences)
      for (int group = 0; group < groups; ++group)
        for (int tile = 0; tile < tiles; ++tile) {
          const int first = tile * Tile::kBlockQ / heads;
          const int last =
              std::min(s.queries.count, ((tile + 1) * Tile::kBlockQ - 1) / heads + 1) - 1;
          const std::vector<BlockSpan> row =
              visible_tiles(args_.mask, s, {group * heads, (group + 1) * heads - 1},
                            {first + s.sizes.q_offset, last + s.sizes.q_offset}, Tile::kBlockKV);
          spans.insert(spans.end(), row.begin(), row.end());
          row_begin.push_back(static_cast<std::int64_t>(spans.size()));
        }
    source_.visit(std::move(row_begin), spans, std::int64_t{groups} * tiles, tiles);
  }

  const AttentionArguments& call_;
  const CheckedCall& checked_;
  const Implementation& row_;
  SourcePlan source_;
  FlashForwardArgs<T, Mod, Mask> args_;
};

/// Calls `with(tile)` for the tile that a forward pass runs with.
template <class F>
void with_forward_tile(const AttentionOptions& options, bool cache, const Problem& p, F with) {
  [[maybe_unused]] const int head = std::max(p.d, p.dv);
  const bool small = chosen_tile(options, Pass::forward, cache, p) == TileChoice::small;
  check_compiled_head(p);
#if ATTN_LARGEST_HEAD > 128
  if (head > 128) return with(FlashTile<64, 32, 256>{});
#endif
#if ATTN_LARGEST_HEAD > 64
  if (head > 64) return small ? with(FlashTile<64, 32, 128>{}) : with(FlashTile<128, 64, 128>{});
#endif
  return small ? with(FlashTile<64, 32, 64>{}) : with(FlashTile<128, 64, 64>{});
}

/// Flash attention forward with any mod and mask, of the sequences that `row` of the table stands
/// for; see AttentionArguments for what is read and written. On a CPU engine the launch runs under
/// the checker unless `options.launch.check` is false.
///
/// @tparam T the storage type, half or bfloat16
/// @throws std::invalid_argument if an argument does not fit, before any work.
/// @throws simt::CheckerFault if the checker finds a fault.
template <class T, class Mod, class Mask>
void flash_forward(const AttentionArguments& call, const Implementation& row, const Mod& mod,
                   const Mask& mask) {
  const AttentionArguments given = as_planted(call);
  const CheckedCall checked = check_call(given, row);
  check_functors(mod, mask, checked);
  const Problem& p = checked.problem;
  if (p.b == 0 || p.hq == 0 || p.sq == 0) return;  // nothing to write
  FlashForwardLaunch<T, Mod, Mask> launch(given, checked, row, mod, mask);
  with_forward_tile(given.options, has_cache(row), p,
                    [&](auto tile) { launch.template run<decltype(tile)>(multiprocessors()); });
}

/// Bytes of workspace that flash_forward takes.
/// @throws as flash_forward.
template <class T, class Mod, class Mask>
std::size_t flash_forward_workspace(const AttentionArguments& call, const Implementation& row,
                                    const Mod& mod, const Mask& mask) {
  const CheckedCall checked = check_call(call, row);
  const Problem& p = checked.problem;
  if (p.b == 0 || p.hq == 0 || p.sq == 0) return 0;
  FlashForwardLaunch<T, Mod, Mask> launch(call, checked, row, mod, mask);
  std::size_t bytes = 0;
  with_forward_tile(call.options, has_cache(row), p, [&](auto tile) {
    bytes = launch.template workspace_bytes<decltype(tile)>(multiprocessors());
  });
  return bytes;
}

}  // namespace ATTN_TARGET
}  // namespace attn
