#pragma once

#include <cmath>
#include <cstdint>

#include "mods/lang/philox.h"
#include "optimized/simt/simt.h"
#include "reference/problem.h"

namespace attn {

/// Dropout as kernels take it: a pair is kept where its random word is at least the threshold.
struct KernelDropout {
  std::uint64_t threshold = 0, seed = 0;
  float kept = 1;  ///< what a kept weight is multiplied with: 1 / (1 - p)

  KernelDropout() = default;
  explicit KernelDropout(const Dropout& dropout)
      : threshold(static_cast<std::uint64_t>(std::llround(std::ldexp(dropout.p, 32)))),
        seed(dropout.seed),
        kept(static_cast<float>(1 / (1 - dropout.p))) {}
  ATTN_HOST_DEVICE bool active() const { return threshold != 0 || kept != 1; }
};

inline namespace ATTN_TARGET {

/// The factors of the pairs q, kv and q, kv + 1, where kv is even: both words come from one counter
/// (kv / 4, q, h, b). J. K. Salmon et al., SC 2011.
ATTN_DEVICE void dropout_factors(const KernelDropout& dropout, int b, simt::lane<int> h,
                                 simt::lane<int> q, simt::lane<int> kv,
                                 simt::lane<float> (&factor)[2]) {
  using simt::lane;
  const lane<std::uint64_t> words = simt::per_lane(
      [&](int head, int row, int column) {
        const PhiloxWords random =
            philox4x32({{static_cast<std::uint32_t>(column / 4), static_cast<std::uint32_t>(row),
                         static_cast<std::uint32_t>(head), static_cast<std::uint32_t>(b)}},
                       dropout.seed);
        const bool upper = (column & 2) != 0;
        return static_cast<std::uint64_t>(upper ? random.word[2] : random.word[0]) |
               static_cast<std::uint64_t>(upper ? random.word[3] : random.word[1]) << 32;
      },
      h, q, kv);
  factor[0] = select((words & std::uint64_t{0xffffffff}) >= dropout.threshold, dropout.kept, 0.0f);
  factor[1] = select((words >> 32) >= dropout.threshold, dropout.kept, 0.0f);
}

/// The factor of the pair q, kv.
ATTN_DEVICE simt::lane<float> dropout_factor(const KernelDropout& dropout, int b, simt::lane<int> h,
                                             simt::lane<int> q, simt::lane<int> kv) {
  simt::lane<float> factor[2];
  dropout_factors(dropout, b, h, q, kv, factor);
  return select((kv & 1) == 0, factor[0], factor[1]);
}

}  // namespace ATTN_TARGET
}  // namespace attn
