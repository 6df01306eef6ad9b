// The table of implementations: what each row promises, and that it runs where it is asked to.
#include "optimized/implementations.h"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "mods/lang/compile.h"
#include "mods/lang/parse.h"
#include "optimized/planted_faults.h"
#include "optimized/simt/fault.h"

namespace attn {
namespace {

Problem problem(DType dtype, int d, int dv) {
  Problem p;
  p.b = p.hq = p.hkv = p.sq = p.skv = 1;
  p.d = d, p.dv = dv, p.dtype = dtype;
  return p;
}

/// One query on one key: O is that key's value and LSE its score, here 0.
struct OneKey {
  Tensor<half, 4> q{{1, 1, 1, 8}}, k{{1, 1, 1, 8}}, v{{1, 1, 1, 8}}, o{{1, 1, 1, 8}};
  Tensor<float, 3> lse{{1, 1, 1}};
  ForwardCall call(const std::string& mod = "score") {
    for (half& x : v.values()) x = from_float<half>(1.5f);
    for (half& x : o.values()) x = half{0xffff};
    lse(0, 0, 0) = 7;
    return {describe("q", q.view()),
            describe("k", k.view()),
            describe("v", v.view()),
            describe("o", o.view()),
            describe("lse", lse.view()),
            compile_mod(parse_mod(mod), {}),
            compile_mask(parse_mask("true"), {}),
            {}};
  }
  void expect_answer() const {
    for (const half& x : o.values()) EXPECT_EQ(to_float(x), 1.5f);
    EXPECT_EQ(lse(0, 0, 0), 0);
  }
};

TEST(Implementations, HaveNamesOfTheirOwn) {
  std::set<std::string_view> names;
  for (const Implementation& row : implementations()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_EQ(&implementation_named(row.name), &row);
    EXPECT_FALSE(row.what.empty() || row.tiles.empty());
    EXPECT_TRUE(row.refusal && row.numerics && row.run && row.run_planted) << row.name;
  }
  EXPECT_TRUE(names.contains("flash_forward"));
}

TEST(Implementations, AnUnknownNameIsRefusedWithTheKnownOnes) {
  try {
    implementation_named("flash_backward");
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find("'flash_backward'"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("flash_forward"), std::string::npos);
  }
}

TEST(Implementations, SayWhyAProblemIsNotSupported) {
  const Implementation& flash = implementation_named("flash_forward");
  EXPECT_FALSE(flash.refusal(problem(DType::f16, 128, 128)));
  EXPECT_FALSE(flash.refusal(problem(DType::f16, 1, 0)));
  EXPECT_NE(flash.refusal(problem(DType::f16, 129, 8)).value_or("").find("D = 129"),
            std::string::npos);
  EXPECT_NE(flash.refusal(problem(DType::f16, 8, 129)).value_or("").find("Dv = 129"),
            std::string::npos);
  for (const DType t : {DType::f32, DType::f64})
    EXPECT_NE(flash.refusal(problem(t, 8, 8)).value_or("").find(name_of(t)), std::string::npos);
#if !defined(ATTN_FIRST_INSTANCE_ONLY)
  EXPECT_FALSE(flash.refusal(problem(DType::bf16, 64, 64)));
#endif
}

TEST(Implementations, AllowWhatTheirStorageRounds) {
  for (const Implementation& row : implementations())
    for (const DType t : {DType::f16, DType::bf16}) {
      const Numerics may = row.numerics(t);
      EXPECT_EQ(may.storage, t);
      EXPECT_LE(may.probability_rounding, unit_roundoff(t));
      EXPECT_EQ(may.score_rounding, 0) << "scores stay in fp32";
    }
}

TEST(Implementations, RunOnTheEngineNamed) {
  for (const Implementation& row : implementations())
    for (const Engine engine : {Engine::warp, Engine::thread}) {
      OneKey x;
      EXPECT_EQ(row.run(x.call(), engine), name_of(engine));
      x.expect_answer();
    }
  EXPECT_STRNE(name_of(Engine::warp), name_of(Engine::thread));
}

/// That the planted build is another build shows in what it computes.
TEST(Implementations, RunPlantedCommitsTheActiveFault) {
  const Implementation& flash = implementation_named("flash_forward");
  OneKey x;
  EXPECT_EQ(flash.run_planted(x.call()), "warp_planted");
  x.expect_answer();
  active_fault() = PlantedFault::M55;  // LSE in base 2
  flash.run_planted(x.call("score + 1"));
  EXPECT_NE(x.lse(0, 0, 0), 1);
  flash.run(x.call("score + 1"), Engine::warp);
  active_fault() = PlantedFault::none;
  EXPECT_EQ(x.lse(0, 0, 0), 1);
}

TEST(Implementations, RefuseBeforeAnyWork) {
  OneKey x;
  ForwardCall call = x.call();
  Tensor<float, 4> wide({1, 1, 1, 8});
  call.q = call.k = call.v = describe("q", wide.view());
  EXPECT_THROW(implementation_named("flash_forward").run(call, Engine::warp),
               std::invalid_argument);
  EXPECT_EQ(x.lse(0, 0, 0), 7);
}

TEST(PlantedFaults, HaveNamesOfTheirOwn) {
  std::set<std::string_view> names;
  std::set<PlantedFault> faults;
  for (const PlantedFaultInfo& fault : planted_faults) {
    EXPECT_TRUE(names.insert(fault.name).second) << fault.name;
    EXPECT_TRUE(faults.insert(fault.fault).second) << fault.name;
    EXPECT_FALSE(fault.what.empty());
  }
  EXPECT_FALSE(faults.contains(PlantedFault::none));
  EXPECT_EQ(faults.size(), static_cast<std::size_t>(PlantedFault::M63)) << "every one is listed";
}

}  // namespace
}  // namespace attn
