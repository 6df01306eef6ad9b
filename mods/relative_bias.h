#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "mods/lang/captured.h"

namespace attn {

/// A learned bias for each distance between key and query; distances past w share the outermost.
///
///     t[i,j] = s[i,j] + table[clamp(j - i, -w, w) + w]
///
/// The entry that each pair reads, w = 2:
///
///       keys j
///     i 23444
///       12344
///       01234
///       00123
///       00012
///
/// P. Shaw, J. Uszkoreit, A. Vaswani, "Self-Attention with Relative Position Representations",
/// 2018, section 3.2 (the clipping), with a scalar a distance and head as in C. Raffel et al. (T5),
/// 2020, section 2.1. The gradient of the table adds up all the pairs that read an entry.
///
/// Elsewhere: the learnable biases of PyTorch FlexAttention index by query minus key: reverse the
/// table. T5 groups far distances in logarithmic buckets; expand the buckets into the table.
struct RelativeBias {
  Captured<2> table;  ///< [Hq or 1, 2 w + 1]

  template <class Score, class Index>
  ATTN_HOST_DEVICE Score operator()(Score s, Index, Index h, Index q, Index kv) const {
    const int w = static_cast<int>(table.tensor.extents[1] / 2);
    return s + table(h, attn::clamp(kv - q, -w, w) + w);
  }

  /// @throws std::invalid_argument if the table is not [Hq or 1, an odd number].
  void check(const Sizes& sizes) const {
    const auto& extents = table.tensor.extents;
    if ((extents[0] != 1 && extents[0] != sizes.hq) || extents[1] % 2 != 1)
      throw std::invalid_argument("relative_bias: table has shape " + shape_string(extents) +
                                  ", expected [1 or Hq = " + std::to_string(sizes.hq) +
                                  ", 2 w + 1]");
  }
};

/// A table a head, [Hq or 1, 2 w + 1]. The memory stays the caller's.
inline RelativeBias relative_bias(Captured<2> table) {
  table.name = "relative bias table";
  return {table};
}
/// One table for all heads, [2 w + 1].
inline RelativeBias relative_bias(const Captured<1>& table) {
  const TensorView<const float, 2> one_row{
      table.tensor.data, {1, table.tensor.extents[0]}, {0, table.tensor.strides[0]}};
  return relative_bias(Captured<2>(one_row));
}

}  // namespace attn
