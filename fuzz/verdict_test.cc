// The verdict on one case: what passes, what does not, and what the report says.
#include "fuzz/verdict.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "fuzz/inputs.h"
#include "fuzz/table_spec.h"
#include "mods/lang/tree_functor.h"

namespace attn::fuzz {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// A case with its bounds, and outputs that begin as the reference's, rounded to the storage type.
struct Judged {
  Case c;
  TableStore tables;
  TreeMod mod;
  TreeMask mask;
  PassInputs in;
  ForwardBounds bounds;
  Tensor<double, 4> o, lse;

  explicit Judged(const std::string& text)
      : c(parse_case(text)),
        tables(c.tables, c.sizes(), c.seed),
        mod(c.mod, tables.tables()),
        mask(c.mask, tables.tables()),
        in(make_inputs(c, mod, mask)),
        bounds(bound_forward(in, mod, mask, flash_numerics(c.dtype))),
        o(bounds.o),
        lse({c.b, c.hq, c.sq, 1}) {
    for (double& x : o.values()) x = rounded_to(c.dtype, x);
    lse.values() = bounds.lse.values();
  }
  Verdict verdict() const {
    return judge(c, in, expect(bounds, c.dtype, false), {o, lse}, [this] {
      return expect(bound_forward(in, mod, mask, flash_numerics(c.dtype), BoundKind::rigorous),
                    c.dtype, false);
    });
  }
  Outcome outcome() const { return verdict().outcome; }
};

const std::string plain = "v1 B2 Hq4 Hkv2 Sq6 Skv9 D8 Dv4 bf16; seed: 5";

/// The outcome when one element of O, one of LSE, is replaced.
Outcome with_o(Judged j, double value) {
  j.o(1, 2, 3, 1) = value;
  return j.outcome();
}
Outcome with_lse(Judged j, double value) {
  j.lse(1, 2, 3, 0) = value;
  return j.outcome();
}

TEST(Verdict, TheReferenceItselfPasses) {
  const Judged j(plain);
  EXPECT_EQ(j.outcome(), Outcome::pass);
  EXPECT_EQ(j.verdict().rows.general, 48);
  EXPECT_FALSE(is_failure(Outcome::pass));
}

TEST(Verdict, ANanNeverPasses) {
  const Judged j(plain);
  EXPECT_EQ(with_o(j, nan), Outcome::discrepancy);
  EXPECT_EQ(with_lse(j, nan), Outcome::discrepancy);
  Judged loose = j;  // not even where anything else would
  for (double& bound : loose.bounds.o_bound.values()) bound = inf;
  loose.bounds.powerless_share = 0;
  EXPECT_EQ(with_o(loose, 1e30), Outcome::pass);
  EXPECT_EQ(with_o(loose, nan), Outcome::discrepancy);
}

TEST(Verdict, ANanInTheReferenceIsAFinding) {
  Judged j("v1 B1 Hq1 Hkv1 Sq6 Skv9 D8 Dv4 bf16; mod: log(score)");
  EXPECT_EQ(j.outcome(), Outcome::finding);
  EXPECT_TRUE(is_failure(j.outcome()));
  EXPECT_NE(j.verdict().reason.find("kv="), std::string::npos) << j.verdict().reason;
  j.o(0, 0, 2, 1) = 0;  // a number where the contract says NaN
  EXPECT_EQ(j.outcome(), Outcome::discrepancy);
}

TEST(Verdict, NansThatTheCaseAsksForMustReachTheirRowsAndNoOther) {
  Judged j("v1 B1 Hq1 Hkv1 Sq40 Skv40 D8 Dv4 bf16; mask: kv <= q; fill: nan_keys; seed: 1");
  ASSERT_GT(j.bounds.rows.not_finite, 0);
  ASSERT_LT(j.bounds.rows.not_finite, 40);
  EXPECT_EQ(j.outcome(), Outcome::pass);
  for (const auto q : {0, 39}) {
    Judged other = j;
    other.o(0, 0, q, 0) = std::isnan(j.o(0, 0, q, 0)) ? 0 : nan;
    EXPECT_EQ(other.outcome(), Outcome::discrepancy) << q;
  }
}

TEST(Verdict, ComparesWithTheBound) {
  const Judged j(plain);
  const double reference = j.bounds.o(1, 2, 3, 1), bound = j.bounds.o_bound(1, 2, 3, 1);
  EXPECT_EQ(with_o(j, reference + bound * 0.99), Outcome::pass);
  EXPECT_EQ(with_o(j, reference - bound * 0.99), Outcome::pass);
  EXPECT_EQ(with_o(j, reference + bound * 1.01), Outcome::discrepancy);
  EXPECT_EQ(with_o(j, reference - bound * 1.01), Outcome::discrepancy);
  const double lse = j.bounds.lse(1, 2, 3), lse_bound = j.bounds.lse_bound(1, 2, 3);
  EXPECT_EQ(with_lse(j, lse + lse_bound * 0.99), Outcome::pass);
  EXPECT_EQ(with_lse(j, lse - lse_bound * 1.01), Outcome::discrepancy);
}

TEST(Verdict, InfinitiesAreAClassOfTheirOwn) {
  const Judged j(plain);
  EXPECT_EQ(with_o(j, inf), Outcome::discrepancy);
  EXPECT_EQ(with_lse(j, -inf), Outcome::discrepancy);
  EXPECT_EQ(with_lse(j, inf), Outcome::discrepancy);
}

TEST(Verdict, AnOverflowPassesWhereTheBoundReachesIt) {
  Judged j("v1 B1 Hq1 Hkv1 Sq2 Skv9 D8 Dv4 fp16");
  j.bounds.o(0, 0, 1, 2) = 65500;
  j.bounds.o_bound(0, 0, 1, 2) = 30;
  const auto with = [&](double value) {
    j.o(0, 0, 1, 2) = value;
    return j.outcome();
  };
  EXPECT_EQ(with(65504), Outcome::pass);
  EXPECT_EQ(with(inf), Outcome::pass);
  EXPECT_EQ(with(-inf), Outcome::discrepancy);
  EXPECT_EQ(with(nan), Outcome::discrepancy);
  j.bounds.o_bound(0, 0, 1, 2) = 3;
  EXPECT_EQ(with(inf), Outcome::discrepancy);
  j.c.dtype = DType::bf16;  // whose numbers go on
  j.bounds.o_bound(0, 0, 1, 2) = 30;
  EXPECT_EQ(with(inf), Outcome::discrepancy);
}

TEST(Verdict, EmptyRowsAreExact) {
  Judged j("v1 B1 Hq1 Hkv1 Sq6 Skv9 D8 Dv4 bf16; mask: q != 2");
  ASSERT_EQ(j.bounds.rows.empty, 1);
  EXPECT_EQ(j.outcome(), Outcome::pass);
  j.o(0, 0, 2, 3) = -0.0;
  EXPECT_EQ(j.outcome(), Outcome::pass) << "-0 is 0";
  j.o(0, 0, 2, 3) = std::numeric_limits<double>::denorm_min();
  EXPECT_EQ(j.outcome(), Outcome::discrepancy);
  j.o(0, 0, 2, 3) = 0;
  for (const double wrong : {0.0, inf, nan, -1e30}) {
    j.lse(0, 0, 2, 0) = wrong;
    EXPECT_EQ(j.outcome(), Outcome::discrepancy) << wrong;
  }
}

TEST(Verdict, ABoundOfZeroAllowsNothing) {
  Judged j("v1 B1 Hq1 Hkv1 Sq6 Skv9 D24 Dv4 bf16; fill: exact_code; scale: 0.125");
  ASSERT_EQ(j.bounds.rows.one_hot, 6);
  EXPECT_EQ(j.outcome(), Outcome::pass);
  Judged off = j;
  off.o(0, 0, 3, 0) += 0x1p-7;
  EXPECT_EQ(off.outcome(), Outcome::discrepancy);
  EXPECT_TRUE(off.verdict().discrepancy.proved);
  j.lse(0, 0, 3, 0) = 0x1p-126;
  EXPECT_EQ(j.outcome(), Outcome::discrepancy);
}

TEST(Verdict, MistrustsBoundsWithoutPower) {
  const Judged j(plain);
  const auto reason = [&](auto change) {
    Judged other = j;
    change(other.bounds);
    const Verdict v = other.verdict();
    EXPECT_EQ(v.outcome, Outcome::mistrusted);
    EXPECT_FALSE(is_failure(v.outcome));
    return v.reason;
  };
  EXPECT_NE(reason([](ForwardBounds& b) { b.ambiguous_mass = 0.06; }).find("flip"),
            std::string::npos);
  EXPECT_NE(reason([](ForwardBounds& b) { b.amplification = 11; }).find("11 times"),
            std::string::npos);
  EXPECT_NE(reason([](ForwardBounds& b) { b.powerless_share = 0.01; }).find("1.0 %"),
            std::string::npos);
  EXPECT_NE(reason([](ForwardBounds& b) { b.zero_share = 0.71; }).find("71 %"), std::string::npos);
  Judged wrong = j;  // mistrust excuses nothing
  wrong.bounds.ambiguous_mass = 1;
  EXPECT_EQ(with_o(wrong, 1e9), Outcome::discrepancy);
}

TEST(Verdict, ProvedIsOutsideTheRigorousBound) {
  Judged j("v1 B1 Hq1 Hkv1 Sq6 Skv200 D8 Dv4 bf16");
  const ForwardBounds rigorous =
      bound_forward(j.in, j.mod, j.mask, flash_numerics(j.c.dtype), BoundKind::rigorous);
  const double reference = j.bounds.o(0, 0, 3, 1), working = j.bounds.o_bound(0, 0, 3, 1),
               most = rigorous.o_bound(0, 0, 3, 1);
  ASSERT_GT(most, 1.1 * working) << "200 keys";
  const auto proved = [&](double error) {
    j.o(0, 0, 3, 1) = reference + error;
    EXPECT_EQ(j.outcome(), Outcome::discrepancy);
    return j.verdict().discrepancy.proved;
  };
  EXPECT_FALSE(proved(working * 1.01));
  EXPECT_TRUE(proved(most * 1.01));
  EXPECT_TRUE(proved(nan));
}

TEST(Report, SaysWhatWhereAndHowToRunItAgain) {
  Judged j(plain);
  const double reference = j.bounds.o(1, 2, 3, 1);
  j.o(1, 2, 3, 1) = 123.5;
  Verdict v = j.verdict();
  v.target = "warp";
  const std::string text = report(j.c, v);
  const auto expect = [&](const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  };
  expect("discrepancy  flash_forward (warp)");
  expect("O[b1 h2 q3 d1] got 123.5  reference " + std::to_string(reference).substr(0, 6));
  expect("bound ");
  expect("(mostly " + std::string(name_of(j.bounds.o_term(1, 2, 3, 1))) + ")");
  expect("where        1 of 192 elements, 1 of 48 rows, batch 1, head 2, queries 3, channels 1");
  expect("keys end in a partial tile of 9");
  expect("proved       no order of rounding reaches this value");
  expect("replay       attnproof replay '" + to_text(j.c) + "'");
}

TEST(Report, OfTheWorstElementAndThePatternOfAll) {
  Judged j(plain);
  j.o(0, 1, 2, 3) += 10;
  j.o(1, 1, 5, 3) += 1000;
  const Verdict v = j.verdict();
  EXPECT_EQ(v.discrepancy.at, (std::array<std::int64_t, 4>{1, 1, 5, 3}));
  EXPECT_NE(
      v.discrepancy.where.find("2 of 192 elements, 2 of 48 rows, head 1, queries 2..5, channels 3"),
      std::string::npos)
      << v.discrepancy.where;
}

TEST(Report, OfLse) {
  Judged j(plain);
  j.lse(1, 2, 3, 0) += 0.5;
  const Verdict v = j.verdict();
  EXPECT_EQ(v.discrepancy.tensor, "LSE");
  EXPECT_NE(report(j.c, v).find("LSE[b1 h2 q3] got"), std::string::npos) << report(j.c, v);
}

TEST(Report, OfATailTile) {
  Judged j("v1 B1 Hq1 Hkv1 Sq70 Skv32 D8 Dv4 bf16");
  j.o(0, 0, 66, 0) += 10;
  EXPECT_NE(j.verdict().discrepancy.where.find("only in the tail tile of queries (tile 64)"),
            std::string::npos);
  EXPECT_EQ(j.verdict().discrepancy.where.find("partial tile"), std::string::npos);
}

TEST(Report, SuspectsTheKeyWhoseWeightIsOff) {
  for (const int key : {0, 4, 8}) {
    for (const double weight : {0.5, -0.25}) {
      Judged j(plain);
      for (int d = 0; d < 4; ++d)
        j.o(1, 2, 3, d) += weight * (j.in.v(1, 1, key, d) - j.bounds.o(1, 2, 3, d));
      const std::string where = j.verdict().discrepancy.where;
      const std::string says =
          "row 3 looks as if key " + std::to_string(key) + " had " + (weight > 0 ? "0.5" : "0.2");
      EXPECT_NE(where.find(says), std::string::npos) << says << " in " << where;
      EXPECT_NE(where.find(weight > 0 ? "too much" : "too little"), std::string::npos) << where;
    }
  }
}

/// Expectations written by hand, for outputs of every shape.
struct ByHand {
  Case c = parse_case("v1 B1 Hq2 Hkv1 Sq3 Skv2 D2 Dv1 bf16");
  PassInputs in;
  Expectation expected;
  std::vector<Tensor<double, 4>> got;

  void add(const char* name, const std::array<const char*, 4>& axes,
           const std::array<std::int64_t, 4>& extents) {
    const Tensor<double, 4> zeros(extents);
    Tensor<double, 4> bound(extents);
    for (double& x : bound.values()) x = 0.5;
    expected.outputs.push_back({name, axes, DType::f32, zeros, bound, {}});
    got.push_back(zeros);
  }
  Verdict verdict() const {
    return judge(c, in, expected, got, [this] { return expected; });
  }
};

TEST(Verdict, JudgesEveryOutput) {
  ByHand j;
  j.add("dQ", {"b", "h", "q", "d"}, {1, 2, 3, 2});
  j.add("dK", {"b", "h", "k", "d"}, {1, 1, 2, 2});
  j.add("d slope", {nullptr, nullptr, "", ""}, {1, 1, 3, 4});
  j.add("dSink", {nullptr, nullptr, nullptr, ""}, {1, 1, 1, 2});
  EXPECT_EQ(j.verdict().outcome, Outcome::pass);
  ByHand k = j;
  k.got[1](0, 0, 1, 0) = 0.75;
  EXPECT_EQ(k.verdict().discrepancy.element, "dK[b0 h0 k1 d0]");
  EXPECT_NE(k.verdict().discrepancy.where.find("keys 1"), std::string::npos)
      << k.verdict().discrepancy.where;
  k.got[3](0, 0, 0, 1) = nan;
  EXPECT_NE(k.verdict().discrepancy.where.find("1 of dSink too"), std::string::npos);
  ByHand slope = j;
  slope.got[2](0, 0, 2, 1) = -1;
  EXPECT_EQ(slope.verdict().discrepancy.element, "d slope[2, 1]");
  EXPECT_TRUE(slope.verdict().discrepancy.proved);
  ByHand sink = j;
  sink.got[3](0, 0, 0, 1) = nan;
  EXPECT_EQ(sink.verdict().discrepancy.element, "dSink[1]");
}

TEST(Verdict, WhatPoisonMayReachIsNotJudged) {
  ByHand j;
  j.add("dQ", {"b", "h", "q", "d"}, {1, 2, 3, 2});
  Tensor<Term, 4>& term = j.expected.outputs[0].term;
  term = Tensor<Term, 4>({1, 2, 3, 2});
  j.got[0](0, 1, 2, 0) = nan;
  EXPECT_EQ(j.verdict().outcome, Outcome::discrepancy);
  term(0, 1, 2, 0) = Term::poison;
  EXPECT_EQ(j.verdict().outcome, Outcome::pass);
  j.got[0](0, 1, 2, 1) = nan;
  EXPECT_EQ(j.verdict().outcome, Outcome::discrepancy);
}

TEST(Expectation, HasTheOutputsOfThePass) {
  const Judged j(plain);
  const Expectation two = expect(j.bounds, j.c.dtype, false),
                    three = expect(j.bounds, j.c.dtype, true);
  ASSERT_EQ(two.outputs.size(), 2u);
  ASSERT_EQ(three.outputs.size(), 3u);
  EXPECT_EQ(three.outputs[2].name, "row max");
  EXPECT_EQ(three.outputs[2].reference(1, 2, 3, 0), j.bounds.row_max(1, 2, 3));
  EXPECT_EQ(two.outputs[1].bound(1, 2, 3, 0), j.bounds.lse_bound(1, 2, 3));
  BackwardBounds b;
  b.captured.resize(1);
  b.captured[0].value = b.captured[0].bound = {1, 2, 3, 4, 5, 6};
  b.d_sink.value = b.d_sink.bound = {7, 8};
  const CapturedTensor slope{nullptr, DType::f32, 4, {2, 3}, {3, 1}, "slope"};
  const Expectation backward = expect(b, DType::bf16, {slope}, true);
  ASSERT_EQ(backward.outputs.size(), 5u);
  EXPECT_EQ(backward.outputs[3].name, "d slope");
  EXPECT_EQ(backward.outputs[3].reference(0, 0, 1, 2), 6);
  EXPECT_EQ(backward.outputs[4].reference(0, 0, 0, 1), 8);
  EXPECT_EQ(expect(b, DType::bf16, {slope}, false).outputs.size(), 4u);
}

TEST(Report, OfWhatIsNoDiscrepancy) {
  Verdict v;
  v.outcome = Outcome::checker_fault;
  v.reason = "data race";
  v.target = "thread";
  EXPECT_EQ(report(Case(), v).find("checker fault"), 0u);
  EXPECT_NE(report(Case(), v).find("flash_forward (thread)   data race\nreplay "),
            std::string::npos);
  EXPECT_TRUE(is_failure(Outcome::checker_fault) && is_failure(Outcome::discrepancy));
  EXPECT_FALSE(is_failure(Outcome::refused));
}

}  // namespace
}  // namespace attn::fuzz
