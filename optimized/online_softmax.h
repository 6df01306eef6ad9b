#pragma once

#include "mods/lang/number.h"
#include "optimized/planted.h"
#include "optimized/simt/simt.h"

namespace attn {
inline namespace ATTN_TARGET {

/// Running state of the online softmax for the two rows of an m16n8 accumulator fragment that a
/// thread shares with the other three threads of its quad. Scores are in units of log 2, so that
/// one exponential is one `exp2`.
struct OnlineSoftmax {
  simt::lane<float> max[2];  ///< m: the largest score so far, -inf before the first key
  simt::lane<float> sum[2];  ///< l: this thread's part of the sum of exp2(score - max)

  ATTN_DEVICE OnlineSoftmax() {
    for (int r = 0; r < 2; ++r) {
      max[r] = planted(PlantedFault::M01) ? -5e4f : -infinity;
      sum[r] = 0.0f;
    }
  }

  /// One tile of scores: `s[j][e]` becomes the weight exp2(s - m). Returns the factor by which what
  /// was accumulated so far must be multiplied (FlashAttention-2, T. Dao 2023, Algorithm 1, lines
  /// 9 and 10). `r` is the fragment row: elements 2r and 2r + 1 of each accumulator.
  template <int kFragments>
  ATTN_DEVICE simt::lane<float> step(simt::lane<float> (&s)[kFragments][4], int r) {
    using simt::lane;
    lane<float> m = max[r];
    ATTN_UNROLL
    for (int j = 0; j < kFragments; ++j)
      m = simt::vmax(m, simt::vmax(s[j][2 * r], s[j][2 * r + 1]));
    m = simt::vmax(m, simt::shfl_xor(m, 1));
    m = simt::vmax(m, simt::shfl_xor(m, 2));

    // A row that has met no key yet has m = -inf; subtracting 0 keeps its weights exp2(-inf) = 0.
    const lane<float> base =
        planted(PlantedFault::M03) ? m : lane<float>(select(m == -infinity, 0.0f, m));
    lane<float> rescale = simt::vexp2(max[r] - base);
    if (planted(PlantedFault::M07)) rescale = 1.0f;

    lane<float> tile_sum = 0.0f;
    ATTN_UNROLL
    for (int j = 0; j < kFragments; ++j) {
      ATTN_UNROLL
      for (int e = 2 * r; e < 2 * r + 2; ++e) {
        s[j][e] = simt::vexp2(s[j][e] - base);
        tile_sum += s[j][e];
      }
    }
    sum[r] = sum[r] * rescale + tile_sum;
    max[r] = m;
    return rescale;
  }

  /// l of the whole row: the quad's parts added up.
  ATTN_DEVICE simt::lane<float> row_sum(int r) const {
    simt::lane<float> l = sum[r];
    l += simt::shfl_xor(l, 1);
    l += simt::shfl_xor(l, 2);
    return l;
  }
};

}  // namespace ATTN_TARGET
}  // namespace attn
