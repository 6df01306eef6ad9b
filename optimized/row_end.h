#pragma once

#include "optimized/planted.h"
#include "optimized/scores.h"
#include "optimized/simt/simt.h"

namespace attn {
inline namespace ATTN_TARGET {

/// What is left to do for a row once its last tile is done: multiply the accumulator by `factor`,
/// and store the other two.
struct RowEnd {
  simt::lane<float> factor, lse, row_max;
};

/// O / l and LSE = ln 2 (m + log2 l), where the sink, a key without a value, joins as one more step
/// of the online softmax: m' = max(m, sink), l' = l exp2(m - m') + exp2(sink - m').
///
/// A row with no key has m = -inf and l = 0: O = 0, and LSE is the sink's logit, or -inf. A NaN in
/// a score leaves l = NaN, so that it is not mistaken for such a row.
///
/// @param max  m, in units of log 2
/// @param sum  l of the whole row; NaN if an element of the accumulator is
/// @param sink its logit, natural; -inf: there is none
ATTN_DEVICE RowEnd end_row(simt::lane<float> max, simt::lane<float> sum, simt::lane<float> sink) {
  using simt::lane;
  const lane<float> logit = sink * log2_of_e, m = simt::vmax(max, logit);
  const lane<float> base = select(m == -infinity, 0.0f, m);
  const lane<float> rescale = simt::vexp2(max - base);  // 1 without a sink
  const lane<float> l = sum * rescale + simt::vexp2(logit - base);
  const lane<bool> empty = max == -infinity && sum == 0.0f;

  RowEnd end;
  end.factor = rescale * simt::vrcp(l);
  if (!planted(PlantedFault::M05)) end.factor = select(empty, 0.0f, end.factor);
  end.lse = select(empty, planted(PlantedFault::M06) ? lane<float>(0.0f) : sink,
                   (m + simt::vlog2(l)) * (planted(PlantedFault::M55) ? 1.0f : ln_of_2));
  end.row_max = select(sum == sum, max * ln_of_2, sum);  // NaN where the row is
  return end;
}

}  // namespace ATTN_TARGET
}  // namespace attn
