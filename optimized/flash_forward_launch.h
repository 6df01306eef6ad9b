#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "masks/check.h"
#include "mods/check.h"
#include "optimized/flash_forward.h"
#include "optimized/forward_options.h"
#include "optimized/registered_memory.h"
#include "reference/problem.h"

namespace attn {

/// The largest head size of the flash kernels.
inline constexpr int largest_flash_head = 128;

/// True if every row of the view starts on 16 bytes and holds whole 16-byte chunks.
template <class T>
bool rows_are_vectors(const TensorView<T, 4>& x) {
  constexpr std::int64_t chunk = 16 / sizeof(T);
  return x.strides[3] == 1 && x.extents[3] % chunk == 0 && x.strides[0] % chunk == 0 &&
         x.strides[1] % chunk == 0 && x.strides[2] % chunk == 0 &&
         reinterpret_cast<std::uintptr_t>(x.data) % 16 == 0;
}

inline namespace ATTN_TARGET {

template <class Tile, class T, class Mod, class Mask>
void launch_flash_forward(const FlashForwardArgs<T, Mod, Mask>& args,
                          const simt::LaunchOptions& options) {
  const std::int64_t q_tiles = (args.sizes.sq + Tile::kBlockQ - 1) / Tile::kBlockQ;
  const std::int64_t blocks = q_tiles * args.sizes.hq * args.sizes.b;
  if (blocks > std::numeric_limits<std::int32_t>::max())
    throw std::invalid_argument("q: " + std::to_string(blocks) +
                                " thread blocks, expected fewer than 2^31");
  simt::launch({static_cast<int>(blocks), 1, 1}, Tile::kThreads, Tile::kSharedBytes, options,
               flash_forward_kernel<Tile, T, Mod, Mask>, args);
}

/// Flash attention forward with any mod and mask: writes O [B, Hq, Sq, Dv] and
/// LSE [B, Hq, Sq] (natural logarithm).
///
/// `T` is half or bfloat16; q [B, Hq, Sq, D], k [B, Hkv, Skv, D], v [B, Hkv, Skv, Dv] with any
/// strides, D and Dv up to 128; Hq is a multiple of Hkv. On a CPU engine the launch runs under the
/// checker unless `options.launch.check` is false.
///
/// @throws std::invalid_argument if an argument does not fit, before any work.
/// @throws simt::CheckerFault if the checker finds a fault.
template <class T, class Mod, class Mask>
void flash_forward(std::type_identity_t<TensorView<const T, 4>> q,
                   std::type_identity_t<TensorView<const T, 4>> k,
                   std::type_identity_t<TensorView<const T, 4>> v, TensorView<T, 4> o,
                   TensorView<float, 3> lse, const Mod& mod, const Mask& mask,
                   const ForwardOptions& options = {}) {
  Options scale_from = options;
  if (planted(PlantedFault::M15) && !scale_from.scale)
    scale_from.scale = 1 / std::sqrt(q.extents[3] <= 64 ? 64.0 : 128.0);
  const Problem problem = make_problem(q, k, v, scale_from);
  const TensorInfo inputs[] = {describe("q", q), describe("k", k), describe("v", v)};
  const TensorInfo outputs[] = {describe("o", o), describe("lse", lse)};
  check_tensor(outputs[0], problem.o_extents());
  check_tensor(outputs[1], problem.lse_extents());
  check_outputs(outputs, inputs);
  if (std::max(problem.d, problem.dv) > largest_flash_head)
    throw std::invalid_argument("head size: D = " + std::to_string(problem.d) +
                                ", Dv = " + std::to_string(problem.dv) + ", expected at most " +
                                std::to_string(largest_flash_head) + " in flash_forward");
  refuse_sink_and_dropout(options, "flash_forward");
  const Sizes sizes = problem.sizes();
  check_mod(mod, sizes);
  check_mask(mask, sizes);
  check_index_arithmetic(mod, problem);
  check_index_arithmetic(mask, problem);
  if (problem.b == 0 || problem.hq == 0 || problem.sq == 0) return;  // nothing to write

  const FlashForwardArgs<T, Mod, Mask> args{{q, rows_are_vectors(q)},
                                            {k, rows_are_vectors(k)},
                                            {v, rows_are_vectors(v)},
                                            {o, rows_are_vectors(o)},
                                            lse,
                                            sizes,
                                            problem.d,
                                            problem.dv,
                                            static_cast<float>(problem.scale),
                                            mod,
                                            mask};
#if !defined(__CUDACC__)
  const AccessedTensor accessed[] = {{inputs[0]},
                                     {inputs[1]},
                                     {inputs[2]},
                                     {outputs[0], simt::Access::output},
                                     {outputs[1], simt::Access::output}};
  const simt::Registration memory = register_tensors(accessed, captured_tensors(mod, mask, sizes));
#endif
  const bool small = options.tile == TileChoice::small ||
                     (options.tile == TileChoice::automatic && problem.sq <= 64);
  const bool narrow = std::max(problem.d, problem.dv) <= 64;
  if (small && narrow)
    launch_flash_forward<FlashTile<64, 32, 64>>(args, options.launch);
  else if (small)
    launch_flash_forward<FlashTile<64, 32, 128>>(args, options.launch);
  else if (narrow)
    launch_flash_forward<FlashTile<128, 64, 64>>(args, options.launch);
  else
    launch_flash_forward<FlashTile<128, 64, 128>>(args, options.launch);
}

}  // namespace ATTN_TARGET
}  // namespace attn
