#pragma once

#include <cmath>
#include <cstdint>

#include "mods/lang/philox.h"
#include "reference/row_block.h"

namespace attn::reference {

/// The factors of dropout, 0 or 1 / (1 - p), on a block of rows. Pair b, h, q, j draws word j % 4
/// of Philox at the counter (j / 4, q, h, b) with the seed for a key, and is kept where the word is
/// at least round(p * 2^32). So every pass draws the same, in blocks of any shape, and a decode
/// step draws what the row of the whole draws.
class DropoutFactors {
 public:
  explicit DropoutFactors(const Dropout& dropout)
      : threshold_(static_cast<std::uint64_t>(std::llround(std::ldexp(dropout.p, 32)))),
        kept_(1 / (1 - dropout.p)),
        seed_(dropout.seed) {}

  /// x[i,j] becomes x[i,j] / (1 - p) where the pair is kept, 0 where it is dropped.
  void apply(RowBlock at, Matrix& x) const {
    if (threshold_ == 0 && kept_ == 1) return;
    for (int i = 0; i < x.rows(); ++i) {
      const auto q = static_cast<std::uint32_t>(at.sizes.q_offset + at.first_row + i);
      PhiloxWords random{};
      for (int j = 0; j < x.cols(); ++j) {
        if (j % 4 == 0)
          random =
              philox4x32({{static_cast<std::uint32_t>(j / 4), q, static_cast<std::uint32_t>(at.h),
                           static_cast<std::uint32_t>(at.b)}},
                         seed_);
        x(i, j) = random.word[j % 4] >= threshold_ ? x(i, j) * kept_ : 0;
      }
    }
  }

 private:
  std::uint64_t threshold_;
  double kept_;
  std::uint64_t seed_;
};

}  // namespace attn::reference
