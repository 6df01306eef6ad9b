#include <algorithm>
#include <cmath>
#include <limits>

#include "fuzz/examination.h"
#include "fuzz/examined.h"

namespace attn::fuzz {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double fp64_over_fp32 = 0x1p-29;  ///< unit roundoffs: a bound for fp32 is one for fp64

/// The regimes of scores that fills make, both signs, exact in fp32.
constexpr double scores[] = {-4e5,  -2e4, -100, -24, -3.5, -1,  -0.25, 0,
                             0.125, 0.5,  1,    6,   30,   100, 2e4,   4e5};
constexpr double small_score = 100;

bool same_bits(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

class ModExamination {
 public:
  ModExamination(const Case& c, const FixedLengths& fixed) : c_(c), fixed_(fixed) {}

  ModReport run() {
    for (const Sizes& sizes : examined_sizes(fixed_)) {
      const Examined examined(c_, sizes), again(c_, sizes);
      std::vector<Pair> pairs = pairs_of(sizes, 40, c_.seed);
      std::erase_if(pairs, [&](const Pair& at) { return !attends(examined, at); });
      report_.pairs += static_cast<std::int64_t>(pairs.size());
      purity(examined, again, pairs);
      for (const Pair& at : pairs) {
        for (const double s : scores) values(examined, at, s);
        ranges(examined, at);
      }
      for (std::size_t n = 0; n < pairs.size(); n += 3) derivatives(examined, pairs[n]);
      for (std::size_t n = 0; n < pairs.size(); n += 7) jumps(examined, pairs[n]);
    }
    overflow();
    std::stable_sort(report_.jumps.begin(), report_.jumps.end(),
                     [](const Jump& a, const Jump& b) { return a.size > b.size; });
    if (report_.jumps.size() > 3) report_.jumps.resize(3);
    if (faults_.lines.empty()) report_.determined = determinations(c_, fixed_);
    report_.wrong = faults_.lines;
    return report_;
  }

 private:
  bool attends(const Examined& x, const Pair& at) {
    return faults_
        .tried("mask", name_of(at, x.sizes), [&] { return x.probe().attends(x.sizes, at); })
        .value_or(false);
  }

  static std::string place(const Examined& x, const Pair& at, double s) {
    return fmt::format("score {:g}, {}", s, name_of(at, x.sizes));
  }

  /// The same call gives the same bits: again, in the opposite order, and of another copy.
  void purity(const Examined& x, const Examined& again, const std::vector<Pair>& pairs) {
    const auto all = [&](const Examined& of, bool backwards) {
      std::vector<double> results;
      for (std::size_t n = 0; n < pairs.size(); ++n) {
        const Pair& at = pairs[backwards ? pairs.size() - 1 - n : n];
        results.push_back(faults_
                              .tried("captured read", name_of(at, x.sizes),
                                     [&] { return of.probe().exact(x.sizes, at, 1.5, {}); })
                              .value_or(0));
      }
      if (backwards) std::reverse(results.begin(), results.end());
      return results;
    };
    const std::vector<double> first = all(x, false);
    const std::pair<const char*, std::vector<double>> others[] = {
        {"a second time", all(x, false)},
        {"in the opposite order", all(x, true)},
        {"by a second copy", all(again, false)}};
    for (const auto& [how, results] : others)
      for (std::size_t n = 0; n < pairs.size(); ++n)
        if (!same_bits(first[n], results[n]))
          faults_.add("not pure", fmt::format("{:.9g}, called {} {:.9g}, at {}", first[n], how,
                                              results[n], place(x, pairs[n], 1.5)));
  }

  /// One value on every number type, within what the rounded number allows for.
  void values(const Examined& x, const Pair& at, double s) {
    const std::string where = place(x, at, s);
    faults_.tried("captured read", where, [&] {
      const double y = x.probe().exact(x.sizes, at, s, {});
      int reads = 0;
      const Dual<double> dual = x.probe().dual(x.sizes, at, s, -1, reads);
      const Rounded bound = x.probe().rounded(x.sizes, at, {s, 0.0}, {});
      const auto compare = [&](const char* type, double got) {
        if (!same_bits(got, y))
          faults_.add("number types differ",
                      fmt::format("{:.9g} on double, {:.9g} on {}, at {}", y, got, type, where));
      };
      compare("a dual number", dual.v);
      compare("a number with an error", bound.v);
      single(y, bound, x.probe().single(x.sizes, at, static_cast<float>(s)), "fp32", where);
      if (const auto plain = x.probe().plain(at, static_cast<float>(s))) {
        report_.reads_other_operator = true;
        single(y, bound, *plain, "its operator on plain numbers", where);
      }
      if (std::isnan(y) || y == inf)
        faults_.add("not a number to attend with", fmt::format("{} at {}", y, where));
      else if (y == -inf)
        ++report_.masked;
      else if (!std::isfinite(dual.d))
        faults_.add("derivative not finite", fmt::format("{} at {}", dual.d, where));
      if (std::isfinite(y)) {
        report_.least = std::min(report_.least, y);
        report_.greatest = std::max(report_.greatest, y);
        if (std::abs(s) <= small_score)
          report_.greatest_of_small = std::max(report_.greatest_of_small, std::abs(y));
      }
      return true;
    });
  }

  void single(double y, const Rounded& bound, double got, const char* how,
              const std::string& where) {
    const bool agrees = same_bits(got, y) || std::abs(got - y) <= bound.e || std::isinf(bound.e) ||
                        (bound.may_be_minus_infinity && got == -inf);
    if (!agrees)
      faults_.add("number types differ", fmt::format("{:.9g} on double, {:.9g} by {}, which may be "
                                                     "off by {:.3g}, at {}",
                                                     y, got, how, bound.e, where));
  }

  /// A range holds every value of its box.
  void ranges(const Examined& x, const Pair& at) {
    const std::uint64_t hash = hash_of(c_.seed, at.q, at.kv);
    const PairBox box = box_at(x.sizes, at, hash);
    const double low = scores[hash / 16 % std::size(scores)];
    const double high = low + static_cast<double>(hash / 256 % 8);
    const std::string where =
        fmt::format("scores {:g} to {:g}, {}", low, high, name_of(box, x.sizes));
    const auto range = faults_.tried("index arithmetic", where, [&] {
      return x.probe().range(x.sizes, box, Range<double>(low, high));
    });
    if (!range) return;
    ++report_.boxes;
    report_.unknown_boxes += range->unknown();
    for (int q = box.first.q; q <= box.last.q; ++q)
      for (int kv = box.first.kv; kv <= box.last.kv; ++kv)
        for (const double s : {low, (low + high) / 2, high}) {
          const double y = faults_
                               .tried("captured read", where,
                                      [&] {
                                        return x.probe().exact(x.sizes, {at.b, at.h, q, kv}, s, {});
                                      })
                               .value_or(range->low);
          if (!range->unknown() && !(range->low <= y && y <= range->high))
            faults_.add("range unsound",
                        fmt::format("{:.9g} is outside {:.9g} to {:.9g}, the answer for {}", y,
                                    range->low, range->high, where));
        }
  }

  /// f(z), and the same with an error, as the score or a captured read moves by z.
  struct Curve {
    const Examined& x;
    const Pair& at;
    double s;
    int read;  ///< -1: the score moves

    double operator()(double z) const {
      return read < 0 ? x.probe().exact(x.sizes, at, s + z, {})
                      : x.probe().exact(x.sizes, at, s, {read, z});
    }
    Rounded around(double error) const {
      return read < 0 ? x.probe().rounded(x.sizes, at, {s, error}, {})
                      : x.probe().rounded(x.sizes, at, {s, 0.0}, {read, error});
    }
  };

  void derivatives(const Examined& x, const Pair& at) {
    for (const double s : {-24.0, -3.5, -0.3, 0.7, 1.9, 6.0, 30.5})
      faults_.tried("captured read", place(x, at, s), [&] {
        int reads = 0;
        slope(x, at, s, -1, x.probe().dual(x.sizes, at, s, -1, reads).d);
        for (int read = 0; read < reads; ++read)
          slope(x, at, s, read, x.probe().dual(x.sizes, at, s, read, reads).d);
        return true;
      });
  }

  /// Central differences D(h) and D(h/2) are off by c h^2 + ... and a quarter of that, so that
  /// D(h/2) is within |D(h) - D(h/2)| / 3 of the derivative, and by the rounding of f over h
  /// beside. The whole of |D(h) - D(h/2)| is allowed for: the terms that follow are far smaller.
  void slope(const Examined& x, const Pair& at, double s, int read, double claimed) {
    const Curve f{x, at, s, read};
    const double h = 0x1p-17 * std::exp2(std::ceil(std::log2(std::max(1.0, std::abs(s)))));
    const Rounded around = f.around(h);
    if (around.ambiguous) return void(++report_.near_branches);
    const double rounding = fp64_over_fp32 * f.around(0).e;  // of f within h: much the same
    const Dual<Rounded> own = x.probe().rounded_dual(x.sizes, at, s, read);
    const double wide = (f(h) - f(-h)) / (2 * h), narrow = (f(h / 2) - f(-h / 2)) / h;
    // z itself is rounded when it is added to s or to the entry
    const double allowed = std::abs(wide - narrow) + 4 * rounding / h +
                           std::abs(narrow) * 0x1p-50 * std::max(1.0, std::abs(s)) / h +
                           fp64_over_fp32 * own.d.e;
    if (!std::isfinite(allowed)) return void(++report_.not_comparable);
    ++(read < 0 ? report_.derivatives : report_.captured_derivatives);
    if (!(std::abs(claimed - narrow) <= allowed))
      faults_.add(
          read < 0 ? "wrong derivative" : "wrong derivative to a captured tensor",
          fmt::format("{:.9g}, but differences give {:.9g} +- {:.1g}{}, at {}", claimed, narrow,
                      allowed, read < 0 ? std::string() : fmt::format(", to read {}", read),
                      place(x, at, s)));
  }

  /// Looks for scores where a branch flips and the value jumps. A number with an error says where
  /// no branch can flip; the rest is halved until it is short, and then by the larger difference.
  void jumps(const Examined& x, const Pair& at) {
    constexpr double from = -32, to = 32, shortest = 0x1p-16;
    constexpr std::size_t most = 64;
    const auto flips = [&](double low, double high) {
      const double middle = (low + high) / 2;
      const Rounded y = x.probe().rounded(x.sizes, at, {middle, high - middle}, {});
      return y.ambiguous || (std::isinf(y.e) && std::isfinite(rounding_at(x, at, low)) &&
                             std::isfinite(rounding_at(x, at, high)));
    };
    faults_.tried("captured read", name_of(at, x.sizes), [&] {
      std::vector<std::pair<double, double>> live{{from, to}};
      while (!live.empty() && live.front().second - live.front().first > shortest) {
        std::vector<std::pair<double, double>> halves;
        for (const auto& [low, high] : live) {
          const double middle = (low + high) / 2;
          for (const auto& half : {std::pair(low, middle), {middle, high}})
            if (halves.size() < most && flips(half.first, half.second)) halves.push_back(half);
        }
        live = std::move(halves);
      }
      for (const auto& [low, high] : live) jump_within(x, at, low, high);
      return true;
    });
  }

  double rounding_at(const Examined& x, const Pair& at, double s) const {
    return x.probe().rounded(x.sizes, at, {s, 0.0}, {}).e;
  }

  void jump_within(const Examined& x, const Pair& at, double low, double high) {
    const auto f = [&](double s) { return x.probe().exact(x.sizes, at, s, {}); };
    // what fp32 loses here anyway, from where no branch may flip
    double loss = 0;
    for (const double away : {-1.0, 1.0})
      for (double step = high - low; step < 1; step *= 2) {
        const Rounded y =
            x.probe().rounded(x.sizes, at, {(away < 0 ? low : high) + away * step, 0.0}, {});
        if (y.ambiguous) continue;
        loss += y.e;
        break;
      }
    for (double middle = (low + high) / 2; low < middle && middle < high;
         middle = (low + high) / 2) {
      const double at_middle = f(middle);
      (std::abs(at_middle - f(low)) > std::abs(f(high) - at_middle) ? high : low) = middle;
    }
    // a kink changes by no more than its sides do over the same width
    const double width = high - low, size = std::abs(f(high) - f(low));
    const double beside = std::abs(f(low) - f(low - width)) + std::abs(f(high + width) - f(high));
    if (!(size > loss + beside)) return;
    ++report_.jumps_found;
    report_.jumps.push_back({high, size, name_of(at, x.sizes)});
  }

  /// Index arithmetic at the largest lengths: a range of one pair is exact, in 64 bits.
  void overflow() {
    const Sizes sizes = largest_examined(c_, fixed_);
    const Examined x(c_, sizes);
    for (const Pair& at : pairs_of(sizes, 48, c_.seed)) {
      const std::string where = name_of(at, sizes);
      const auto attended = faults_.tried("index arithmetic of the mask", where, [&] {
        return x.probe().attends_range(sizes, {at, at}).can_be_true;
      });
      if (attended.value_or(false))
        faults_.tried("index arithmetic", where, [&] {
          return x.probe().range(sizes, {at, at}, Range<double>(1.0)).low;
        });
    }
  }

  const Case& c_;
  const FixedLengths& fixed_;
  ModReport report_;
  Faults faults_;
};

}  // namespace

ModReport examine_mod(const Case& c, const FixedLengths& fixed) {
  return ModExamination(c, fixed).run();
}

}  // namespace attn::fuzz
