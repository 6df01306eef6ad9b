// How a kernel is launched: the shape of the grid and the options of the CPU engines.
#pragma once
#include <cstdint>

namespace attn::simt {

/// Number of thread blocks along each axis. As on a GPU, y and z are at most 65535.
struct Grid {
  int x = 1, y = 1, z = 1;  ///< of the block's index
};

/// Options of one launch. All but `stream` are for the CPU engines; a GPU ignores them.
struct LaunchOptions {
  /// Operating-system threads that run blocks at the same time.
  int workers = 1;
  /// true: an asynchronous copy lands as late as the program allows, in its wait; false: at once.
  bool lazy_copies = true;
  /// 0: blocks and warps run in a fixed order; otherwise both orders are drawn from this seed.
  std::uint64_t schedule_seed = 0;
  /// false: no checker. Bounds and alignment of shared memory are still enforced; divergence and
  /// deadlock are still found; races, uninitialised reads and global memory are not looked at.
  bool check = true;
  /// The CUDA stream (a cudaStream_t) that a GPU launch is queued in. The CPU engines ignore it.
  void* stream = nullptr;
};

}  // namespace attn::simt
