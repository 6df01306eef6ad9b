// Relations between forward runs, up to rounding: within the errors of fuzz/relation_errors.h.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fuzz/case_sequences.h"
#include "fuzz/relation_errors.h"
#include "fuzz/relations.h"

namespace attn::fuzz {
namespace {

using Values = Tensor<double, 4>;
using At = std::array<std::int64_t, 4>;

/// What O and LSE of another run should be, and how many times E_L and E_O they may be off.
struct Expected {
  const Outputs& outputs;
  double shift = 0;  ///< of LSE
  double times = 2;
};
std::string difference(const RelationRun& r, const Outputs& got, const Expected& expected) {
  const RelationErrors errors(r.c, r.in);
  const Values &o = expected.outputs.at("O"), &lse = expected.outputs.at("LSE");
  for (int b = 0; b < r.c.b; ++b)
    for (int h = 0; h < r.c.hq; ++h) {
      std::vector<double> largest;
      for (int d = 0; d < r.c.dv; ++d) largest.push_back(errors.largest_value(b, h, d));
      for (int i = 0; i < static_cast<int>(r.in.sequences[b].sizes.sq); ++i) {
        const double a = errors.largest_score(b, h, i), wanted = lse(b, h, i, 0) + expected.shift,
                     e = expected.times * errors.lse(b, a) + 4 * u32 * std::abs(expected.shift);
        if (const double x = got.at("LSE")(b, h, i, 0); !within(x, wanted, e))
          return off(fmt::format("LSE[b{} h{} q{}]", b, h, i), x, wanted, e);
        for (int d = 0; d < r.c.dv; ++d) {
          const double y = o(b, h, i, d), bound = expected.times * errors.o(b, a, largest[d], y);
          if (const double x = got.at("O")(b, h, i, d); !within(x, y, bound))
            return off(fmt::format("O[b{} h{} q{} d{}]", b, h, i, d), x, y, bound);
        }
      }
    }
  return {};
}

// ---- fitted ------------------------------------------------------------------------------------

std::optional<Case> forward(Case c) {
  return row_of(c).pass == Pass::forward ? plain(std::move(c)) : std::nullopt;
}
std::optional<Case> without_mask(Case c) {
  c.mask = condition_constant(true);
  return forward(std::move(c));
}
std::optional<Case> decode(Case c) {
  return has_cache(row_of(c)) ? forward(std::move(c)) : std::nullopt;
}
/// The last rows of a causal pass.
std::optional<Case> step(Case c) {
  if (!has_cache(row_of(c)) || c.skv < c.sq || c.skv == 0) return {};
  c.key_lengths.clear();
  c.mask = apply_op(Op::less_equal, {variable(Op::kv), variable(Op::q)});
  c.layout = Layout::bhsd;
  return forward(std::move(c));
}
/// Any mod: its errors are the same above and below.
std::optional<Case> averaging(Case c) {
  if (row_of(c).pass != Pass::forward || c.b == 0 || c.hkv == 0) return {};
  c.sink = false, c.dropout = 0;
  if (c.fill == Fill::nan_keys) c.fill = Fill::gaussian;
  return c;
}

// ---- runs held against each other --------------------------------------------------------------

std::string broken_by_key_order(const RelationRun& r) {
  PassInputs in = r.in;
  for (Values* x : {&in.k, &in.v})
    *x = gathered(*x, x->extents(), [&](At i) {
      const int keys = in.sequences[i[0]].sizes.skv;
      if (i[2] < keys) i[2] = keys - 1 - i[2];
      return i;
    });
  return difference(r, r.run(r.c, in), {r.run(r.c, r.in)});
}

std::string broken_by_shift(const RelationRun& r) {
  constexpr double shift = 4;
  Case c = r.c;
  c.mod = apply_op(Op::add, {c.mod, real_constant(shift)});
  return difference(r, r.run(c, r.in), {r.run(r.c, r.in), shift, 3});
}

std::string broken_by_splits(const RelationRun& r) {
  Case one = r.c, three = r.c;
  one.splits = 1, three.splits = 3;
  return difference(r, r.run(three, r.in), {r.run(one, r.in)});
}

/// The odd keys and the even ones apart, merged by LSE in fp64.
std::string broken_by_halves(const RelationRun& r) {
  const auto half = [&](int rest) {
    Case c = r.c;
    c.mask = apply_op(
        Op::logical_and,
        {c.mask,
         apply_op(Op::equal, {apply_op(Op::remainder, {variable(Op::kv), index_constant(2)}),
                              index_constant(rest)})});
    return r.run(c, r.in);
  };
  Outputs merged = half(0);
  const Outputs odd = half(1);
  Values &o = merged.at("O"), &lse = merged.at("LSE");
  const auto& e = o.extents();
  for (std::int64_t b = 0; b < e[0]; ++b)
    for (std::int64_t h = 0; h < e[1]; ++h)
      for (std::int64_t i = 0; i < e[2]; ++i) {
        const double one = lse(b, h, i, 0), two = odd.at("LSE")(b, h, i, 0), m = std::max(one, two);
        if (std::isinf(m)) continue;  // no key in either
        const double x = std::exp(one - m), y = std::exp(two - m);
        lse(b, h, i, 0) = m + std::log(x + y);
        for (std::int64_t d = 0; d < e[3]; ++d)
          o(b, h, i, d) = (x * o(b, h, i, d) + y * odd.at("O")(b, h, i, d)) / (x + y);
      }
  // each half by E_O and E_L, which moves the weights, and the whole by E_O
  return difference(r, r.run(r.c, r.in), {merged, 0, 4});
}

std::string broken_by_step(const RelationRun& r) {
  Case c = r.c;
  c.implementation = "flash_forward", c.sq = c.skv, c.page_size = 0, c.splits = 0;
  PassInputs in = inputs_of(c);
  in.k = r.in.k, in.v = r.in.v;
  for (int b = 0; b < c.b; ++b)
    for (int h = 0; h < c.hq; ++h)
      for (int i = 0; i < r.c.sq; ++i)
        for (int d = 0; d < c.d; ++d) in.q(b, h, c.skv - r.c.sq + i, d) = r.in.q(b, h, i, d);
  const Outputs whole = r.run(c, in);
  Outputs last;
  for (const auto& [name, x] : whole)
    last[name] = gathered(x, {c.b, c.hq, r.c.sq, x.extents()[3]}, [&](At i) {
      i[2] += c.skv - r.c.sq;
      return i;
    });
  return difference(r, r.run(r.c, r.in), {last});
}

/// Numerator and denominator are sums of the same weights, but for P rounded above.
std::string broken_by_ones(const RelationRun& r) {
  PassInputs in = r.in;
  std::fill(in.v.values().begin(), in.v.values().end(), 1.0);
  const Outputs got = r.run(r.c, in);
  const RelationErrors errors(r.c, in);
  for (int b = 0; b < r.c.b; ++b)
    for (int h = 0; h < r.c.hq; ++h)
      for (int i = 0; i < r.in.sequences[b].sizes.sq; ++i) {
        const double lse = got.at("LSE")(b, h, i, 0), n = errors.keys(b);
        if (std::isnan(lse) || lse == std::numeric_limits<double>::infinity()) continue;
        const double wanted = std::isinf(lse) ? 0 : 1;
        const double inner = errors.probability() + 2 * errors.sum(n) + n * errors.underflow() +
                             0x1p-20 * (std::abs(lse) + std::log(n + 1) + 1);
        const double bound = wanted * (inner + errors.output() * (1 + inner));
        for (int d = 0; d < r.c.dv; ++d)
          if (const double x = got.at("O")(b, h, i, d); !within(x, wanted, bound))
            return off(fmt::format("O[b{} h{} q{} d{}] of V = 1", b, h, i, d), x, wanted, bound);
      }
  return {};
}

}  // namespace

std::span<const Relation> bounded_relations() {
  static constexpr Relation all[] = {
      {"key_order", "keys in another order give the same, without mod and mask", "2 E_O, 2 E_L",
       without_mask, broken_by_key_order},
      {"shifted_scores", "4 added to every score adds 4 to LSE and nothing to O", "3 E_O, 3 E_L",
       forward, broken_by_shift},
      {"merged_halves", "odd and even keys apart, merged by LSE, give the whole", "4 E_O, 4 E_L",
       forward, broken_by_halves},
      {"other_splits", "one part and three parts of the keys give the same", "2 E_O, 2 E_L", decode,
       broken_by_splits},
      {"decode_step", "a step of decoding is the last rows of a causal forward pass",
       "2 E_O, 2 E_L", step, broken_by_step},
      {"ones", "V = 1 gives O = 1, whatever the weights", "u_P + u_out and the sums", averaging,
       broken_by_ones},
  };
  return all;
}

}  // namespace attn::fuzz
