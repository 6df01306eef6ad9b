#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "fuzz/file_problem.h"

/// Known faults of attention programs, as changes to the problem that they then solve.
namespace attn::fuzz {

/// Sizes of tiles that programs have.
inline constexpr int common_tiles[] = {16, 32, 64, 128, 256};

/// Which pairs attend, [B, Hq, Sq, Skv].
struct Pairs {
  int b, hq, sq, skv;         ///< extents of `attends`
  std::vector<char> attends;  ///< row-major: 1 where a pair attends, else 0

  /// Of batch entry `batch`, query head h, query i and key j.
  char& at(int batch, int h, int i, int j) {
    return attends[((std::size_t{1} * batch * hq + h) * sq + i) * skv + j];
  }
  /// The same, to read.
  char at(int batch, int h, int i, int j) const {
    return const_cast<Pairs*>(this)->at(batch, h, i, j);
  }
};

/// Asks the problem's mask about every pair.
Pairs pairs_of(const FileProblem& p);
/// The last key that a row attends; -1 if there is none.
int last_key(const Pairs& x, int b, int h, int i);

/// One thing wrong with a problem. `apply` says whether that changes anything here.
struct Fault {
  std::string what;  ///< in words, for the report: "the mask is a diagonal off"
  std::function<bool(FileProblem&)> apply;  ///< commits the fault
};

/// All of them; `pairs` are those of the right problem, and must outlive the result.
std::vector<Fault> known_faults(const Pairs& pairs);

}  // namespace attn::fuzz
