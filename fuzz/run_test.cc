// Running one case: every outcome is reached, and what the contract allows is never refused.
#include "fuzz/run.h"

#include <gtest/gtest.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace attn::fuzz {
namespace {

Verdict run(const std::string& text, PlantedFault planted = PlantedFault::none,
            Engine engine = Engine::warp) {
  RunOptions options;
  options.planted = planted;
  options.engine = engine;
  return run_case(parse_case(text), options);
}

TEST(RunCase, PassesOnBothEngines) {
  const std::string text = "v1 B1 Hq2 Hkv1 Sq5 Skv40 D16 Dv9 bf16; mask: kv <= q + 20";
  const Verdict warp = run(text), thread = run(text, PlantedFault::none, Engine::thread);
  EXPECT_EQ(warp.outcome, Outcome::pass) << warp.reason;
  EXPECT_EQ(thread.outcome, Outcome::pass) << thread.reason;
  EXPECT_EQ(warp.target, "warp");
  EXPECT_EQ(thread.target, "thread");
  EXPECT_EQ(warp.rows.general, 10);
}

TEST(RunCase, ZeroSizesAreNotRefused) {
  for (const char* shape : {"B0 Hq1 Hkv1 Sq3 Skv3 D8 Dv8", "B2 Hq0 Hkv0 Sq3 Skv3 D8 Dv8",
                            "B2 Hq0 Hkv2 Sq3 Skv3 D8 Dv8", "B1 Hq2 Hkv1 Sq0 Skv3 D8 Dv8",
                            "B1 Hq2 Hkv1 Sq3 Skv0 D8 Dv8", "B1 Hq2 Hkv1 Sq3 Skv3 D8 Dv0"})
    for (int l = 0; l < layout_count; ++l) {
      const Verdict v =
          run(std::string("v1 ") + shape + " fp16; layout: " + name_of(static_cast<Layout>(l)));
      EXPECT_EQ(v.outcome, Outcome::pass)
          << shape << " " << name_of(static_cast<Layout>(l)) << ": " << v.reason;
    }
}

TEST(RunCase, EveryLayoutGivesTheSameAnswer) {
  for (const char* sizes : {"Sq40 Skv40 D24 Dv17", "Sq3 Skv33 D9 Dv16"})
    for (int l = 0; l < layout_count; ++l) {
      const Verdict v = run(std::string("v1 B2 Hq4 Hkv2 ") + sizes +
                            " bf16; layout: " + name_of(static_cast<Layout>(l)));
      EXPECT_EQ(v.outcome, Outcome::pass) << name_of(static_cast<Layout>(l)) << ": " << v.reason;
    }
}

TEST(RunCase, SaysWhyACaseIsRefused) {
  const auto refused = [](const std::string& text) {
    const Verdict v = run(text);
    EXPECT_EQ(v.outcome, Outcome::refused) << text;
    return v.reason;
  };
  EXPECT_NE(refused("v1 B1 Hq3 Hkv2 Sq1 Skv1 D8 Dv8 bf16").find("divisor of the 3 heads"),
            std::string::npos);
  EXPECT_NE(refused("v1 B1 Hq3 Hkv0 Sq1 Skv1 D8 Dv8 bf16").find("k: 0 heads"), std::string::npos);
  EXPECT_NE(refused("v1 B1 Hq1 Hkv1 Sq1 Skv1 D8 Dv8 fp32").find("fp32"), std::string::npos);
  EXPECT_NE(refused("v1 B1 Hq1 Hkv1 Sq1 Skv1 D300 Dv8 bf16").find("300"), std::string::npos);
  EXPECT_NE(
      refused("v1 B1 Hq1 Hkv1 Sq9 Skv20 D8 Dv8 bf16; table: t[10]=ints(0,1); mask: t[kv] == 0")
          .find("t"),
      std::string::npos);
  EXPECT_NE(refused("v1 B1 Hq1 Hkv1 Sq9 Skv9 D8 Dv8 bf16; mod: score + kv * 2000000000")
                .find("score mod"),
            std::string::npos);
  EXPECT_NE(refused("v1 B1 Hq1 Hkv1 Sq9 Skv9 D8 Dv8 bf16; impl: nothing").find("flash_forward"),
            std::string::npos);
}

TEST(RunCase, AFaultOfTheCheckerIsAnOutcome) {
  const Verdict past_end = run("v1 B1 Hq1 Hkv1 Sq9 Skv33 D8 Dv8 bf16", PlantedFault::M20);
  EXPECT_EQ(past_end.outcome, Outcome::checker_fault);
  EXPECT_NE(past_end.reason.find("out of bounds"), std::string::npos) << past_end.reason;
  EXPECT_EQ(past_end.target, "warp_planted");
  const Verdict race = run("v1 B1 Hq1 Hkv1 Sq64 Skv200 D8 Dv8 bf16", PlantedFault::M63);
  EXPECT_EQ(race.outcome, Outcome::checker_fault) << race.reason;
}

TEST(RunCase, ADiscrepancyHasItsPlace) {
  const Verdict v = run("v1 B1 Hq4 Hkv2 Sq1 Skv1 D8 Dv8 bf16", PlantedFault::M26);
  ASSERT_EQ(v.outcome, Outcome::discrepancy);
  EXPECT_EQ(v.discrepancy.tensor, "O");
  EXPECT_TRUE(v.discrepancy.at[1] == 1 || v.discrepancy.at[1] == 2)
      << "heads 1 and 2 swap their keys";
  EXPECT_NE(v.discrepancy.where.find("head 1..2"), std::string::npos) << v.discrepancy.where;
}

TEST(RunRaw, ThrowsWhereRunCaseReports) {
  RunOptions planted;
  planted.planted = PlantedFault::M20;
  EXPECT_THROW(run_raw(parse_case("v1 B1 Hq3 Hkv2 Sq1 Skv1 D8 Dv8 bf16"), {}),
               std::invalid_argument);
  EXPECT_ANY_THROW(run_raw(parse_case("v1 B1 Hq1 Hkv1 Sq9 Skv33 D8 Dv8 bf16"), planted));
  EXPECT_EQ(active_fault(), PlantedFault::none) << "also after a throw";
}

/// One small case of every row of the table, so that none is left out for want of a generator.
class EveryImplementation : public testing::TestWithParam<std::size_t> {
 protected:
  const Implementation& row() const { return implementations()[GetParam()]; }
  /// A case with all the parts that the row takes.
  Case full_case() const {
    const bool half_precision = [this] {
      Problem p;
      p.d = p.dv = 1;
      p.dtype = DType::bf16;
      return !row().refusal(p);
    }();
    std::string text =
        "v1 B2 Hq4 Hkv2 Sq3 Skv40 D16 Dv9 " + std::string(half_precision ? "bf16" : "fp32") +
        "; mod: score + slope[h] * (kv - q); mask: kv <= q + 20; table: slope[Hq]=uniform(0,1); "
        "sink: on; dropout: 0.25; seed: 3";
    if (row().sequences == Sequences::packed) text += "; qlens: 3,1";
    if (row().sequences != Sequences::dense) text += "; kvlens: 33,0";
    if (row().sequences == Sequences::paged) text += "; page: 4";
    if (has_cache(row())) text += "; splits: 2";
    if (row().block_sparse) text += "; blocks: 16x24";
    text += row().pass == Pass::backward ? "; dlse: on" : "; rowmax: on";
    return parse_case(text + "; impl: " + std::string(row().name));
  }
};

TEST_P(EveryImplementation, PassesWithEveryOptionOnBothEngines) {
  const Case c = full_case();
  for (const Engine engine : {Engine::warp, Engine::thread}) {
    RunOptions options;
    options.engine = engine;
    options.repeat = true;
    const Verdict v = run_case(c, options);
    EXPECT_TRUE(v.outcome == Outcome::pass || v.outcome == Outcome::mistrusted) << report(c, v);
    EXPECT_EQ(v.target, name_of(engine));
  }
}

TEST_P(EveryImplementation, WritesEveryOutput) {
  const RawOutputs raw = run_raw(full_case(), {});
  std::vector<std::string> names;
  for (const auto& [name, bits] : raw.outputs) names.push_back(name);
  const std::vector<std::string> expected =
      row().pass == Pass::forward ? std::vector<std::string>{"O", "LSE", "row max"}
                                  : std::vector<std::string>{"dQ", "dK", "dV", "d slope", "dSink"};
  EXPECT_EQ(names, expected);
}

INSTANTIATE_TEST_SUITE_P(All, EveryImplementation,
                         testing::Range(std::size_t{0}, implementations().size()),
                         [](const auto& info) {
                           return std::string(implementations()[info.param].name);
                         });

TEST(RunCase, RefusesPartsThatDoNotFit) {
  const Verdict v = run("v1 B1 Hq1 Hkv1 Sq1 Skv1 D8 Dv8 bf16; page: 16");
  EXPECT_EQ(v.outcome, Outcome::refused);
  EXPECT_EQ(v.reason, "page: given for flash_forward, expected only for a paged cache");
}

std::string_view run_elsewhere(const Implementation& row, const AttentionCall& call) {
  (void)row.run(call, Engine::warp);
  return "elsewhere";
}
std::string_view run_and_change(const Implementation& row, const AttentionCall& call) {
  static int runs = 0;
  (void)row.run(call, Engine::warp);
  // the last bit of one element, in the second run only
  if (runs++ % 2) *static_cast<std::uint16_t*>(const_cast<void*>(call.o.data)) ^= 1;
  return "elsewhere";
}

TEST(RunCase, RunsOnADevice) {
  RunOptions options;
  options.on_device = run_elsewhere;
  const Verdict v = run_case(parse_case("v1 B1 Hq2 Hkv1 Sq5 Skv40 D16 Dv9 bf16"), options);
  EXPECT_EQ(v.outcome, Outcome::pass) << v.reason;
  EXPECT_EQ(v.target, "elsewhere");
}

TEST(RunCase, TwoRunsMustGiveTheSameBits) {
  RunOptions options;
  options.on_device = run_and_change;
  options.repeat = true;
  const Verdict v = run_case(parse_case("v1 B1 Hq2 Hkv1 Sq5 Skv40 D16 Dv9 bf16"), options);
  EXPECT_EQ(v.outcome, Outcome::not_deterministic);
  EXPECT_TRUE(is_failure(v.outcome));
  EXPECT_NE(v.reason.find("O: element 0 is "), std::string::npos) << v.reason;
}

}  // namespace
}  // namespace attn::fuzz
