#include "optimized/simt/conformance_run.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>
#include <optional>

#include "optimized/simt/types.h"

namespace attn {
namespace {

constexpr float infinite = std::numeric_limits<float>::infinity();

/// A result of exp2 or log2, of x.
bool within_precision(Precision precision, float got, float x) {
  if (precision == Precision::exp2) {
    const double exact = std::exp2(static_cast<double>(x));
    if (std::isnan(x)) return std::isnan(got);
    if (x < -126.0f) return got == 0.0f;
    if (x >= 128.0f) return got == infinite;
    if (std::nearbyint(x) == x) return got == static_cast<float>(exact);
    return std::fabs(got - exact) <= exact * simt::kExp2RelativeError;
  }
  const double exact = std::log2(static_cast<double>(x));
  if (std::isnan(exact)) return std::isnan(got);
  const float nearest = static_cast<float>(exact);
  if (std::isinf(exact)) return got == nearest;
  const float magnitude = std::fabs(nearest);
  return std::fabs(got - exact) <= std::nextafter(magnitude, infinite) - magnitude;
}

/// The first word that is wrong.
std::optional<std::size_t> first_difference(const ConformanceResult& got,
                                            const ConformanceResult& expected) {
  if (got.words.size() != expected.words.size()) return 0;
  for (std::size_t i = 0; i < got.words.size(); ++i) {
    const bool right =
        got.precision == Precision::exact
            ? got.words[i] == expected.words[i]
            : within_precision(got.precision, std::bit_cast<float>(got.words[i]), got.arguments[i]);
    if (!right) return i;
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> conformance_differences(const std::vector<ConformanceResult>& got,
                                                 const std::vector<ConformanceResult>& expected) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < std::max(got.size(), expected.size()); ++i) {
    if (i >= got.size() || i >= expected.size() || got[i].primitive != expected[i].primitive) {
      lines.push_back((i < expected.size() ? expected[i] : got[i]).primitive + ": not run on both");
      return lines;
    }
    if (const auto at = first_difference(got[i], expected[i])) {
      char text[80];
      std::snprintf(text, sizeof text, ": word %zu is 0x%08x, expected 0x%08x", *at,
                    got[i].words.empty() ? 0 : got[i].words[*at],
                    expected[i].words.empty() ? 0 : expected[i].words[*at]);
      lines.push_back(got[i].primitive + text);
    }
  }
  return lines;
}

}  // namespace attn
