#include "fuzz/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "fuzz/case_sequences.h"
#include "fuzz/tool.h"

namespace attn::fuzz {
namespace {

using At = std::array<std::int64_t, 4>;

double largest_finite(DType t) {
  switch (t) {
    case DType::f64:
      return std::numeric_limits<double>::max();
    case DType::f32:
      return std::numeric_limits<float>::max();
    case DType::f16:
      return 65504;
    case DType::bf16:
      return 0x1.fep127;
  }
  return 0;
}

/// |got - reference| / bound; infinity for a wrong class or a bound of 0, 0 for an exact hit and
/// where the bound allows any value. A quotient of floating numbers is above 1 exactly where the
/// numerator is above the denominator.
double ratio(double got, double reference, double bound, double largest) {
  constexpr double wrong = std::numeric_limits<double>::infinity();
  if (std::isnan(reference)) return std::isnan(got) ? 0 : wrong;
  if (std::isinf(reference)) return got == reference ? 0 : wrong;
  if (std::isinf(got) && std::signbit(got) == std::signbit(reference) &&
      std::abs(reference) + bound >= largest)
    return 0;  // an overflow that the bound allows
  if (std::isinf(bound)) return std::isnan(got) ? wrong : 0;
  const double error = std::abs(got - reference);
  if (error == 0 && bound >= 0) return 0;
  return bound > 0 && std::isfinite(error) ? error / bound : wrong;
}

/// The elements of one output that are outside their bounds.
struct Misses {
  std::int64_t count = 0;
  double worst = 0;
  At at{};
  At low{}, high{};
  std::vector<std::int64_t> rows;  // (b, h, q) flattened, ascending, once each

  void add(double by, const At& where, std::int64_t row) {
    if (count++ == 0) low = high = where;
    for (int axis = 0; axis < 4; ++axis) {
      low[axis] = std::min(low[axis], where[axis]);
      high[axis] = std::max(high[axis], where[axis]);
    }
    if (by > worst) worst = by, at = where;
    if (rows.empty() || rows.back() != row) rows.push_back(row);
  }
};

Misses compare(const Tensor<double, 4>& got, const ExpectedOutput& expected) {
  Misses misses;
  const auto e = got.extents();
  const auto &x = got.values(), &reference = expected.reference.values(),
             &bound = expected.bound.values();
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double error = std::abs(x[i] - reference[i]);
    if (std::isfinite(error) && error <= bound[i]) continue;  // as nearly all are
    const auto d = static_cast<std::int64_t>(i) % e[3], row = static_cast<std::int64_t>(i) / e[3];
    const At at{row / e[2] / e[1], row / e[2] % e[1], row % e[2], d};
    const double by = error_over_bound(expected, x[i], at);
    if (by > 1) misses.add(by, at, row);
  }
  return misses;
}

std::string range(const char* what, std::int64_t low, std::int64_t high, std::int64_t extent) {
  if (extent <= 1 || (low == 0 && high == extent - 1)) return {};
  return low == high ? fmt::format(", {} {}", what, low)
                     : fmt::format(", {} {}..{}", what, low, high);
}

/// The key whose weight, were it off, explains the error of one row of O best: the error points
/// along v_j - O. Told in the discrepancy, if a single key does.
void find_suspect_key(const Case& c, const PassInputs& in, const ExpectedOutput& o,
                      const Tensor<double, 4>& got, Discrepancy& found) {
  if (c.dv < 2) return;
  const std::int64_t b = found.at[0], h = found.at[1], q = found.at[2], hkv = h / (c.hq / c.hkv);
  double best = 0, weight = 0;
  std::int64_t key = -1;
  for (std::int64_t j = 0; j < in.sequences[b].keys.count; ++j) {
    double along = 0, error2 = 0, direction2 = 0;
    for (std::int64_t d = 0; d < c.dv; ++d) {
      const double error = got(b, h, q, d) - o.reference(b, h, q, d);
      const double direction = in.v(b, hkv, j, d) - o.reference(b, h, q, d);
      along += error * direction;
      error2 += error * error;
      direction2 += direction * direction;
    }
    const double cosine = along / std::sqrt(error2 * direction2);
    if (std::abs(cosine) > best) best = std::abs(cosine), key = j, weight = along / direction2;
  }
  if (!(best > 0.98)) return;
  found.suspect_key = key;
  found.where += fmt::format("; row {} looks as if key {} had {:.3g} of weight too {}", q, key,
                             std::abs(weight), weight > 0 ? "much" : "little");
}

/// What the index of an axis is called where a range of it is told.
const char* axis_name(const char* letter) {
  switch (*letter) {
    case 'b':
      return "batch";
    case 'h':
      return "head";
    case 'q':
      return "queries";
    case 'k':
      return "keys";
    case 'd':
      return "channels";
    default:
      return "index";
  }
}

std::string pattern(const Case& c, const ExpectedOutput& expected, const Misses& m) {
  const auto& e = expected.reference.extents();
  std::string text = fmt::format("{} of {} elements", m.count, e[0] * e[1] * e[2] * e[3]);
  if (expected.axes[2] && *expected.axes[2])
    text += fmt::format(", {} of {} rows", m.rows.size(), e[0] * e[1] * e[2]);
  for (std::size_t axis = 0; axis < 4; ++axis)
    if (expected.axes[axis])
      text += range(axis_name(expected.axes[axis]), m.low[axis], m.high[axis], e[axis]);
  const TileSize tile = tile_of(c);
  const bool of_queries = expected.axes[2] && *expected.axes[2] == 'q';
  if (of_queries && c.sq > tile.q && m.low[2] >= c.sq / tile.q * tile.q && c.sq % tile.q)
    text += fmt::format("; only in the tail tile of queries (tile {})", tile.q);
  if (tile.kv > 0 && c.skv % tile.kv)
    text += fmt::format("; keys end in a partial tile of {}", c.skv % tile.kv);
  return text;
}

/// "O[b0 h1 q63 d5]", "d slope[3, 4]".
std::string element_text(const ExpectedOutput& expected, const At& at) {
  std::string index;
  for (std::size_t axis = 0; axis < 4; ++axis) {
    const char* name = expected.axes[axis];
    if (!name) continue;
    if (!index.empty()) index += *name ? " " : ", ";
    index += fmt::format("{}{}", name, at[axis]);
  }
  return fmt::format("{}[{}]", expected.name, index);
}

/// The bound of a gradient may well reach the sum of its terms' sizes where a row is nearly
/// one-hot: dS is then a difference of equal numbers, which the roundings of delta and P outweigh.
constexpr double powerless_gradients = 0.1;

/// Why the bounds of this case prove too little to call it a pass.
std::string mistrust(const Health& health, Pass pass) {
  if (health.ambiguous_mass > 0.05)
    return fmt::format("rounding may flip a branch that decides {:.0f} % of a row's weight",
                       100 * health.ambiguous_mass);
  if (health.amplification > 10)
    return fmt::format("the mod amplifies rounding {:.0f} times beyond what the kernel may do",
                       health.amplification);
  if (health.powerless_share > (pass == Pass::backward ? powerless_gradients : 0))
    return fmt::format("the bound of {:.1f} % of the elements allows any value",
                       100 * health.powerless_share);
  // where rows are proved exact, zeros are proved too: the gradients of one-hot rows
  const RowCounts& rows = health.rows;
  const bool proved = rows.one_hot + rows.counted + rows.powers > rows.general;
  if (health.zero_share > 0.7 && !(proved && pass == Pass::backward))
    return fmt::format("{:.0f} % of the result is zero", 100 * health.zero_share);
  return {};
}

}  // namespace

const char* name_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::pass:
      return "pass";
    case Outcome::mistrusted:
      return "mistrusted";
    case Outcome::finding:
      return "finding";
    case Outcome::discrepancy:
      return "discrepancy";
    case Outcome::not_deterministic:
      return "not deterministic";
    case Outcome::checker_fault:
      return "checker fault";
    case Outcome::refused:
      return "refused";
  }
  return "?";
}

double error_over_bound(const ExpectedOutput& expected, double got,
                        const std::array<std::int64_t, 4>& at) {
  const auto [b, h, q, d] = at;
  if (!expected.term.values().empty() && expected.term(b, h, q, d) == Term::poison) return 0;
  return ratio(got, expected.reference(b, h, q, d), expected.bound(b, h, q, d),
               largest_finite(expected.dtype));
}

Verdict judge(const Case& c, const PassInputs& in, const Expectation& expected,
              const std::vector<Tensor<double, 4>>& got,
              const std::function<Expectation()>& rigorous) {
  Verdict verdict;
  verdict.rows = expected.health.rows;
  Discrepancy& found = verdict.discrepancy;
  for (std::size_t i = 0; i < expected.outputs.size(); ++i) {
    const ExpectedOutput& output = expected.outputs[i];
    const Misses misses = compare(got[i], output);
    if (misses.count == 0) continue;
    if (verdict.outcome == Outcome::discrepancy) {
      found.where += fmt::format("; {} of {} too", misses.count, output.name);
      continue;
    }
    verdict.outcome = Outcome::discrepancy;
    const auto [b, h, q, d] = found.at = misses.at;
    found.tensor = output.name;
    found.element = element_text(output, found.at);
    found.got = got[i](b, h, q, d);
    found.reference = output.reference(b, h, q, d);
    found.bound = output.bound(b, h, q, d);
    found.term = output.term.values().empty() ? Term::scores : output.term(b, h, q, d);
    found.proved = error_over_bound(rigorous().outputs[i], found.got, found.at) > 1;
    found.where = pattern(c, output, misses);
    if (output.name == "O") find_suspect_key(c, in, output, got[i], found);
  }
  if (verdict.outcome == Outcome::discrepancy) return verdict;
  const Health& health = expected.health;
  if (!health.finding.empty() && c.fill != Fill::nan_keys) {
    verdict.outcome = Outcome::finding;
    verdict.reason = health.finding;
  } else if (const std::string why = mistrust(health, implementation_named(c.implementation).pass);
             !why.empty()) {
    verdict.outcome = Outcome::mistrusted;
    verdict.reason = why;
  }
  return verdict;
}

std::string report(const Case& c, const Verdict& v) {
  std::string text;
  if (v.outcome == Outcome::discrepancy) {
    const Discrepancy& d = v.discrepancy;
    text = fmt::format(
        "discrepancy  {} ({})   {} got {:.9g}  reference {:.9g}  bound {:.3g} (mostly {}){}\n"
        "where        {}\n",
        c.implementation, v.target, d.element, d.got, d.reference, d.bound, name_of(d.term),
        d.proved ? "\nproved       no order of rounding reaches this value" : "", d.where);
  } else {
    text = fmt::format("{:<12} {} ({})   {}\n", name_of(v.outcome), c.implementation, v.target,
                       v.reason);
  }
  return text + fmt::format("replay       {} replay '{}'\n", tool_name(), to_text(c));
}

}  // namespace attn::fuzz
