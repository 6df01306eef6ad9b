#pragma once

#include "optimized/flash_backward.h"
#include "optimized/flash_forward.h"
#include "optimized/fp32_forward.h"

/// The dynamic shared memory of kernels, which no compiler knows: it is an argument of the launch.
/// The unit that includes this has functions in its symbol table whose names say it, by the name of
/// the kernel and its tile; optimized/cuda_report.sh reads them.
namespace attn {
inline namespace ATTN_TARGET {

/// Each says by its name which kernel, and by `bytes` how much.
/// @{
template <class Tile, int bytes>
void shared_bytes_of_flash_forward() {}
template <class Tile, int bytes>
void shared_bytes_of_flash_backward() {}  ///< of both its kernels
template <class Tile, int bytes>
void shared_bytes_of_captured_gradient() {}  ///< the same bytes
template <class Tile, int bytes>
void shared_bytes_of_fp32_forward() {}  ///< of TF32 too
/// @}

#define ATTN_SHARED_BYTES(kernel, bytes, ...) \
  template void shared_bytes_of_##kernel<__VA_ARGS__, bytes<__VA_ARGS__>>();
ATTN_SHARED_BYTES(flash_forward, flash_forward_shared_bytes, FlashTile<64, 32, 64>)
ATTN_SHARED_BYTES(flash_forward, flash_forward_shared_bytes, FlashTile<64, 32, 128>)
ATTN_SHARED_BYTES(flash_forward, flash_forward_shared_bytes, FlashTile<64, 32, 256>)
ATTN_SHARED_BYTES(flash_forward, flash_forward_shared_bytes, FlashTile<128, 64, 64>)
ATTN_SHARED_BYTES(flash_forward, flash_forward_shared_bytes, FlashTile<128, 64, 128>)
ATTN_SHARED_BYTES(fp32_forward, fp32_forward_shared_bytes, FlashTile<64, 32, 64>)
ATTN_SHARED_BYTES(fp32_forward, fp32_forward_shared_bytes, FlashTile<64, 32, 128>)
ATTN_SHARED_BYTES(fp32_forward, fp32_forward_shared_bytes, FlashTile<64, 16, 256>)

/// Both kernels of the backward pass need the same.
template <class Tile>
inline constexpr int backward_shared_bytes = Tile::kSharedBytes;
ATTN_SHARED_BYTES(flash_backward, backward_shared_bytes, BackwardTile<64>)
ATTN_SHARED_BYTES(flash_backward, backward_shared_bytes, BackwardTile<128>)
ATTN_SHARED_BYTES(flash_backward, backward_shared_bytes, BackwardTile<256>)
ATTN_SHARED_BYTES(captured_gradient, backward_shared_bytes, BackwardTile<64>)
ATTN_SHARED_BYTES(captured_gradient, backward_shared_bytes, BackwardTile<128>)
ATTN_SHARED_BYTES(captured_gradient, backward_shared_bytes, BackwardTile<256>)
#undef ATTN_SHARED_BYTES

}  // namespace ATTN_TARGET
}  // namespace attn
