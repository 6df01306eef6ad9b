#pragma once

#include <cstddef>

#include "optimized/simt/launch.h"
#include "reference/problem.h"

namespace attn {

/// Which tile a flash kernel runs with.
enum class TileChoice {
  automatic,   ///< the row of the default configuration (optimized/default_configuration.h)
  production,  ///< the large one of the implementation
  small,       ///< the small one: little problems still span several tiles
};

/// Memory that a pass may use beside its inputs and outputs; none: it is allocated for the call.
struct Workspace {
  void* data = nullptr;   ///< aligned to 256 bytes
  std::size_t bytes = 0;  ///< at `data`
};

/// Into how many parts the keys of a decode step may be split.
inline constexpr int most_splits = 64;

/// What every pass may be told beside its tensors, its mod and its mask.
struct AttentionOptions : Options {
  TileChoice tile = TileChoice::automatic;  ///< of the flash kernels
  /// Decode: into how many parts the keys of a sequence are split, up to `most_splits`; 0: chosen
  /// from the lengths and the mask. The result depends on it by rounding only.
  int splits = 0;
  /// Memory of the device that the launch may use beside the tensors, of at least the size that
  /// the pass was asked for (optimized/attention.h); none: it is allocated for the call.
  Workspace workspace;
  simt::LaunchOptions launch;  ///< of each kernel of the pass
};

}  // namespace attn
