#pragma once

#include <cmath>
#include <vector>

#include "reference/row_block.h"

namespace attn::reference {

/// An attention sink: one more logit in the softmax of a query head, which takes probability and
/// gives no value. A head without one has the logit -inf, which takes none.
///
/// G. Xiao et al., "Efficient Streaming Language Models with Attention Sinks", 2023, section 3.
struct Sink {
  double logit = masked;  ///< in the units of modified scores

  /// exp(logit - m): the sink's term in the sum of a row whose largest logit is m, and its
  /// probability where m is the row's LSE.
  double weight(double m) const { return logit == masked ? 0 : std::exp(logit - m); }
};

/// One for each query head.
inline std::vector<Sink> sinks(const Options& options, int hq) {
  std::vector<Sink> all(hq);
  for (int h = 0; options.sink && h < hq; ++h) all[h].logit = (*options.sink)(h);
  return all;
}

}  // namespace attn::reference
