#pragma once

#include <span>

#include "docs/lessons/07_block_masks.h"

namespace lesson {

/// One answer from the answers of parts of the keys, in any number and order:
///
///     LSE = log sum_p exp(LSE_p)        O = sum_p exp(LSE_p - LSE) O_p
///
/// A part without a key has LSE = -inf, so its share is 0.
inline Answer merge(std::span<const Answer> parts) {
  double m = -std::numeric_limits<double>::infinity();
  for (const Answer& part : parts) m = std::max(m, part.lse);
  Answer whole{Row(parts[0].o.size()), m};
  if (m == -std::numeric_limits<double>::infinity()) return whole;

  double l = 0;
  for (const Answer& part : parts) l += std::exp(part.lse - m);
  whole.lse = m + std::log(l);
  for (const Answer& part : parts) {
    const double share = std::exp(part.lse - whole.lse);
    for (std::size_t d = 0; d < whole.o.size(); ++d) whole.o[d] += share * part.o[d];
  }
  return whole;
}

/// Lesson 7 with the blocks that a row visits dealt out to `splits` workers, as many to each as can
/// be. Each part is normalised on its own. (Flash-Decoding, Dao et al. 2023.)
template <class Mod, class Mask>
Answer split_kv(const Problem& x, int i, const Mod& mod, const Mask& mask, const Blocks& blocks,
                std::size_t splits) {
  std::vector<int> visited;
  for (int block = 0; block < blocks.across(); ++block)
    if (blocks.at(i / blocks.size, block) != Kind::empty) visited.push_back(block);

  std::vector<Answer> parts;
  for (std::size_t part = 0; part < splits; ++part) {
    // the blocks of this part keep their kind, all others are empty to it
    Blocks mine = blocks;
    std::fill(mine.kinds.begin(), mine.kinds.end(), Kind::empty);
    const std::size_t first = visited.size() * part / splits;
    const std::size_t end = visited.size() * (part + 1) / splits;
    for (std::size_t n = first; n < end; ++n)
      mine.at(i / mine.size, visited[n]) = blocks.at(i / mine.size, visited[n]);
    parts.push_back(by_blocks(x, i, mod, mask, mine));
  }
  return merge(parts);
}

}  // namespace lesson
