#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "fuzz/generate.h"
#include "fuzz/verdict.h"

/// What a campaign drew, and what it must have drawn to be worth its name.
namespace attn::fuzz {

/// Counts of cases by dimension and region, such as coverage["fill"]["gaussian"].
using Coverage = std::map<std::string, std::map<std::string, std::uint64_t>>;

/// Every region that is known, with 0 cases: one that stays empty is seen.
Coverage empty_coverage();

/// Adds one case, unless it was refused: nothing of it ran.
void count(Coverage& coverage, const Case& c, const Verdict& verdict);

/// The rows of the table of implementations whose cases can fill a region.
enum class Rows { all, forward, backward, dense, packed, cached, paged, sparse, fp32, half };

/// What a user may fix, as bits: a quota is not asked of a dimension that no longer is drawn.
namespace fixes {
/// For `Quota::depends`.
inline constexpr unsigned nothing = 0, shape = 1, dtype = 2, mod = 4, mask = 8, implementation = 16;
}  // namespace fixes

/// The least share of the cases of `rows` that a region has.
struct Quota {
  const char* dimension;  ///< "fill", a key of Coverage
  const char* region;     ///< "*": every known region of the dimension that has no quota of its own
  Rows rows;              ///< whose cases are counted
  unsigned depends;       ///< on what a user may fix
  /// At which the generators draw it, at least; fuzz/coverage_test.cc holds them to it.
  double rate;
  double least = 0;  ///< of the quota; 0: a quarter of the rate
};
/// All of them (fuzz/quotas.cc).
std::span<const Quota> quotas();

/// The quotas that a campaign missed, as text: "fill denormal: 0 of 5000 cases, expected 19". One
/// is asked only where chance alone would miss it less than once in 10^9 campaigns of that length:
/// with n cases that could fill the region, n KL(least || rate) >= log 10^9, where KL is the
/// relative entropy of two Bernoulli distributions (Chernoff's bound).
std::vector<std::string> unmet(const Coverage& coverage, const Fixed& fixed);

}  // namespace attn::fuzz
