#pragma once

#include "optimized/simt/launch.h"
#include "reference/problem.h"

namespace attn {

/// Which tile a flash kernel runs with.
enum class TileChoice {
  automatic,   ///< `small` up to 64 queries, else `production`
  production,  ///< 128 x 64
  small,       ///< 64 x 32: little problems still span several tiles
};

struct ForwardOptions : Options {
  TileChoice tile = TileChoice::automatic;
  simt::LaunchOptions launch;  ///< of the CPU engines
};

}  // namespace attn
