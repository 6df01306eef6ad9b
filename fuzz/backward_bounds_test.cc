// The backward oracle: its values are the reference's, a correct kernel never leaves its bounds,
// and a faulty one does.
#include "fuzz/backward_bounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "fuzz/bounds_fixtures.h"
#include "fuzz/simulated_backward.h"
#include "reference/backward.h"

namespace attn::fuzz {
namespace {

const std::vector<std::string> backward_rows{"flash_backward", "packed_backward",
                                             "block_sparse_backward"};

Case small_case(std::uint64_t seed, int i) {
  Case c = fuzz::small_case(seed, i, backward_rows);
  c.skv = std::min(c.skv, 60);
  for (int& n : c.key_lengths) n = std::min(n, c.skv);
  return c;
}
BackwardBounds bounds_of(const OracleInputs& made, BoundKind kind = BoundKind::working) {
  return bound_backward(made.in, made.mod, made.mask, made.may, kind);
}

// ---- the values --------------------------------------------------------------------------------

double largest(const std::vector<double>& x) {
  double most = 0;
  for (const double v : x)
    if (std::isfinite(v)) most = std::max(most, std::abs(v));
  return most;
}

/// Two passes in fp64: how far may they be apart? The rigorous bound of an all-fp32 kernel that
/// stores fp64, so that nothing but fp32 arithmetic is in it, with 2^-53 in place of 2^-24, twice;
/// 2^-50 of the value where fp32 is exact; and the weights below exp(-104) that the oracle takes
/// for zeros, times the largest product that they may stand in.
struct Distance {
  double vanished;

  void check(const char* name, const std::vector<double>& oracle, const std::vector<double>& exact,
             const std::vector<double>& fp32, const Case& c) const {
    ASSERT_EQ(oracle.size(), exact.size()) << name;
    for (std::size_t n = 0; n < exact.size(); ++n) {
      if (std::isinf(fp32[n])) continue;
      ASSERT_EQ(std::isnan(oracle[n]), std::isnan(exact[n])) << name << " in " << to_text(c);
      if (std::isnan(exact[n])) continue;
      ASSERT_LE(std::abs(oracle[n] - exact[n]),
                0x1p-28 * fp32[n] + 0x1p-50 * std::abs(exact[n]) + vanished)
          << name << " entry " << n << ": " << oracle[n] << " and " << exact[n] << " in "
          << to_text(c);
    }
  }
};

void expect_values_of_reference(const Case& c) {
  const OracleInputs made(c);
  const PassInputs& in = made.in;
  Numerics fp32 = fp32_numerics;
  fp32.storage = DType::f64;
  fp32.delta_from_stored_o = false;
  const BackwardBounds oracle = bounds_of(made),
                       wide = bound_backward(in, made.mod, made.mask, fp32, BoundKind::rigorous);
  if (!oracle.finding.empty() && oracle.finding.starts_with("derivative")) return;
  const reference::DualMod<TreeMod> mod(made.mod);
  const reference::BackwardResult exact = reference::backward(
      reference_batch(in), in.d_o, in.d_lse, mod, reference::ExactMask<TreeMask>(made.mask));

  const double x = 2 * c.dv * largest(in.d_o.values()) * largest(in.v.values()) / (1 - c.dropout) +
                   largest(in.d_lse.values());
  const double pairs = static_cast<double>(c.b) * c.hq * c.sq * c.skv;
  const double operands = std::max({std::abs(in.scale) * largest(in.q.values()),
                                    std::abs(in.scale) * largest(in.k.values()), 1.0});
  constexpr double steepest = 0x1p10;  // of the mods drawn
  const Distance distance{pairs * std::exp(-103.0) *
                          (x * operands * steepest + largest(in.d_o.values()) / (1 - c.dropout))};
  distance.check("dQ", oracle.dq.value.values(), exact.dq.values(), wide.dq.bound.values(), c);
  distance.check("dK", oracle.dk.value.values(), exact.dk.values(), wide.dk.bound.values(), c);
  distance.check("dV", oracle.dv.value.values(), exact.dv.values(), wide.dv.bound.values(), c);
  distance.check("dSink", oracle.d_sink.value, exact.d_sink, wide.d_sink.bound, c);
  ASSERT_EQ(oracle.captured.size(), exact.d_captured.size());
  for (std::size_t n = 0; n < exact.d_captured.size(); ++n) {
    EXPECT_EQ(oracle.captured[n].name, exact.d_captured[n].tensor.name);
    distance.check("captured", oracle.captured[n].value, exact.d_captured[n].values,
                   wide.captured[n].bound, c);
  }
}

TEST(BackwardOracleValues, AreThoseOfTheReference) {
  int sinks = 0, dropouts = 0, packed = 0, captured = 0, incoming = 0;
  for (int i = 0; i < 250; ++i) {
    const Case c = small_case(51, i);
    expect_values_of_reference(c);
    sinks += c.sink, dropouts += c.dropout > 0, packed += !c.query_lengths.empty();
    captured += !c.tables.empty(), incoming += c.d_lse;
  }
  for (const int seen : {sinks, dropouts, packed, captured, incoming}) EXPECT_GE(seen, 15);
}

TEST(BackwardOracleValues, HaveTheClassesOfTheReference) {
  const std::string shape = "v1 B1 Hq2 Hkv1 Sq7 Skv40 D8 Dv3 bf16; seed: 3; impl: flash_backward";
  for (const char* parts :
       {"mod: q == 2 ? log(-1 - abs(score)) : score", "mod: kv < q ? -inf : score", "mask: q > 3",
        "mask: false", "mod: -inf", "fill: nan_keys; mask: kv <= q",
        "mask: false; sink: on; dlse: on",
        "mod: bias[h, kv] + score; table: bias[Hq,Skv]=uniform(-1,1); mask: kv <= q"})
    expect_values_of_reference(parse_case(shape + "; " + parts));
}

TEST(BackwardOracleValues, NothingIsKnownBesideANan) {
  const OracleInputs made(
      parse_case("v1 B1 Hq1 Hkv1 Sq12 Skv40 D8 Dv3 bf16; seed: 3; mask: kv % 12 == q; "
                 "fill: nan_keys; impl: flash_backward"));
  const BackwardBounds bounds = bounds_of(made);
  bool nan = false, poison = false;
  for (std::size_t n = 0; n < bounds.dq.term.values().size(); ++n) {
    nan |= std::isnan(bounds.dq.value.values()[n]);
    poison |= bounds.dq.term.values()[n] == Term::poison;
    EXPECT_TRUE(std::isnan(bounds.dq.value.values()[n]) || std::isinf(bounds.dq.bound.values()[n]));
  }
  EXPECT_TRUE(nan && poison);
}

// ---- exactness ---------------------------------------------------------------------------------

TEST(BackwardOracleBounds, AreZeroWhereTheAnswerIsProved) {
  for (const Fill fill : {Fill::exact_code, Fill::exact_rank})
    for (const DType dtype : {DType::bf16, DType::f16, DType::f32}) {
      Case c = parse_case(
          "v1 B2 Hq4 Hkv2 Sq9 Skv40 D24 Dv10 bf16; scale: 0.125; mask: kv <= q + 3 && q != 5; "
          "impl: flash_backward");
      c.fill = fill;
      c.dtype = dtype;
      const OracleInputs made(c);
      for (const BoundKind kind : {BoundKind::working, BoundKind::rigorous}) {
        const BackwardBounds bounds = bounds_of(made, kind);
        EXPECT_EQ(bounds.rows.one_hot, 64);
        EXPECT_EQ(bounds.rows.empty, 8);
        for (const auto* g : {&bounds.dq, &bounds.dk, &bounds.dv})
          for (const double bound : g->bound.values()) ASSERT_EQ(bound, 0) << name_of(fill);
        for (const auto* g : {&bounds.dq, &bounds.dk})
          for (const double value : g->value.values()) ASSERT_EQ(value, 0);
        EXPECT_GT(largest(bounds.dv.value.values()), 0);
      }
    }
}

/// Ties of two keys: P is 1/2 and dS a half of a whole number, which rounding keeps; so what a
/// kernel stores is the reference's number, wherever the type has it.
TEST(BackwardOracleBounds, PairsOfKeysAreExactAndNotTrivial) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    Case c = parse_case(
        "v1 B1 Hq2 Hkv1 Sq20 Skv40 D24 Dv10 bf16; scale: 0.125; fill: exact_pairs; "
        "impl: flash_backward");
    c.dtype = dtype;
    const BackwardBounds bounds = bounds_of(OracleInputs(c));
    int exact = 0, all = 0;
    for (const auto* g : {&bounds.dq, &bounds.dk, &bounds.dv})
      for (std::size_t n = 0; n < g->value.values().size(); ++n) {
        const double x = g->value.values()[n];
        if (std::abs(x) < 0x1p-20) continue;  // 0, but for the rounding of fp64
        ++all;
        exact += g->bound.values()[n] <= 0x1p-40 * std::abs(x);
      }
    EXPECT_GE(all, 200);
    EXPECT_GE(exact, 0.9 * all);
  }
}

TEST(BackwardOracleBounds, RowsWithoutKeysAddNothing) {
  const OracleInputs made(parse_case(
      "v1 B1 Hq2 Hkv1 Sq9 Skv40 D8 Dv5 bf16; mask: q != 4 && kv != 7; impl: flash_backward"));
  const BackwardBounds bounds = bounds_of(made);
  for (int h = 0; h < 2; ++h)
    for (int d = 0; d < 8; ++d) {
      EXPECT_EQ(bounds.dq.value(0, h, 4, d), 0);
      EXPECT_EQ(bounds.dq.bound(0, h, 4, d), 0);
      EXPECT_GT(bounds.dq.bound(0, h, 5, d), 0);
      EXPECT_EQ(bounds.dk.bound(0, 0, 7, d), 0);
    }
}

TEST(BackwardOracleBounds, TellTheirPower) {
  const std::string shape = "v1 B1 Hq2 Hkv1 Sq40 Skv40 D8 Dv5 bf16; impl: flash_backward; ";
  const BackwardBounds plain = bounds_of(OracleInputs(parse_case(shape + "mask: kv <= q")));
  EXPECT_EQ(plain.powerless_share, 0) << "row 0 has one key, where dS = 0";
  EXPECT_EQ(plain.ambiguous_mass, 0);
  EXPECT_LT(plain.amplification, 2);
  const BackwardBounds jumps =
      bounds_of(OracleInputs(parse_case(shape + "mod: floor(score * 100000)")));
  EXPECT_GT(jumps.ambiguous_mass, 0.05);
  const BackwardBounds steep =
      bounds_of(OracleInputs(parse_case(shape + "mod: 30 * tanh(score * 10000)")));
  EXPECT_GT(steep.amplification, 2);
  EXPECT_GT(steep.powerless_share, 0);
}

// ---- correct kernels, and faulty ones ----------------------------------------------------------

/// Everything that a backward pass writes, in one list.
struct Flat {
  std::vector<double> value, bound;
  void add(const std::vector<double>& v, const std::vector<double>& b) {
    value.insert(value.end(), v.begin(), v.end());
    bound.insert(bound.end(), b.begin(), b.end());
  }
};
Flat flat(const BackwardBounds& x) {
  Flat all;
  for (const auto* g : {&x.dq, &x.dk, &x.dv}) all.add(g->value.values(), g->bound.values());
  for (const auto& g : x.captured) all.add(g.value, g.bound);
  all.add(x.d_sink.value, x.d_sink.bound);
  return all;
}
std::vector<double> flat(const SimulatedGradients& x, const std::vector<CapturedTensor>& tensors) {
  std::vector<double> all;
  for (const auto* g : {&x.dq, &x.dk, &x.dv})
    all.insert(all.end(), g->values().begin(), g->values().end());
  for (const CapturedTensor& t : tensors) {
    const auto gather = [&](const auto& self, std::size_t axis, std::int64_t offset) -> void {
      if (axis == t.extents.size()) {
        const auto found = x.captured.find({t.data, offset});
        return all.push_back(found == x.captured.end() ? 0 : found->second);
      }
      for (std::int64_t i = 0; i < t.extents[axis]; ++i)
        self(self, axis + 1, offset + i * t.strides[axis]);
    };
    gather(gather, 0, 0);
  }
  all.insert(all.end(), x.d_sink.begin(), x.d_sink.end());
  return all;
}

struct Simulator {
  const OracleInputs& made;
  StoredForwardResult given, exact;
  std::vector<CapturedTensor> tensors;

  explicit Simulator(const OracleInputs& m)
      : made(m),
        given(stored_forward_result(m.in, m.mod, m.mask, m.may.storage)),
        exact(stored_forward_result(m.in, m.mod, m.mask, DType::f32)),
        tensors(DualScorer<TreeMod, TreeMask>(m.mod, m.mask).captured({8, 8, 8, 64, 64})) {}
  std::vector<double> run(const BackwardSimulation& how) const {
    return flat(
        SimulatedBackward(made.in, given, exact.o, made.mod, made.mask, made.may.storage, how)
            .run(),
        tensors);
  }
};

bool plain_case(const BackwardBounds& bounds) {
  return bounds.finding.empty() && stays_finite(flat(bounds).value);
}

TEST(BackwardOracleBounds, NoCorrectKernelLeavesThem) {
  Worst worst[2];
  constexpr BoundKind kinds[] = {BoundKind::working, BoundKind::rigorous};
  for (int i = 0; i < 200; ++i) {
    const Case c = small_case(52, i);
    OracleInputs made(c);
    const bool tf32 = c.dtype == DType::f32 && i / 5 % 2;
    if (tf32) made.may.input_rounding = 0x1p-11, made.may.tensor_core = true;
    const BackwardBounds bounds[] = {bounds_of(made, kinds[0]), bounds_of(made, kinds[1])};
    if (!plain_case(bounds[0])) continue;
    const Simulator simulator(made);
    for (int n = 0; n < 5; ++n) {
      BackwardSimulation how = drawn_backward_variant(c, n);
      how.tf32 = tf32;
      how.tensor_core |= tf32 && n % 2;
      const std::vector<double> got = simulator.run(how);
      for (int kind = 0; kind < 2; ++kind) {
        const Flat expected = flat(bounds[kind]);
        ASSERT_EQ(got.size(), expected.value.size());
        worst[kind].add(got, expected.value, expected.bound);
        ASSERT_EQ(worst[kind].missed, 0)
            << "kind " << kind << ", variant " << n << ", case " << i << ", " << to_text(c);
      }
    }
  }
  for (int kind = 0; kind < 2; ++kind)
    std::printf("%s: %lld elements, worst error %.2f of the bound\n", kind ? "rigorous" : "working",
                static_cast<long long>(worst[kind].compared), worst[kind].ratio);
  EXPECT_GE(worst[0].compared, 500000);
  EXPECT_GT(worst[0].ratio, 0.25) << "bounds that no correct kernel comes near would see little";
}

/// A fault counts where it can be seen: some element moves by more than 4 units of the storage type
/// of the largest in its part of the output.
bool is_material(const std::vector<double>& faulty, const std::vector<double>& right,
                 DType storage) {
  const double size = largest(right);
  double moved = 0;
  for (std::size_t n = 0; n < right.size(); ++n) {
    if (!(std::abs(faulty[n] - right[n]) < unbounded)) return true;
    moved = std::max(moved, std::abs(faulty[n] - right[n]));
  }
  return moved > 8 * unit_roundoff(storage) * size;
}

TEST(BackwardOracleBounds, FaultyKernelsLeaveThem) {
  int seen[backward_fault_count] = {}, material[backward_fault_count] = {};
  for (int i = 0; i < 450; ++i) {
    Case c = small_case(53, i);
    if (i % 4 == 0) c.hq = 4, c.hkv = 2;  // a wrong KV head takes two of them
    const OracleInputs made(c);
    const BackwardBounds bounds = bounds_of(made);
    if (!plain_case(bounds)) continue;
    const Flat expected = flat(bounds);
    const Simulator simulator(made);
    BackwardSimulation how = drawn_backward_variant(c, 0);
    const std::vector<double> right = simulator.run(how);
    for (int f = 1; f < backward_fault_count; ++f) {
      how.fault = static_cast<BackwardFault>(f);
      const std::vector<double> faulty = simulator.run(how);
      if (!is_material(faulty, right, c.dtype)) continue;
      Worst worst;
      worst.add(faulty, expected.value, expected.bound);
      ++material[f];
      seen[f] += worst.missed > 0;
    }
  }
  constexpr const char* names[] = {"none",          "no delta",
                                   "half of delta", "wrong KV head",
                                   "no derivative", "missing query block",
                                   "drop tail key", "scale + 1 %",
                                   "dK not scaled", "no dropout in dP",
                                   "no dLSE",       "one element + 3 %",
                                   "captured row"};
  for (int f = 1; f < backward_fault_count; ++f) {
    std::printf("%-20s seen in %3d of %3d material cases\n", names[f], seen[f], material[f]);
    EXPECT_GE(material[f], 8) << names[f];
    EXPECT_GE(seen[f], 0.9 * material[f]) << names[f];
  }
}

}  // namespace
}  // namespace attn::fuzz
