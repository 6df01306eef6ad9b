#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "fuzz/backward_bounds.h"
#include "fuzz/campaign.h"
#include "fuzz/forward_bounds.h"
#include "fuzz/inputs_fixture.h"

/// What the tests of the oracle share.
namespace attn::fuzz {

/// What a kernel that keeps everything in fp32 may round.
inline constexpr Numerics fp32_numerics{
    .storage = DType::f32, .exp_rounding = 0x1p-22, .tensor_core = false};
/// What a kernel of this storage type may round: `fp32_numerics`, or that of the flash kernels.
inline Numerics numerics_of(DType storage) {
  return storage == DType::f32 ? fp32_numerics : flash_numerics(storage);
}

/// A drawn case of one of these implementations, made small; one in five in fp32.
inline Case small_case(std::uint64_t seed, int i, std::vector<std::string> implementations) {
  Fixed fixed;
  fixed.implementations = std::move(implementations);
  Case c = drawn_case(fixed, seed, i).value();
  c.b = std::min(c.b, 2);
  c.sq = std::min(c.sq, 24);
  c.skv = std::min(c.skv, 100);
  c.d = std::min(c.d, 24);
  c.dv = std::min(c.dv, 24);
  for (const auto& [lengths, most] : {std::pair(&c.query_lengths, c.sq), {&c.key_lengths, c.skv}}) {
    if (!lengths->empty()) lengths->resize(c.b, most / 2);
    for (int& n : *lengths) n = std::min(n, most);
  }
  if (i % 5 == 4) c.dtype = DType::f32;
  return c;
}

/// A case with its inputs, and what a kernel may round.
struct OracleInputs : Made {
  Numerics may;  ///< `numerics_of` the case's storage type

  /// @throws std::invalid_argument as make_inputs
  explicit OracleInputs(const Case& c) : Made(c), may(numerics_of(c.dtype)) {}
};

/// Elements held to their bounds.
struct Worst {
  double ratio = 0;                       ///< the largest error / bound
  std::int64_t compared = 0, missed = 0;  ///< elements, and those outside their bounds

  /// Compares one element; a bound of infinity holds any value.
  void add(double got, double reference, double bound) {
    ++compared;
    if (got == reference || (std::isnan(got) && std::isnan(reference))) return;
    const double error = std::abs(got - reference);
    if (std::isinf(bound)) return;
    if (!(error <= bound)) ++missed;
    // the distance of a value to the number that must be hit is no bound to come near to
    if (bound > 0x1p-40 * std::abs(reference)) ratio = std::max(ratio, error / bound);
  }
  /// Compares tensors element by element.
  void add(const std::vector<double>& got, const std::vector<double>& reference,
           const std::vector<double>& bound) {
    for (std::size_t n = 0; n < got.size(); ++n) add(got[n], reference[n], bound[n]);
  }
};

/// Overflow of fp16 is the verdict's business.
inline bool stays_finite(const std::vector<double>& x) {
  return std::all_of(x.begin(), x.end(), [](double y) { return std::abs(y) < 6e4; });
}

}  // namespace attn::fuzz
