// Types that all targets share.
#pragma once
#include <cstdint>

namespace attn::simt {

/// The widest unit a thread moves at once: 16 bytes.
struct alignas(16) Vec16 {
  std::uint32_t word[4];  ///< in the order of memory
};

/// What vexp2 promises on every target: |2^x (1 + e)| with |e| at most this (ex2.approx.ftz).
inline constexpr double kExp2RelativeError = 0x1p-22;

}  // namespace attn::simt
