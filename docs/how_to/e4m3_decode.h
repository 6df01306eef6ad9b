#pragma once

#include <cstdint>
#include <limits>

#include "docs/how_to/e4m3.h"
#include "optimized/simt/simt.h"

/// The layer's part and the kernel of docs/how_to_dtype.md.
namespace how_to {
inline namespace ATTN_TARGET {

using attn::half;
using attn::simt::lane;

//! [layer]
/// The numbers of a lane's codes. Moved to where fp16 has its exponent and fraction, a code is 2^-8
/// of what it means, subnormals too; only NaN is not. sm_89 has `cvt.rn.f16x2.e4m3x2` for it.
ATTN_DEVICE lane<float> widened(lane<std::uint32_t> code) {
  const lane<std::uint32_t> magnitude = code & 0x7fu;
  lane<float> number, none;
  attn::simt::unpack2<half>((code & 0x80u) << 8 | magnitude << 7, number, none);
  return attn::select(magnitude == 0x7fu, std::numeric_limits<float>::quiet_NaN(), number * 256.0f);
}
//! [layer]

/// Element `at` of a tensor, as a kernel computes with it; 0 where `ok` is false.
ATTN_DEVICE lane<float> load(const e4m3* x, lane<std::int64_t> at, lane<bool> ok) {
  return widened(lane<std::uint32_t>(attn::simt::ldg_as<std::uint8_t>(x, at, ok)));
}
/// The same of fp16.
ATTN_DEVICE lane<float> load(const half* x, lane<std::int64_t> at, lane<bool> ok) {
  lane<float> number, none;
  attn::simt::unpack2<half>(lane<std::uint32_t>(attn::simt::ldg_as<std::uint16_t>(x, at, ok)),
                            number, none);
  return number;
}

//! [kernel]
/// One decode step: q [Hq][D], keys and values [Hkv][Skv][D], o [Hq][D], D at most 32; a warp a
/// query head. The cache is stored as half or as e4m3.
///
///   bytes of a key   2 sizeof(Stored) D: what a decode step waits for, half of it with E4M3
///   flops of a key   4 D
template <class Stored>
ATTN_KERNEL decode_step(const half* q, const Stored* k, const Stored* v, float* o, int group,
                        int keys, int d, float scale) {
  using namespace attn::simt;
  const int h = block_x();
  const std::int64_t head = std::int64_t{h / group} * keys * d;
  const lane<bool> channel = lane_id() < d;
  const lane<float> query = load(q, lane<std::int64_t>(lane_id()) + std::int64_t{h} * d, channel);
  float m = -attn::infinity;  // the same in all lanes
  lane<float> l = 0.0f, acc = 0.0f;
  for (int j = 0; j < keys; ++j) {
    const lane<std::int64_t> at = lane<std::int64_t>(lane_id()) + (head + std::int64_t{j} * d);
    lane<float> s = query * load(k, at, channel);
    for (int lanes = 16; lanes > 0; lanes /= 2) s += shfl_xor(s, lanes);
    // the five statements, for one key
    const float larger = uniform(vmax(s * scale, m));
    const lane<float> rescale = vexp2(lane<float>((m - larger) * 1.44269504f)),
                      p = vexp2((s * scale - larger) * 1.44269504f);
    l = l * rescale + p;
    acc = vfma(p, load(v, at, channel), acc * rescale);
    m = larger;
  }
  stg(o, lane<std::int64_t>(lane_id()) + std::int64_t{h} * d, acc / l, channel);
}
//! [kernel]

}  // namespace ATTN_TARGET
}  // namespace how_to
