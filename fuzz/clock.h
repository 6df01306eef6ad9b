#pragma once

#include <chrono>

namespace attn::fuzz {

/// What durations are measured with: it never goes back.
using Clock = std::chrono::steady_clock;

/// Seconds of real time since `start`.
inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace attn::fuzz
