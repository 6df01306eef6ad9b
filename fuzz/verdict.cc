#include "fuzz/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

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

/// 0 if the element is right, else how far outside: |got - reference| / bound, infinity for a
/// wrong class or a bound of 0.
double excess(double got, double reference, double bound, double largest) {
  constexpr double wrong = std::numeric_limits<double>::infinity();
  if (std::isnan(reference)) return std::isnan(got) ? 0 : wrong;
  if (std::isinf(reference)) return got == reference ? 0 : wrong;
  if (std::isinf(got) && std::signbit(got) == std::signbit(reference) &&
      std::abs(reference) + bound >= largest)
    return 0;  // an overflow that the bound allows
  if (std::isinf(bound)) return std::isnan(got) ? wrong : 0;
  const double error = std::abs(got - reference);
  if (error <= bound) return 0;
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

template <class Bound>
Misses compare(const Tensor<double, 4>& got, Bound bound, double largest) {
  Misses misses;
  const auto e = got.extents();
  for (std::int64_t b = 0; b < e[0]; ++b)
    for (std::int64_t h = 0; h < e[1]; ++h)
      for (std::int64_t q = 0; q < e[2]; ++q)
        for (std::int64_t d = 0; d < e[3]; ++d) {
          const auto [reference, tolerance] = bound(b, h, q, d);
          const double by = excess(got(b, h, q, d), reference, tolerance, largest);
          if (by > 0) misses.add(by, {b, h, q, d}, (b * e[1] + h) * e[2] + q);
        }
  return misses;
}

std::string range(const char* what, std::int64_t low, std::int64_t high, std::int64_t extent) {
  if (extent <= 1 || (low == 0 && high == extent - 1)) return {};
  return low == high ? fmt::format(", {} {}", what, low)
                     : fmt::format(", {} {}..{}", what, low, high);
}

/// The key whose weight, were it off, explains the error of one row of O best: the error points
/// along v_j - O. Empty if no single key does.
std::string suspect_key(const Case& c, const ForwardInputs& in, const ForwardBounds& bounds,
                        const Tensor<double, 4>& o, const At& at) {
  if (c.dv < 2) return {};
  const std::int64_t b = at[0], h = at[1], q = at[2], hkv = h / (c.hq / c.hkv);
  double best = 0, weight = 0;
  std::int64_t key = -1;
  for (std::int64_t j = 0; j < c.skv; ++j) {
    double along = 0, error2 = 0, direction2 = 0;
    for (std::int64_t d = 0; d < c.dv; ++d) {
      const double error = o(b, h, q, d) - bounds.o(b, h, q, d);
      const double direction = in.v(b, hkv, j, d) - bounds.o(b, h, q, d);
      along += error * direction;
      error2 += error * error;
      direction2 += direction * direction;
    }
    const double cosine = along / std::sqrt(error2 * direction2);
    if (std::abs(cosine) > best) best = std::abs(cosine), key = j, weight = along / direction2;
  }
  if (!(best > 0.98)) return {};
  return fmt::format("; row {} looks as if key {} had {:.3g} of weight too {}", q, key,
                     std::abs(weight), weight > 0 ? "much" : "little");
}

std::string pattern(const Case& c, const Misses& m, std::int64_t elements, std::int64_t dv) {
  const auto all_rows = static_cast<std::int64_t>(c.b) * c.hq * c.sq;
  std::string text =
      fmt::format("{} of {} elements, {} of {} rows", m.count, elements, m.rows.size(), all_rows);
  text += range("batch", m.low[0], m.high[0], c.b) + range("head", m.low[1], m.high[1], c.hq) +
          range("queries", m.low[2], m.high[2], c.sq) + range("channels", m.low[3], m.high[3], dv);
  const int tile_q = c.small_tile ? 64 : 128, tile_kv = c.small_tile ? 32 : 64;
  if (c.sq > tile_q && m.low[2] >= c.sq / tile_q * tile_q && c.sq % tile_q)
    text += fmt::format("; only in the tail tile of queries (tile {})", tile_q);
  if (c.skv % tile_kv) text += fmt::format("; keys end in a partial tile of {}", c.skv % tile_kv);
  return text;
}

/// Why the bounds of this case prove too little to call it a pass.
std::string mistrust(const ForwardBounds& bounds) {
  if (bounds.ambiguous_mass > 0.05)
    return fmt::format("rounding may flip a branch that decides {:.0f} % of a row's weight",
                       100 * bounds.ambiguous_mass);
  if (bounds.amplification > 10)
    return fmt::format("the mod amplifies rounding {:.0f} times beyond what the kernel may do",
                       bounds.amplification);
  if (bounds.powerless_share > 0)
    return fmt::format("the bound of {:.1f} % of the elements allows any value",
                       100 * bounds.powerless_share);
  if (bounds.zero_share > 0.7) return fmt::format("{:.0f} % of O is zero", 100 * bounds.zero_share);
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
    case Outcome::checker_fault:
      return "checker fault";
    case Outcome::refused:
      return "refused";
  }
  return "?";
}

Verdict judge(const Case& c, const ForwardInputs& in, const ForwardBounds& bounds,
              const Tensor<double, 4>& o, const Tensor<double, 4>& lse,
              const std::function<ForwardBounds()>& rigorous) {
  Verdict verdict;
  verdict.rows = bounds.rows;
  const double largest = largest_finite(c.dtype), largest_lse = largest_finite(DType::f32);
  const Misses in_o = compare(
      o, [&](auto... at) { return std::pair(bounds.o(at...), bounds.o_bound(at...)); }, largest);
  const Misses in_lse = compare(
      lse,
      [&](auto b, auto h, auto q, auto) {
        return std::pair(bounds.lse(b, h, q), bounds.lse_bound(b, h, q));
      },
      largest_lse);
  if (in_o.count == 0 && in_lse.count == 0) {
    if (!bounds.finding.empty() && c.fill != Fill::nan_keys) {
      verdict.outcome = Outcome::finding;
      verdict.reason = bounds.finding;
    } else if (const std::string why = mistrust(bounds); !why.empty()) {
      verdict.outcome = Outcome::mistrusted;
      verdict.reason = why;
    }
    return verdict;
  }
  verdict.outcome = Outcome::discrepancy;
  Discrepancy& found = verdict.discrepancy;
  if (in_o.count > 0) {
    const auto [b, h, q, d] = found.at = in_o.at;
    found.tensor = "O";
    found.got = o(b, h, q, d);
    found.reference = bounds.o(b, h, q, d);
    found.bound = bounds.o_bound(b, h, q, d);
    found.term = bounds.o_term(b, h, q, d);
    found.proved = excess(found.got, found.reference, rigorous().o_bound(b, h, q, d), largest) > 0;
    found.where = pattern(c, in_o, o.view().size(), c.dv) + suspect_key(c, in, bounds, o, found.at);
  } else {
    const auto [b, h, q, d] = found.at = in_lse.at;
    found.tensor = "LSE";
    found.got = lse(b, h, q, d);
    found.reference = bounds.lse(b, h, q);
    found.bound = bounds.lse_bound(b, h, q);
    found.term = Term::scores;
    found.proved =
        excess(found.got, found.reference, rigorous().lse_bound(b, h, q), largest_lse) > 0;
    found.where = pattern(c, in_lse, lse.view().size(), 1);
  }
  return verdict;
}

std::string report(const Case& c, const Verdict& v) {
  std::string text;
  if (v.outcome == Outcome::discrepancy) {
    const Discrepancy& d = v.discrepancy;
    const std::string channel = d.tensor == "O" ? fmt::format(" d{}", d.at[3]) : "";
    text = fmt::format(
        "discrepancy  {} ({})   {}[b{} h{} q{}{}] got {:.9g}  reference {:.9g}  bound {:.3g} "
        "(mostly {}){}\nwhere        {}\n",
        c.implementation, v.target, d.tensor, d.at[0], d.at[1], d.at[2], channel, d.got,
        d.reference, d.bound, name_of(d.term),
        d.proved ? "\nproved       no order of rounding reaches this value" : "", d.where);
  } else {
    text = fmt::format("{:<13}{} ({})   {}\n", name_of(v.outcome), c.implementation, v.target,
                       v.reason);
  }
  return text + fmt::format("replay       attnproof replay '{}'\n", to_text(c));
}

}  // namespace attn::fuzz
