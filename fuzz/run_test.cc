// Running one case: every outcome is reached, and what the contract allows is never refused.
#include "fuzz/run.h"

#include <gtest/gtest.h>

#include <optional>
#include <stdexcept>
#include <string>

#include "fuzz/stored_tensor.h"

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
  EXPECT_NE(refused("v1 B1 Hq3 Hkv2 Sq1 Skv1 D8 Dv8 bf16").find("Hq: 3"), std::string::npos);
  EXPECT_NE(refused("v1 B1 Hq3 Hkv0 Sq1 Skv1 D8 Dv8 bf16").find("Hkv = 0"), std::string::npos);
  EXPECT_NE(refused("v1 B1 Hq1 Hkv1 Sq1 Skv1 D8 Dv8 fp32").find("fp32"), std::string::npos);
  EXPECT_NE(refused("v1 B1 Hq1 Hkv1 Sq1 Skv1 D200 Dv8 bf16").find("200"), std::string::npos);
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

TEST(StoredTensor, PoisonsWhatNoElementOwns) {
  for (int l = 0; l < layout_count; ++l) {
    Case c = parse_case("v1 B2 Hq2 Hkv1 Sq5 Skv7 D9 Dv6 fp16");
    c.layout = static_cast<Layout>(l);
    StoredForward stored(c);
    Tensor<double, 4> o({2, 2, 5, 6});
    for (std::size_t n = 0; n < o.values().size(); ++n) o.values()[n] = static_cast<double>(n);
    stored.o.store(o);
    EXPECT_EQ(stored.o.load().values(), o.values()) << name_of(c.layout);
    EXPECT_EQ(stored.o.trespass(), std::nullopt) << name_of(c.layout);
    // what lies behind the last element and before the first belongs to nobody, whatever the layout
    const TensorInfo& info = stored.o.info();
    auto* first = const_cast<half*>(static_cast<const half*>(info.data));
    std::int64_t last = 0;
    for (int axis = 0; axis < 4; ++axis) last += (info.extents[axis] - 1) * info.strides[axis];
    first[last + 1] = half{0};
    EXPECT_EQ(stored.o.trespass(), last + 1) << name_of(c.layout);
    first[-1] = half{0};
    EXPECT_EQ(stored.o.trespass(), -1) << name_of(c.layout);
  }
}

}  // namespace
}  // namespace attn::fuzz
