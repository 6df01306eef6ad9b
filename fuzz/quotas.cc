#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "fuzz/coverage.h"
#include "optimized/implementations.h"

namespace attn::fuzz {
namespace {

using namespace fixes;
constexpr unsigned expressions = mod | mask;

constexpr Quota table[] = {
    // what most faults of tiling need
    {"spans", "two query and two key tiles", Rows::all, shape, 0.36, 0.3},
    {"tile", "production", Rows::all, nothing, 0.024},
    // shapes
    {"queries", "*", Rows::all, shape, 0.01},
    {"queries", ">128", Rows::all, shape | implementation, 0.01},
    {"keys", "*", Rows::all, shape, 0.005},
    {"keys", ">128", Rows::forward, shape, 0.04},
    {"lengths", "*", Rows::all, shape | implementation, 0.04},
    {"heads", "*", Rows::all, shape, 0.025},
    {"group", "*", Rows::all, shape, 0.005},
    {"head size", "*", Rows::all, shape, 0.2},
    {"head size", "beyond 128", Rows::half, shape, 0.018},
    {"sequences", "*", Rows::packed, shape, 0.2},
    {"sequences", "none", Rows::packed, shape, 0.006},
    // data
    {"implementation", "*", Rows::all, implementation | dtype | shape, 0.09},
    {"dtype", "bf16", Rows::half, dtype, 0.55},
    {"dtype", "fp16", Rows::half, dtype, 0.35},
    {"dtype", "fp32", Rows::fp32, dtype, 0.95},
    {"fill", "*", Rows::all, shape, 0.012},
    {"fill", "exact_count", Rows::forward, shape, 0.05},
    {"fill", "exact_powers", Rows::forward, shape, 0.05},
    {"layout", "*", Rows::all, nothing, 0.04},
    {"layout", "shared_kv", Rows::dense, nothing, 0.035},
    {"scale", "*", Rows::all, nothing, 0.01},
    // what only some take
    {"splits", "*", Rows::cached, nothing, 0.08},
    {"page", "*", Rows::paged, nothing, 0.15},
    {"blocks", "*", Rows::sparse, nothing, 0.12},
    {"dLSE", "*", Rows::backward, nothing, 0.25},
    {"row max", "*", Rows::forward, nothing, 0.25},
    {"sink", "*", Rows::all, nothing, 0.08},
    {"dropout", "*", Rows::all, nothing, 0.02},
    // expressions
    {"mod size", "*", Rows::all, mod, 0.2},
    {"mask size", "*", Rows::all, mask, 0.13},
    {"jump of the mod", "*", Rows::all, mod, 0.01},
    {"derivative", "*", Rows::all, mod, 0.03},
    {"operation", "*", Rows::all, expressions, 0.004},
    {"table rank", "*", Rows::all, expressions, 0.004},
    {"table type", "*", Rows::all, expressions, 0.08},
    {"table by", "*", Rows::all, expressions, 0.0025},
    {"table by", "h q kv", Rows::all, expressions, 0.001},
    // how the rows of scores fell out
    {"rows", "*", Rows::all, shape | expressions, 0.05},
    {"rows", "some proved uniform", Rows::forward, shape | expressions, 0.05},
};

bool is_of(const Implementation& row, Rows rows) {
  const auto takes = [&](DType dtype) {
    Problem problem;
    problem.d = problem.dv = 1, problem.dtype = dtype;
    return !row.refusal(problem);
  };
  switch (rows) {
    case Rows::all:
      return true;
    case Rows::forward:
      return row.pass == Pass::forward;
    case Rows::backward:
      return row.pass == Pass::backward;
    case Rows::dense:
      return row.sequences == Sequences::dense;
    case Rows::packed:
      return row.sequences == Sequences::packed;
    case Rows::cached:
      return has_cache(row);
    case Rows::paged:
      return row.sequences == Sequences::paged;
    case Rows::sparse:
      return row.block_sparse;
    case Rows::fp32:
      return takes(DType::f32);
    case Rows::half:
      return takes(DType::f16) || takes(DType::bf16);
  }
  throw std::logic_error("quota: no such rows");
}

unsigned fixed_by(const Fixed& f) {
  unsigned all = nothing;
  const bool types = !f.mod_type.empty() || !f.mask_type.empty();  // whose kernels have small heads
  if (f.b || f.hq || f.hkv || f.sq || f.skv || f.d || f.dv || types) all |= shape;
  if (f.dtype) all |= dtype;
  if (f.mod || !f.mod_type.empty()) all |= mod;
  if (f.mask || !f.mask_type.empty()) all |= mask;
  if (!f.implementations.empty()) all |= implementation;
  return all;
}

/// True if a campaign of n cases misses the quota by chance less than once in 10^9.
bool is_long_enough(double n, double least, double rate) {
  const double entropy =  // of a share of `least` where `rate` was expected
      least * std::log(least / rate) +
      (rate < 1 ? (1 - least) * std::log((1 - least) / (1 - rate)) : 0);
  return n * entropy >= std::log(1e9);
}

/// A quota of the region's own comes before that of its dimension.
const Quota* quota_of(const std::string& dimension, const std::string& region) {
  const Quota* found = nullptr;
  for (const Quota& q : table)
    if (q.dimension == dimension && (q.region == region || (!found && q.region[0] == '*')))
      found = &q;
  return found;
}

}  // namespace

std::span<const Quota> quotas() { return table; }

std::vector<std::string> unmet(const Coverage& coverage, const Fixed& fixed) {
  std::vector<std::string> missed;
  const unsigned given = fixed_by(fixed);
  for (const auto& [dimension, regions] : empty_coverage())
    for (const auto& [region, zero] : regions) {
      const Quota* quota = quota_of(dimension, region);
      if (!quota || (quota->depends & given)) continue;
      std::uint64_t able = 0;
      for (const Implementation& row : shipped_implementations())  // others take what they take
        if (is_of(row, quota->rows))
          able += coverage.at("implementation").at(std::string(row.name));
      const double least = quota->least > 0 ? quota->least : quota->rate / 4;
      const double n = static_cast<double>(able);
      const std::uint64_t count = coverage.at(dimension).at(region);
      if (is_long_enough(n, least, quota->rate) && static_cast<double>(count) < least * n)
        missed.push_back(fmt::format("{} {}: {} of {} cases, expected {:.0f}", dimension, region,
                                     count, able, std::ceil(least * n)));
    }
  return missed;
}

}  // namespace attn::fuzz
