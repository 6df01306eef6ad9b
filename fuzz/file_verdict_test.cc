// Outputs in files, judged: right ones pass under every contract, wrong ones do not, and what is
// not there is told.
#include "fuzz/file_verdict.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "fuzz/file_fixtures.h"
#include "mods/lang/tree_functor.h"

namespace attn::fuzz {
namespace {

using Arrays = std::vector<NewArray>;

NewArray& named(Arrays& arrays, const std::string& name) {
  return *std::find_if(arrays.begin(), arrays.end(),
                       [&](const NewArray& a) { return a.name == name; });
}
Arrays without(Arrays arrays, const std::string& name) {
  std::erase_if(arrays, [&](const NewArray& a) { return a.name == name; });
  return arrays;
}
void set(NewArray& array, std::size_t n, double x) {
  const std::vector<std::byte> bytes = bytes_as(array.dtype, {x});
  std::copy(bytes.begin(), bytes.end(), array.bytes.begin() + n * bytes.size());
}

Arrays backward_inputs(const std::string& dtype = "BF16") {
  Arrays arrays = small_inputs(dtype);
  arrays.push_back(random_array("d_o", dtype, {2, 4, 40, 12}));
  arrays.push_back(random_array("d_lse", "F32", {2, 4, 40}));
  arrays.push_back(random_array("sink", "F32", {4}));
  arrays.push_back(random_array("bias", "F32", {4, 70}));
  return arrays;
}
FileDescription biased() {
  FileDescription d;
  d.mod = "score + bias[h, kv]", d.mask = "causal";
  return d;
}

FileVerdict verdict(const FileProblem& p, const Arrays& outputs, Rounds rounds = Rounds::flash,
                    const std::vector<std::string>& required = {}) {
  return judge_outputs(p, file_of(outputs), rounds, required);
}
Outcome outcome(const FileProblem& p, const Arrays& outputs, Rounds rounds = Rounds::flash) {
  return verdict(p, outputs, rounds).verdict.outcome;
}

TEST(FileVerdict, TheReferencePassesUnderEveryContract) {
  for (const char* dtype : {"F32", "F16", "BF16"}) {
    const FileProblem p = read_problem(file_of(small_inputs(dtype)), {});
    for (const Rounds rounds : {Rounds::flash, Rounds::fp32, Rounds::tf32, Rounds::eager})
      EXPECT_EQ(outcome(p, solved(p), rounds), Outcome::pass) << dtype;
    const FileProblem b = read_problem(file_of(backward_inputs(dtype)), biased());
    for (const Rounds rounds : {Rounds::flash, Rounds::fp32, Rounds::tf32})
      EXPECT_EQ(outcome(b, solved(b), rounds), Outcome::pass) << dtype;
    EXPECT_THROW(outcome(b, solved(b), Rounds::eager), std::invalid_argument);
  }
}

TEST(FileVerdict, OneWrongElementOfAnyOutputIsSeen) {
  const FileProblem p = read_problem(file_of(backward_inputs()), biased());
  const Arrays right = solved(p);
  ASSERT_EQ(right.size(), 8u);
  for (const NewArray& array : right)
    for (const double x : {100.0, std::numeric_limits<double>::quiet_NaN()}) {
      Arrays wrong = right;
      set(named(wrong, array.name), 1, x);
      const FileVerdict v = verdict(p, wrong);
      EXPECT_EQ(v.verdict.outcome, Outcome::discrepancy) << array.name;
      EXPECT_TRUE(v.verdict.discrepancy.proved) << array.name;
    }
}

TEST(FileVerdict, OutputsAreNamedAsInTheFile) {
  const FileProblem p = read_problem(file_of(backward_inputs()), biased());
  for (const char* name : {"o", "lse", "row_max", "dq", "dk", "dv", "d_bias", "d_sink"}) {
    Arrays right = solved(p);
    EXPECT_EQ(named(right, name).name, name);
  }
}

TEST(FileVerdict, WhatIsMissingIsTold) {
  const FileProblem p = read_problem(file_of(small_inputs()), {});
  const Arrays all = solved(p);
  EXPECT_TRUE(verdict(p, all, Rounds::flash, {"o", "lse"}).missing.empty());
  const FileVerdict v = verdict(p, without(all, "lse"), Rounds::flash, {"o", "lse"});
  EXPECT_EQ(v.missing, std::vector<std::string>{"lse"});
  EXPECT_EQ(v.verdict.outcome, Outcome::pass);  // of the others
  EXPECT_EQ(verdict(p, {}, Rounds::flash, {"o", "lse"}).missing.size(), 2u);
  EXPECT_THROW(verdict(p, {}), std::invalid_argument);
}

TEST(FileVerdict, OutputsThatDoNotFit) {
  const FileProblem p = read_problem(file_of(small_inputs()), {});
  EXPECT_THROW(outcome(p, {random_array("o", "F32", {2, 4, 40, 12})}), std::invalid_argument);
  EXPECT_THROW(outcome(p, {random_array("o", "BF16", {2, 4, 40, 16})}), std::invalid_argument);
  EXPECT_THROW(outcome(p, {random_array("lse", "F32", {2, 4, 40, 1})}), std::invalid_argument);
}

TEST(FileVerdict, ContractsDiffer) {
  // fp32 throughout, against an output that is off by as much as rounding P to bf16 may move it
  const FileProblem p = read_problem(file_of(small_inputs("F32")), {});
  Arrays off = solved(p);
  const Expectation e = forward_expectation(p, Rounds::fp32, BoundKind::working);
  const Expectation loose = forward_expectation(p, Rounds::tf32, BoundKind::working);
  const double reference = e.outputs[0].reference.values()[0],
               strict = e.outputs[0].bound.values()[0], wide = loose.outputs[0].bound.values()[0];
  ASSERT_LT(8 * strict, wide);
  set(named(off, "o"), 0, reference + wide / 2);
  EXPECT_EQ(outcome(p, off, Rounds::fp32), Outcome::discrepancy);
  EXPECT_EQ(outcome(p, off, Rounds::tf32), Outcome::pass);
}

/// One query and `keys` keys of size 1 whose scores are 0, V = 1.
FileProblem equal_keys(const char* dtype, std::int64_t keys) {
  const std::vector<double> ones(static_cast<std::size_t>(keys), 1);
  return read_problem(file_of({new_array("q", dtype, {1, 1, 1, 1}, {0}),
                               new_array("k", dtype, {1, 1, keys, 1}, ones),
                               new_array("v", dtype, {1, 1, keys, 1}, ones)}),
                      {});
}

/// A row of 61 keys whose scores are all 0, and a program that keeps P = 1/61, rounded to bf16.
TEST(FileVerdict, EagerAllowsNormalisedWeightsInTheStorageType) {
  const FileProblem p = equal_keys("BF16", 61);
  const double o = rounded_to(DType::bf16, 61 * rounded_to(DType::bf16, 1.0 / 61));
  ASSERT_NE(o, 1);
  const Arrays outputs = {new_array("o", "BF16", {1, 1, 1, 1}, {o}),
                          new_array("lse", "F32", {1, 1, 1}, {std::log(61.0)})};
  EXPECT_EQ(outcome(p, outputs, Rounds::flash), Outcome::discrepancy);
  EXPECT_NE(outcome(p, outputs, Rounds::eager), Outcome::discrepancy);
}

/// 160 equal scores: a program that adds up V / 160 in fp32 is off where one that adds up V is
/// exact.
TEST(FileVerdict, WeightsMayBeDividedBeforeTheyMeetV) {
  const FileProblem p = equal_keys("F32", 160);
  float o = 0;
  for (int j = 0; j < 160; ++j) o += 1.0f / 160;
  ASSERT_GT(std::abs(o - 1), 1e-6);
  const auto with = [&](double x) {
    return outcome(p, {new_array("o", "F32", {1, 1, 1, 1}, {x})}, Rounds::fp32);
  };
  EXPECT_EQ(with(o), Outcome::pass);
  EXPECT_EQ(with(1 + 1e-4), Outcome::discrepancy);
}

TEST(FileVerdict, EagerAllowsScoresInTheStorageType) {
  const double score = 20.0625;  // of a product of 8 bits; bf16 holds 20
  const Arrays inputs = {new_array("q", "BF16", {1, 1, 1, 2}, {16, 4}),
                         new_array("k", "BF16", {1, 1, 2, 2}, {1.25, 0.015625, 1.25, 0}),
                         new_array("v", "BF16", {1, 1, 2, 1}, {1, 0})};
  FileDescription d;
  d.scale = 1.0;
  const FileProblem p = read_problem(file_of(inputs), d);
  ASSERT_EQ(rounded_to(DType::bf16, score), 20);
  // both scores 20 after rounding: O = 1/2
  const Arrays outputs = {new_array("o", "BF16", {1, 1, 1, 1}, {0.5}),
                          new_array("lse", "F32", {1, 1, 1}, {20 + std::log(2.0)})};
  EXPECT_EQ(outcome(p, outputs, Rounds::flash), Outcome::discrepancy);
  EXPECT_NE(outcome(p, outputs, Rounds::eager), Outcome::discrepancy);
}

TEST(FileVerdict, GradientsAreHeldToTheProgramsOwnForwardPass) {
  // O and LSE moved within their bounds: gradients that follow from these are right
  const FileProblem p = read_problem(file_of(backward_inputs()), biased());
  const Expectation forward = forward_expectation(p, Rounds::flash, BoundKind::working);
  StoredForwardResult given{forward.outputs[0].reference, Tensor<double, 3>({2, 4, 40})};
  for (double& x : given.o.values()) x = rounded_to(DType::bf16, x);
  for (std::size_t n = 0; n < given.lse.values().size(); ++n)
    given.lse.values()[n] = static_cast<float>(forward.outputs[1].reference.values()[n] +
                                               0.9 * forward.outputs[1].bound.values()[n]);
  const Expectation gradients = backward_expectation(p, given, Rounds::flash, BoundKind::working);
  Arrays outputs = solved(p);
  named(outputs, "lse") = new_array("lse", "F32", {2, 4, 40}, given.lse.values());
  EXPECT_EQ(outcome(p, outputs), Outcome::pass);
  // and the bound of dV knows by how much P is off
  const Expectation exact = backward_expectation(
      p,
      stored_forward_result(p.in, TreeMod(p.mod, p.tables), TreeMask(p.mask, p.tables), p.c.dtype),
      Rounds::flash, BoundKind::working);
  double wider = 0;
  for (std::size_t n = 0; n < exact.outputs[2].bound.values().size(); ++n)
    wider += gradients.outputs[2].bound.values()[n] - exact.outputs[2].bound.values()[n];
  EXPECT_GT(wider, 0);
  // a wrong LSE is told, and excuses no gradient
  Arrays wrong = solved(p);
  set(named(wrong, "lse"), 0, 100);
  EXPECT_EQ(verdict(p, wrong).verdict.discrepancy.tensor, "LSE");
  EXPECT_EQ(verdict(p, wrong).verdict.discrepancy.where.find("dQ"), std::string::npos);
  set(named(wrong, "dq"), 0, 3);
  EXPECT_NE(verdict(p, wrong).verdict.discrepancy.where.find("1 of dQ too"), std::string::npos);
}

TEST(FileVerdict, DeltaMayComeFromEitherO) {
  const FileProblem p = read_problem(file_of(backward_inputs()), biased());
  const StoredForwardResult given =
      stored_forward_result(p.in, TreeMod(p.mod, p.tables), TreeMask(p.mask, p.tables), p.c.dtype);
  const Expectation e = backward_expectation(p, given, Rounds::flash, BoundKind::working);
  const TreeMod mod(p.mod, p.tables);
  const TreeMask mask(p.mask, p.tables);
  for (const bool stored : {true, false}) {
    Numerics may = numerics_of(Rounds::flash, p.c.dtype);
    may.delta_from_stored_o = stored;
    const BackwardBounds bounds = bound_backward(p.in, mod, mask, given, may);
    for (std::size_t n = 0; n < bounds.dq.bound.values().size(); ++n)
      ASSERT_LE(bounds.dq.bound.values()[n], e.outputs[0].bound.values()[n]);
  }
}

TEST(FileVerdict, Names) {
  EXPECT_EQ(parse_rounds("tf32"), Rounds::tf32);
  EXPECT_THROW(parse_rounds("loose"), std::invalid_argument);
}

}  // namespace
}  // namespace attn::fuzz
