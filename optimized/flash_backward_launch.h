#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "optimized/backward_rows.h"
#include "optimized/captured_gradient.h"
#include "optimized/flash_backward.h"
#include "optimized/flash_forward_launch.h"

namespace attn {
inline namespace ATTN_TARGET {

/// One backward pass on its way to the kernels.
template <class T, class Mod, class Mask>
class FlashBackwardLaunch {
 public:
  FlashBackwardLaunch(const AttentionArguments& call, const CheckedCall& checked, const Mod& mod,
                      const Mask& mask)
      : call_(call),
        problem_(checked.problem),
        by_queries_(call, checked),
        by_keys_(call, checked),
        args_{.mod = mod, .mask = mask},
        captured_(gradient_tensors(mod)) {
    // Without captured gradients this is what check_call has looked at.
    if (!captured_.empty())
      check_outputs(outputs_of(call, Pass::backward, captured_), inputs_of(call, Pass::backward));
    args_.q = head_rows<const T>(call.q);
    args_.k = head_rows<const T>(call.k);
    args_.v = head_rows<const T>(call.v);
    args_.d_o = head_rows<const T>(call.d_o);
    args_.dq = head_rows<T>(call.dq);
    args_.dk = head_rows<T>(call.dk);
    args_.dv = head_rows<T>(call.dv);
    args_.lse = view_of<const float, 3>(call.lse);
    args_.d = problem_.d;
    args_.d_v = problem_.dv;
    args_.scale = static_cast<float>(problem_.scale);
    args_.dropout = kernel_dropout(call.options);
  }

  template <class Tile>
  std::size_t workspace_bytes() {
    return plan<Tile>().bytes();
  }

  template <class Tile>
  void run() {
    const WorkspacePlan workspace = plan<Tile>();
    const CallMemory memory(call_, Pass::backward, problem_.sizes(), args_.mod, args_.mask);
    const PlacedWorkspace placed(workspace, call_.options);
    const Problem& p = problem_;
    const TensorView<float, 3> delta{
        delta_, {p.b, p.hq, p.sq}, {std::int64_t{p.hq} * p.sq, p.sq, 1}};
    args_.delta = delta;
    launch_delta(delta);
    const simt::LaunchOptions& options = call_.options.launch;
    const Sizes& size = queries_.sizes;
    args_.source = queries_;
    const std::int64_t q_blocks = tiles_of(size.sq, Tile::kBlockQ) * size.hq * size.b;
    if (q_blocks > 0)
      simt::launch({grid_blocks(q_blocks), 1, 1}, Tile::kThreads, Tile::kSharedBytes, options,
                   flash_backward_q_kernel<Tile, T, Mod, Mask>, args_);
    launch_captured<Tile>(q_blocks);
    args_.source = keys_;
    const std::int64_t kv_blocks = tiles_of(size.skv, Tile::kBlockQ) * size.hkv * size.b;
    if (kv_blocks > 0)
      simt::launch({grid_blocks(kv_blocks), Tile::kHead / Tile::kColumns, 1}, Tile::kThreads,
                   Tile::kSharedBytes, options, flash_backward_kv_kernel<Tile, T, Mod, Mask>,
                   args_);
    if (call_.d_sink != nullptr) launch_sink();
  }

 private:
  /// The floating tensors that the mod reads.
  std::vector<CapturedTensor> gradient_tensors(const Mod& mod) const {
    if (call_.d_captured.empty()) return {};
    std::vector<CapturedTensor> list = captured_of_mod(mod, problem_.sizes());
    if (list.size() != call_.d_captured.size() || list.size() > most_captured)
      throw std::invalid_argument("d_captured: " + std::to_string(call_.d_captured.size()) +
                                  " gradients, expected " + std::to_string(list.size()) +
                                  ", one for each tensor that the mod reads, at most " +
                                  std::to_string(most_captured));
    return list;
  }

  template <class Tile>
  WorkspacePlan plan() {
    if (call_.blocks != nullptr) {
      by_queries_.visit(retile(*call_.blocks, Tile::kBlockQ, Tile::kBlockKV));
      by_keys_.visit(transpose(planted(PlantedFault::M61)
                                   ? *call_.blocks
                                   : retile(*call_.blocks, Tile::kBlockKV, Tile::kBlockQ)));
    }
    WorkspacePlan plan;
    by_queries_.upload(plan, queries_);
    by_keys_.upload(plan, keys_);
    plan.scratch(delta_, std::int64_t{problem_.b} * problem_.hq * problem_.sq);
    sums_.count = static_cast<int>(captured_.size());
    entry_count_ = 0;
    for (int i = 0; i < sums_.count; ++i) {
      const CapturedTensor& t = captured_[i];
      CapturedSlot& slot = sums_.slots[i];
      slot.data = t.data;
      slot.rank = static_cast<int>(t.extents.size());
      slot.first = entry_count_;
      std::copy(t.extents.begin(), t.extents.end(), slot.extents);
      std::copy(t.strides.begin(), t.strides.end(), slot.strides);
      entry_count_ += entries_of(t);
    }
    plan.scratch(sums_.entries, entry_count_);
    return plan;
  }

  void launch_delta(TensorView<float, 3> delta) {
    const auto& p = problem_;
    const DeltaArgs<T> args{head_rows<const T>(call_.o),
                            args_.d_o,
                            view_of<const float, 3>(call_.d_lse),
                            delta,
                            p.b,
                            p.hq,
                            p.sq,
                            p.d,
                            p.dv};
    const std::int64_t rows = std::int64_t{p.b} * p.hq * p.sq;
    if (rows > 0)
      simt::launch({grid_blocks(tiles_of(rows, row_warps)), 1, 1}, row_warps * 32, 0,
                   call_.options.launch, delta_kernel<T>, args);
  }

  template <class Tile>
  void launch_captured(std::int64_t q_blocks) {
    constexpr int threads = 128;
    const simt::LaunchOptions& options = call_.options.launch;
    const auto grid = [](std::int64_t count) {
      return simt::Grid{grid_blocks(tiles_of(count, threads)), 1, 1};
    };
    if (entry_count_ == 0) return;
    simt::launch(grid(entry_count_), threads, 0, options, clear_captured_kernel, sums_,
                 entry_count_);
    for (const bool second : {false, true})
      if (q_blocks > 0)
        simt::launch({grid_blocks(q_blocks), 1, 1}, Tile::kThreads, Tile::kSharedBytes, options,
                     captured_gradient_kernel<Tile, T, Mod, Mask>,
                     CapturedGradientArgs<T, Mod, Mask>{args_, sums_, second});
    for (int i = 0; i < sums_.count; ++i) {
      const std::int64_t first = sums_.slots[i].first;
      const std::int64_t end = i + 1 < sums_.count ? sums_.slots[i + 1].first : entry_count_;
      if (end == first) continue;
      simt::launch(grid(end - first), threads, 0, options, captured_result_kernel,
                   CapturedResultArgs{sums_.entries + first, call_.d_captured[i], end - first});
    }
  }

  void launch_sink() {
    const auto& p = problem_;
    const SinkGradientArgs sink{*call_.options.sink, args_.lse, args_.delta, p.b, p.sq,
                                call_.d_sink};
    if (p.hq > 0)
      simt::launch({p.hq, 1, 1}, row_warps * 32, row_warps * 4, call_.options.launch,
                   sink_gradient_kernel, sink);
  }

  const AttentionArguments& call_;
  const Problem& problem_;
  SourcePlan by_queries_, by_keys_;
  Source queries_, keys_;
  FlashBackwardArgs<T, Mod, Mask> args_;
  float* delta_ = nullptr;
  std::vector<CapturedTensor> captured_;
  CapturedSums sums_;
  std::int64_t entry_count_ = 0;
};

/// Calls `with(tile)` for the tile that a backward pass runs with.
template <class F>
void with_backward_tile(const Problem& p, F with) {
  [[maybe_unused]] const int head = std::max(p.d, p.dv);
  check_compiled_head(p);
#if ATTN_LARGEST_HEAD > 128
  if (head > 128) return with(BackwardTile<256>{});
#endif
#if ATTN_LARGEST_HEAD > 64
  if (head > 64) return with(BackwardTile<128>{});
#endif
  return with(BackwardTile<64>{});
}

/// Flash attention backward; see AttentionArguments for what is read and written, and flash_forward
/// for the rest.
template <class T, class Mod, class Mask>
void flash_backward(const AttentionArguments& call, const Implementation& row, const Mod& mod,
                    const Mask& mask) {
  const CheckedCall checked = check_call(call, row);
  check_functors(mod, mask, checked);
  FlashBackwardLaunch<T, Mod, Mask> launch(call, checked, mod, mask);
  with_backward_tile(checked.problem, [&](auto tile) { launch.template run<decltype(tile)>(); });
}

/// Bytes of workspace that flash_backward takes.
/// @throws as flash_backward.
template <class T, class Mod, class Mask>
std::size_t flash_backward_workspace(const AttentionArguments& call, const Implementation& row,
                                     const Mod& mod, const Mask& mask) {
  const CheckedCall checked = check_call(call, row);
  FlashBackwardLaunch<T, Mod, Mask> launch(call, checked, mod, mask);
  std::size_t bytes = 0;
  with_backward_tile(checked.problem,
                     [&](auto tile) { bytes = launch.template workspace_bytes<decltype(tile)>(); });
  return bytes;
}

}  // namespace ATTN_TARGET
}  // namespace attn
