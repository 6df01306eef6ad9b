// The table of implementations: what each row promises, and that it runs where it is asked to.
#include "optimized/implementations.h"
#include "optimized/attention_arguments.h"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "masks/block_mask_builder.h"
#include "masks/full.h"
#include "mods/lang/compile.h"
#include "mods/lang/parse.h"
#include "optimized/planted_faults.h"

namespace attn {
namespace {

Problem problem(DType dtype, int d, int dv) {
  Problem p;
  p.b = p.hq = p.hkv = p.sq = p.skv = 1;
  p.d = d, p.dv = dv, p.dtype = dtype;
  return p;
}

/// One query on one key: O is that key's value, LSE its score, here 0, and dV is dO.
template <class T>
struct OneKey {
  Tensor<T, 4> q{{1, 1, 1, 8}}, k{{1, 1, 1, 8}}, v{{1, 1, 1, 8}}, o{{1, 1, 1, 8}},
      d_o{{1, 1, 1, 8}}, dq{{1, 1, 1, 8}}, dk{{1, 1, 1, 8}}, dv{{1, 1, 1, 8}};
  Tensor<float, 3> lse{{1, 1, 1}};
  std::vector<std::int32_t> one{1}, zero_one{0, 1};
  Tensor<std::int32_t, 2> page{{1, 1}};
  BlockMask blocks = make_block_mask(full(), {1, 1, 1, 1, 1});

  AttentionCall call(const Implementation& row, const std::string& mod = "score") {
    for (T& x : v.values()) x = from_float<T>(1.5f);
    for (T& x : d_o.values()) x = from_float<T>(2);
    const bool forward = row.pass == Pass::forward;
    for (T& x : o.values()) x = from_float<T>(forward ? 77.0f : 1.5f);
    lse(0, 0, 0) = forward ? 7.0f : 0.0f;
    AttentionCall call{
        forward_arguments<T>(q.view(), k.view(), v.view(), o.view(), lse.view()), {}, {}};
    if (!forward) {
      call.d_o = describe("d_o", d_o.view());
      call.dq = describe("dq", dq.view());
      call.dk = describe("dk", dk.view());
      call.dv = describe("dv", dv.view());
    }
    if (row.sequences == Sequences::packed) call.cu_q = call.cu_kv = zero_one;
    if (has_cache(row)) call.lengths = one;
    if (row.sequences == Sequences::paged) call.page_table = std::as_const(page).view();
    if (row.block_sparse) call.blocks = &blocks;
    call.mod = compile_mod(parse_mod(mod), {});
    call.mask = compile_mask(parse_mask("true"), {});
    return call;
  }
  void expect_answer(const Implementation& row) const {
    for (const T& x : o.values()) EXPECT_EQ(number(x), 1.5f) << row.name;
    EXPECT_EQ(lse(0, 0, 0), 0) << row.name;
    if (row.pass == Pass::forward) return;
    for (const T& x : dv.values()) EXPECT_EQ(number(x), 2) << row.name;
    for (const T& x : dq.values()) EXPECT_EQ(number(x), 0) << row.name;
  }
  static float number(T x) {
    if constexpr (std::is_same_v<T, float>)
      return x;
    else
      return to_float(x);
  }
};

/// Calls `run` with a problem of each storage type that the row supports.
template <class Run>
void for_each_storage(const Implementation& row, Run run) {
  const auto supported = [&](auto t) {
    if (!row.refusal(problem(dtype_of<decltype(t)>, 8, 8))) run(OneKey<decltype(t)>());
  };
  supported(half{});
  supported(bfloat16{});
  supported(float{});
}

TEST(Implementations, HaveNamesOfTheirOwn) {
  std::set<std::string_view> names;
  for (const Implementation& row : implementations()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_EQ(&implementation_named(row.name), &row);
    EXPECT_FALSE(row.what.empty());
    EXPECT_TRUE(row.refusal && row.numerics && row.warp && row.thread && row.warp_planted)
        << row.name;
    EXPECT_TRUE(row.deterministic) << row.name;
  }
  const std::set<std::string_view> expected = {"flash_forward",      "flash_forward_fp32",
                                               "flash_forward_tf32", "block_sparse_forward",
                                               "packed_forward",     "decode",
                                               "decode_paged",       "flash_backward",
                                               "packed_backward",    "block_sparse_backward"};
  EXPECT_EQ(names, expected);
}

/// What a name says is what the row says.
TEST(Implementations, AreWhatTheirNamesSay) {
  for (const Implementation& row : implementations()) {
    const auto says = [&](const char* part) {
      return row.name.find(part) != std::string_view::npos;
    };
    EXPECT_EQ(row.pass == Pass::backward, says("backward")) << row.name;
    EXPECT_EQ(row.block_sparse, says("block_sparse")) << row.name;
    EXPECT_EQ(row.sequences == Sequences::packed, says("packed")) << row.name;
    EXPECT_EQ(row.sequences == Sequences::paged, says("paged")) << row.name;
    EXPECT_EQ(has_cache(row), says("decode")) << row.name;
    EXPECT_GE(row.production.q, row.small.q) << row.name;
    EXPECT_GE(row.production.kv, row.small.kv) << row.name;
    EXPECT_GT(row.small.q, 0) << row.name;
    EXPECT_GT(row.small.kv, 0) << row.name;
  }
}

TEST(Implementations, AnUnknownNameIsRefusedWithTheKnownOnes) {
  try {
    implementation_named("flash_sideways");
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find("'flash_sideways'"), std::string::npos);
    for (const Implementation& row : implementations())
      EXPECT_NE(std::string(error.what()).find(row.name), std::string::npos);
  }
}

TEST(Implementations, SayWhyAProblemIsNotSupported) {
  for (const Implementation& row : implementations()) {
    SCOPED_TRACE(row.name);
    const bool fp32 = !row.refusal(problem(DType::f32, 8, 8));
    const DType supported = fp32 ? DType::f32 : DType::f16;
#if defined(ATTN_FIRST_INSTANCE_ONLY)
    const int largest = fp32 ? 256 : 64;
#else
    const int largest = 256;
#endif
    EXPECT_FALSE(row.refusal(problem(supported, largest, largest)));
    EXPECT_FALSE(row.refusal(problem(supported, 1, 0)));
    const auto says = [&](const Problem& p, const std::string& part) {
      EXPECT_NE(row.refusal(p).value_or("").find(part), std::string::npos) << part;
    };
    says(problem(supported, largest + 1, 8), "D = " + std::to_string(largest + 1));
    says(problem(supported, 8, largest + 1), "Dv = " + std::to_string(largest + 1));
    for (const DType t : {DType::f16, DType::bf16, DType::f32, DType::f64})
      if (t == DType::f64 || (t == DType::f32) != fp32) says(problem(t, 8, 8), name_of(t));
#if !defined(ATTN_FIRST_INSTANCE_ONLY)
    EXPECT_EQ(row.refusal(problem(DType::bf16, 64, 64)).has_value(), fp32);
#endif
  }
}

TEST(Implementations, AllowWhatTheirStorageRounds) {
  for (const Implementation& row : implementations())
    for_each_storage(row, [&](auto x) {
      const DType t = dtype_of<std::decay_t<decltype(x.q.values()[0])>>;
      const Numerics may = row.numerics(t);
      EXPECT_EQ(may.storage, t);
      EXPECT_EQ(may.score_rounding, 0) << "scores stay in fp32";
      // TF32 has 11 significant bits, as fp16; what is stored in fp32 and not multiplied in TF32
      // is not rounded at all.
      const bool tf32 = row.name == "flash_forward_tf32";
      const double most = tf32 ? 0x1p-11 : t == DType::f32 ? 0 : unit_roundoff(t);
      EXPECT_LE(may.probability_rounding, most) << row.name;
      EXPECT_LE(may.gradient_rounding, most) << row.name;
      EXPECT_LE(may.input_rounding, tf32 ? most : 0) << row.name;
      EXPECT_EQ(may.most_splits > 1, has_cache(row)) << row.name;
    });
}

TEST(Implementations, RunOnTheEngineNamed) {
  for (const Implementation& row : implementations())
    for (const Engine engine : {Engine::warp, Engine::thread})
      for_each_storage(row, [&](auto x) {
        EXPECT_EQ(row.run(x.call(row), engine), name_of(engine));
        x.expect_answer(row);
      });
  EXPECT_STRNE(name_of(Engine::warp), name_of(Engine::thread));
}

/// That the planted build is another build shows in what it computes.
TEST(Implementations, RunPlantedCommitsTheActiveFault) {
  for (const Implementation& row : implementations())
    for_each_storage(row, [&](auto x) {
      EXPECT_EQ(row.run_planted(x.call(row)), "warp_planted");
      x.expect_answer(row);
    });
  const Implementation& flash = implementation_named("flash_forward");
  OneKey<half> x;
  active_fault() = PlantedFault::M55;  // LSE in base 2
  flash.run_planted(x.call(flash, "score + 1"));
  EXPECT_NE(x.lse(0, 0, 0), 1);
  flash.run(x.call(flash, "score + 1"), Engine::warp);
  active_fault() = PlantedFault::none;
  EXPECT_EQ(x.lse(0, 0, 0), 1);
}

TEST(Implementations, RefuseBeforeAnyWork) {
  for (const Implementation& row : implementations()) {
    OneKey<half> x;
    AttentionCall call = x.call(row);
    Tensor<double, 4> wide({1, 1, 1, 8});
    call.q = call.k = call.v = describe("q", wide.view());
    const float before = x.lse(0, 0, 0);
    EXPECT_THROW(row.run(call, Engine::warp), std::invalid_argument) << row.name;
    EXPECT_EQ(x.lse(0, 0, 0), before);
  }
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
