#pragma once

#include <algorithm>

#include "optimized/call_check.h"
#include "optimized/fp32_forward.h"
#include "optimized/launch_support.h"

namespace attn {
inline namespace ATTN_TARGET {

/// Launches the kernel for a call that has been checked; `Products`: FMA or TF32.
template <class Tile, class Products, class Mod, class Mask>
void launch_fp32_forward(const Fp32ForwardArgs<Mod, Mask>& args,
                         const simt::LaunchOptions& options) {
  const std::int64_t blocks = tiles_of(args.sizes.sq, Tile::kBlockQ) * args.sizes.hq * args.sizes.b;
  simt::launch({grid_blocks(blocks), 1, 1}, Tile::kThreads, fp32_forward_shared_bytes<Tile>,
               options, fp32_forward_kernel<Tile, Products, Mod, Mask>, args);
}

/// All that fp32_forward and tf32_forward do: checks, then a launch with the tile of the smallest
/// head size that D and Dv fit into.
template <class Products, class Mod, class Mask>
void forward_in_fp32(const AttentionArguments& given, const Implementation& row, const Mod& mod,
                     const Mask& mask) {
  const AttentionArguments call = as_planted(given);
  const CheckedCall checked = check_call(call, row);
  const Problem& problem = checked.problem;
  check_functors(mod, mask, checked);
  if (problem.b == 0 || problem.hq == 0 || problem.sq == 0) return;  // nothing to write

  const Fp32ForwardArgs<Mod, Mask> args{head_rows<const float>(call.q),
                                        head_rows<const float>(call.k),
                                        head_rows<const float>(call.v),
                                        view_of<float, 4>(call.o),
                                        view_of<float, 3>(call.lse),
                                        view_of<float, 3>(call.row_max),
                                        call.options.sink.value_or(TensorView<const float, 1>{}),
                                        problem.sizes(),
                                        problem.d,
                                        problem.dv,
                                        static_cast<float>(problem.scale),
                                        kernel_dropout(call.options),
                                        mod,
                                        mask};
  const CallMemory memory(call, Pass::forward, problem.sizes(), mod, mask);
  const int head = std::max(problem.d, problem.dv);
  if (head <= 64)
    launch_fp32_forward<FlashTile<64, 32, 64>, Products>(args, call.options.launch);
  else if (head <= 128)
    launch_fp32_forward<FlashTile<64, 32, 128>, Products>(args, call.options.launch);
  else  // half the keys: no register is spilled
    launch_fp32_forward<FlashTile<64, 16, 256>, Products>(args, call.options.launch);
}

/// Attention forward in fp32 by plain fused multiply-adds, with any mod and mask; see
/// AttentionArguments for what is read and written. All tensors are fp32, with any strides; D and
/// Dv are at most 256. On a CPU engine the launch runs under the checker unless
/// `options.launch.check` is false.
///
/// @throws std::invalid_argument if an argument does not fit, before any work.
/// @throws simt::CheckerFault if the checker finds a fault.
template <class Mod, class Mask>
void fp32_forward(const AttentionArguments& call, const Implementation& row, const Mod& mod,
                  const Mask& mask) {
  forward_in_fp32<FmaProducts>(call, row, mod, mask);
}

}  // namespace ATTN_TARGET
}  // namespace attn
