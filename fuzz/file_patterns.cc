#include "fuzz/file_patterns.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <optional>

#include "fuzz/file_faults.h"

namespace attn::fuzz {
namespace {

/// The expectation of a problem with a fault in the place of that of the right one. Outputs that
/// have another shape there, the gradients of other heads, are left out.
JudgedOutputs with_expectation(const JudgedOutputs& outputs, const Expectation& by) {
  JudgedOutputs result{{{}, outputs.expected.health}, {}};
  for (std::size_t i = 0; i < outputs.got.size(); ++i)
    for (const ExpectedOutput& other : by.outputs)
      if (other.name == outputs.expected.outputs[i].name &&
          other.reference.extents() == outputs.got[i].extents()) {
        result.expected.outputs.push_back(other);
        result.got.push_back(outputs.got[i]);
      }
  return result;
}

/// Whether a program with this fault could have written the outputs.
bool explains(const FileProblem& wrong, const JudgedOutputs& outputs,
              const StoredForwardResult& given, Rounds rounds) {
  const auto agrees = [&](const Expectation& expected) {
    const JudgedOutputs x = with_expectation(outputs, expected);
    return judge(wrong.c, wrong.in, x.expected, x.got, [&] { return x.expected; }).outcome !=
           Outcome::discrepancy;
  };
  return agrees(forward_expectation(wrong, rounds, BoundKind::working)) &&
         (!wrong.is_backward() ||
          agrees(backward_expectation(wrong, given, rounds, BoundKind::working)));
}

bool is_off(double got, double reference, double bound) {
  if (std::isnan(reference)) return !std::isnan(got);
  if (std::isinf(reference)) return got != reference;
  return !(std::abs(got - reference) <= bound);
}

/// The first output that has an element outside its bound.
std::optional<std::size_t> first_off(const JudgedOutputs& x) {
  for (std::size_t i = 0; i < x.got.size(); ++i) {
    const ExpectedOutput& e = x.expected.outputs[i];
    for (std::size_t n = 0; n < x.got[i].values().size(); ++n)
      if (is_off(x.got[i].values()[n], e.reference.values()[n], e.bound.values()[n])) return i;
  }
  return {};
}

/// "dQ is 8 times what it should be".
std::string ratio_text(const FileProblem& p, const ExpectedOutput& e,
                       const Tensor<double, 4>& got) {
  double largest = 0, ratio = 1;
  for (std::size_t n = 0; n < got.values().size(); ++n)
    if (const double x = e.reference.values()[n]; std::isfinite(x) && std::abs(x) > largest)
      largest = std::abs(x), ratio = got.values()[n] / x;
  if (!(largest > 0) || !std::isfinite(ratio)) return {};
  if (e.name == "LSE" && std::abs(ratio * std::log(2.0) - 1) < 1e-3) ratio = 1 / std::log(2.0);
  const auto times = [&](double factor) {
    for (std::size_t n = 0; n < got.values().size(); ++n) {
      const double x = e.reference.values()[n], bound = e.bound.values()[n];
      if (is_off(got.values()[n], factor == 0 ? 0 : factor * x,
                 std::abs(factor) * (2 * bound + 0x1p-20 * std::abs(x))))
        return false;
    }
    return true;
  };
  const auto near = [ratio](double x) { return std::abs(ratio / x - 1) < 0.01; };
  if (ratio == 0) return times(0) ? fmt::format("{} is zero everywhere", e.name) : "";
  if (near(1) || !times(ratio)) return {};
  const double scale = p.in.scale;
  const char* why = e.name == "LSE" && near(1 / std::log(2.0)) ? ": in base 2 (M55)"
                    : near(-1)                                 ? ": the sign"
                    : e.name != "dQ" && e.name != "dK"         ? ""
                    : near(1 / scale)                          ? ": the scale is missing"
                    : near(scale)                              ? ": the scale is applied twice"
                                                               : "";
  return fmt::format("{} is {:.4g} times what it should be{}", e.name, ratio, why);
}

/// Where the wrong elements lie, if that says something.
std::string place_text(const Pairs& pairs, const ExpectedOutput& e, const Tensor<double, 4>& got) {
  const auto shape = got.extents();
  std::int64_t low = shape[2], high = -1;
  bool empty_only = true;
  for (std::int64_t b = 0; b < shape[0]; ++b)
    for (std::int64_t h = 0; h < shape[1]; ++h)
      for (std::int64_t r = 0; r < shape[2]; ++r)
        for (std::int64_t d = 0; d < shape[3]; ++d)
          if (is_off(got(b, h, r, d), e.reference(b, h, r, d), e.bound(b, h, r, d))) {
            low = std::min(low, r), high = std::max(high, r);
            const bool of_queries = e.axes[2] && *e.axes[2] == 'q';
            empty_only =
                empty_only && of_queries &&
                last_key(pairs, static_cast<int>(b), static_cast<int>(h), static_cast<int>(r)) < 0;
          }
  if (high < 0 || !e.axes[2] || !*e.axes[2]) return {};
  if (empty_only)
    return "only rows without a key are wrong: O is 0 there, LSE -inf or the sink (M05, M06)";
  const char* what = *e.axes[2] == 'q' ? "queries" : "keys";
  for (auto tile = std::rbegin(common_tiles); tile != std::rend(common_tiles); ++tile)
    if (shape[2] > *tile && shape[2] % *tile && low >= shape[2] / *tile * *tile)
      return fmt::format("only the last, partial tile of {} is wrong (tile {})", what, *tile);
  for (const int tile : common_tiles)
    if (shape[2] > tile && low / tile == high / tile)
      return fmt::format("only block {} of {} {} is wrong", low / tile, tile, what);
  return {};
}

}  // namespace

std::string looks_like(const FileProblem& p, const JudgedOutputs& outputs,
                       const StoredForwardResult& given, Rounds rounds) {
  constexpr double most_work = 0x1p26;  // products, for each fault
  const Case& c = p.c;
  std::string text;
  const auto add = [&text](const std::string& more) {
    if (!more.empty()) text += (text.empty() ? "" : "; or ") + more;
  };
  const Pairs pairs = pairs_of(p);
  if (1.0 * c.b * c.hq * c.sq * c.skv * (c.d + c.dv) <= most_work) {
    for (const Fault& fault : known_faults(pairs)) {
      FileProblem wrong = p;
      if (fault.apply(wrong) && explains(wrong, outputs, given, rounds)) add(fault.what);
    }
  }
  if (!text.empty()) return text;
  if (const auto i = first_off(outputs)) {
    const ExpectedOutput& e = outputs.expected.outputs[*i];
    add(ratio_text(p, e, outputs.got[*i]));
    if (text.empty()) add(place_text(pairs, e, outputs.got[*i]));
  }
  return text;
}

}  // namespace attn::fuzz
