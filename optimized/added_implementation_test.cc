// Rows of the user's: what is refused, and that an added row is a row like the others.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "optimized/attention_arguments.h"
#include "optimized/call_check.h"
#include "optimized/refusal_fixtures.h"

namespace attn {
namespace {

std::string_view run_on_warp(const AttentionCall& call, const Implementation& row) {
  check_call(call, row);
  return "ran";
}

Implementation plain(std::string_view name) {
  return {.name = name,
          .what = "for a test",
          .production = {16, 32},
          .small = {16, 32},
          .refusal = [](const Problem&) -> std::optional<std::string> { return {}; },
          .numerics = [](DType storage) { return Numerics{.storage = storage}; },
          .warp = run_on_warp};
}

template <class Change>
std::string refusal_of_row(Change change) {
  Implementation row = plain("changed");
  change(row);
  const std::size_t before = implementations().size();
  const std::string said = refusal([&] { add_implementation(row); });
  EXPECT_EQ(implementations().size(), before) << said;
  return said;
}

TEST(AddImplementation, RefusesARowThatIsNotWhole) {
  const auto expect = [](const std::string& said, const std::string& part) {
    EXPECT_NE(said.find(part), std::string::npos) << "no '" << part << "' in '" << said << "'";
  };
  expect(refusal_of_row([](auto& row) { row.name = ""; }), "name: expected letters");
  expect(refusal_of_row([](auto& row) { row.name = "my kernel"; }), "name: expected letters");
  expect(refusal_of_row([](auto& row) { row.name = "decode"; }), "'decode': name: taken");
  expect(refusal_of_row([](auto& row) { row.numerics = nullptr; }), "'changed': numerics: none");
  expect(refusal_of_row([](auto& row) { row.refusal = nullptr; }), "refusal: none");
  expect(refusal_of_row([](auto& row) { row.warp = nullptr; }), "run: none");
  expect(refusal_of_row([](auto& row) { row.small.kv = 0; }), "small: 16x0");
  expect(refusal_of_row([](auto& row) { row.production = {}; }), "production: 0x0");
  expect(refusal_of_row([](auto& row) { row.mod = "score +"; }), "mod: ");
  expect(refusal_of_row([](auto& row) { row.mask = "doc[q] == doc[kv]"; }), "mask: ");
}

TEST(AddImplementation, GivesARowLikeTheOthers) {
  const std::size_t shipped = shipped_implementations().size();
  ASSERT_EQ(implementations().size(), shipped);
  add_implementation(plain("added_one"));
  add_implementation(plain("added_two"));
  ASSERT_EQ(implementations().size(), shipped + 2);
  EXPECT_EQ(shipped_implementations().size(), shipped);
  EXPECT_EQ(implementations()[shipped].name, "added_one");
  const Implementation& row = implementation_named("added_two");
  EXPECT_EQ(&row, &implementations()[shipped + 1]);
  EXPECT_NE(refusal([] { add_implementation(plain("added_one")); }), "");
}

/// One query on one key, contiguous but for what a test changes.
struct OneKey {
  Tensor<float, 4> q{{1, 1, 2, 8}}, k{{1, 1, 2, 8}}, v{{1, 1, 2, 8}}, o{{1, 1, 2, 8}};
  Tensor<float, 3> lse{{1, 1, 2}}, row_max{{1, 1, 2}};
  Tensor<float, 1> sink{{1}};
  AttentionCall call{
      forward_arguments<float>(q.view(), k.view(), v.view(), o.view(), lse.view()), {}, {}};
};

TEST(ARow, RunsOnTheEnginesThatItHasABuildFor) {
  OneKey one;
  const Implementation row = plain("one_engine");
  EXPECT_TRUE(row.runs_on(Engine::warp));
  EXPECT_FALSE(row.runs_on(Engine::thread));
  EXPECT_EQ(row.run(one.call, Engine::warp), "ran");
  EXPECT_EQ(refusal([&] { row.run(one.call, Engine::thread); }),
            "engine: thread, but one_engine has no build for it");
  EXPECT_EQ(refusal([&] { row.run_planted(one.call); }),
            "engine: warp_planted, but one_engine has no build for it");
}

TEST(ARow, RefusesWhatItDoesNotDo) {
  const auto refused = [](void (*change)(OneKey&, Implementation&), bool able) {
    OneKey one;
    Implementation row = plain("limited");
    change(one, row);
    if (able) row.lse = row.row_max = row.sink = row.dropout = row.strides = true;
    return refusal([&] { row.run(one.call, Engine::warp); });
  };
  const auto lse = [](OneKey&, Implementation& row) { row.lse = false; };
  EXPECT_EQ(refused(lse, false), "lse: given, but not used by limited");
  EXPECT_EQ(refused(lse, true), "");
  const auto no_lse = [](OneKey& one, Implementation& row) {
    row.lse = false;
    one.call.lse = {};
  };
  EXPECT_EQ(refused(no_lse, false), "");
  EXPECT_NE(refused(no_lse, true), "");
  const auto row_max = [](OneKey& one, Implementation& row) {
    row.row_max = false;
    one.call.row_max = describe("row_max", one.row_max.view());
  };
  EXPECT_EQ(refused(row_max, false), "row_max: given, but not used by limited");
  EXPECT_EQ(refused(row_max, true), "");
  const auto sink = [](OneKey& one, Implementation& row) {
    row.sink = false;
    one.call.options.sink = std::as_const(one.sink).view();
  };
  EXPECT_EQ(refused(sink, false), "sink: given, but not used by limited");
  EXPECT_EQ(refused(sink, true), "");
  const auto dropout = [](OneKey& one, Implementation& row) {
    row.dropout = false;
    one.call.options.dropout.p = 0.5;
  };
  EXPECT_EQ(refused(dropout, false), "dropout: given, but not used by limited");
  EXPECT_EQ(refused(dropout, true), "");
  const auto strides = [](OneKey& one, Implementation& row) {
    row.strides = false;
    one.call.k.strides[2] = 4;  // rows that overlap
  };
  EXPECT_NE(refused(strides, false).find("k: has gaps"), std::string::npos);
  EXPECT_EQ(refused(strides, true), "");
}

}  // namespace
}  // namespace attn
