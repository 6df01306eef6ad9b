// Rows of the user's, fuzzed: cases are drawn of what a row takes, and no others; what it does not
// do is refused by name; it is judged like any other row.
#include "fuzz/row_limits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>
#include <string>

#include "fuzz/campaign.h"
#include "fuzz/run.h"
#include "optimized/call_check.h"

namespace attn::fuzz {
namespace {

using Refusal = std::optional<std::string>;

/// A shipped kernel under another name. Without LSE it has one of its own to write to.
std::string_view shipped_forward(const AttentionCall& given, const Implementation& row) {
  check_call(given, row);
  AttentionCall call = given;
  Tensor<float, 3> lse({call.q.extents[0], call.q.extents[1], call.q.extents[2]});
  if (!row.lse) call.lse = describe("lse", lse.view());
  const bool fp32 = call.q.dtype == DType::f32;
  return implementation_named(fp32 ? "flash_forward_fp32" : "flash_forward")
      .run(call, Engine::warp);
}
std::string_view shipped_backward(const AttentionCall& call, const Implementation&) {
  return implementation_named("flash_backward").run(call, Engine::warp);
}
/// The same with a scale that is off by one part in a hundred.
std::string_view wrong_scale(const AttentionCall& given, const Implementation& row) {
  AttentionCall call = given;
  call.options.scale = 1.01 * given.options.scale.value_or(1 / std::sqrt(call.q.extents[3]));
  return shipped_forward(call, row);
}

Refusal refuse(bool refused) { return refused ? Refusal("not taken") : Refusal{}; }

/// Rows of several kinds; they stand in the table from here on.
void add_rows() {
  static bool added = false;
  if (added) return;
  added = true;
  Implementation any{.what = "for a test",
                     .production = {16, 32},
                     .small = {16, 32},
                     .refusal = [](const Problem& p) { return refuse(p.dtype != DType::f16); },
                     .numerics = flash_numerics,
                     .warp = shipped_forward};
  const auto add = [&](std::string_view name, auto change) {
    Implementation row = any;
    row.name = name;
    change(row);
    add_implementation(row);
  };
  add("plain_causal", [](Implementation& row) {
    row.mod = "score", row.mask = "q >= kv";
    row.lse = row.row_max = row.sink = row.dropout = row.strides = false;
    row.refusal = [](const Problem& p) {
      return refuse(p.dtype != DType::f16 || p.d != p.dv || p.d % 16 != 0 || p.d > 64 ||
                    p.skv == 0);
    };
  });
  add("one_head_size", [](Implementation& row) {
    row.refusal = [](const Problem& p) { return refuse(p.d != 224 || p.dv != 224); };
  });
  add("whole_tiles", [](Implementation& row) {
    row.refusal = [](const Problem& p) {
      return refuse(p.dtype != DType::f16 || p.sq % 16 != 0 || p.skv % 32 != 0 || p.hq != p.hkv);
    };
  });
  add("one_mod_backward", [](Implementation& row) {
    row.pass = Pass::backward, row.mod = "tanh(score)", row.warp = shipped_backward;
  });
  add("only_thread", [](Implementation& row) { row.thread = row.warp, row.warp = nullptr; });
  add("off_by_a_percent", [](Implementation& row) { row.lse = false, row.warp = wrong_scale; });
}

Case drawn_of(const std::string& row, int i) {
  Fixed fixed;
  fixed.implementations = {row};
  return drawn_case(fixed, 71, i).value();
}

TEST(AddedRows, AreDrawnWithinWhatTheyTake) {
  add_rows();
  for (const std::string name :
       {"plain_causal", "one_head_size", "whole_tiles", "one_mod_backward"}) {
    const Implementation& row = implementation_named(name);
    std::set<int> heads, queries;
    for (int i = 0; i < 300; ++i) {
      const Case c = drawn_of(name, i);
      EXPECT_EQ(row.refusal(problem_of(c)), Refusal{}) << to_text(c);
      EXPECT_NO_THROW(check_limits(c, row)) << to_text(c);
      heads.insert(c.d), queries.insert(c.sq);
    }
    EXPECT_EQ(heads.size() > 1, name != std::string("one_head_size")) << name;
    EXPECT_GT(queries.size(), 2u) << name;
  }
  EXPECT_EQ(to_text(drawn_of("plain_causal", 0).mask), "q >= kv");
  EXPECT_EQ(to_text(drawn_of("one_mod_backward", 0).mod), "tanh(score)");
}

TEST(AddedRows, KeepTheirStorageTypeWhereWhatIsFixedIsRefused) {
  add_rows();
  Fixed fixed;
  fixed.implementations = {"plain_causal"};
  fixed.d = 65;
  EXPECT_EQ(drawn_case(fixed, 71, 0).value().dtype, DType::f16);
}

TEST(AddedRows, OfWhichTheFuzzerKnowsNothingAreDrawnInFull) {
  add_rows();
  int sinks = 0, layouts = 0, masks = 0;
  for (int i = 0; i < 100; ++i) {
    const Case c = drawn_of("off_by_a_percent", i);
    sinks += c.sink, layouts += c.layout != Layout::bhsd, masks += c.mask->size > 1;
  }
  EXPECT_GT(sinks, 0);
  EXPECT_GT(layouts, 0);
  EXPECT_GT(masks, 0);
}

TEST(AddedRows, AreJudgedLikeOthers) {
  add_rows();
  for (const std::string name : {"plain_causal", "whole_tiles", "one_mod_backward"}) {
    int passed = 0;
    for (int i = 0; i < 40; ++i) {
      const Case c = drawn_of(name, i);
      const Verdict v = run_case(c);
      EXPECT_TRUE(v.outcome == Outcome::pass || v.outcome == Outcome::mistrusted) << report(c, v);
      passed += v.outcome == Outcome::pass;
    }
    EXPECT_GT(passed, 20) << name;
  }
  CampaignOptions options;
  options.cases = 100;
  options.shrink_seconds = 1;
  options.fixed.implementations = {"off_by_a_percent"};
  const CampaignResult r = run_campaign(options);
  ASSERT_TRUE(r.failure);
  EXPECT_EQ(r.failure->verdict.discrepancy.tensor, "O");  // of a row without LSE
  EXPECT_EQ(run_case(parse_case(to_text(r.failure->shrunk))).outcome, Outcome::discrepancy);
}

std::string refusal_of(const std::string& parts, const RunOptions& options = {}) {
  const Verdict v =
      run_case(parse_case("v1 B1 Hq1 Hkv1 Sq4 Skv4 D16 Dv16 fp16; " + parts), options);
  EXPECT_EQ(v.outcome, Outcome::refused) << parts;
  return v.reason;
}

TEST(AddedRows, RefuseOtherCasesByName) {
  add_rows();
  const std::string causal = "; mask: q >= kv; impl: plain_causal";
  EXPECT_EQ(refusal_of("mod: score; mask: true; impl: plain_causal"),
            "mask: 'true', expected 'q >= kv', the only one that plain_causal computes");
  EXPECT_EQ(refusal_of("mod: score + 1" + causal),
            "mod: 'score + 1', expected 'score', the only one that plain_causal computes");
  EXPECT_EQ(refusal_of("sink: on" + causal), "sink: given, but plain_causal has none");
  EXPECT_EQ(refusal_of("dropout: 0.5" + causal), "dropout: given, but plain_causal has none");
  EXPECT_EQ(refusal_of("rowmax: on" + causal), "rowmax: given, but plain_causal has none");
  EXPECT_EQ(refusal_of("layout: bshd" + causal),
            "layout: bshd, expected bhsd, the only one that plain_causal takes");
  RunOptions thread, planted;
  thread.engine = Engine::thread;
  planted.planted = PlantedFault::M01;
  EXPECT_EQ(refusal_of("mod: score" + causal, thread),
            "engine: thread, but plain_causal has no build for it");
  EXPECT_EQ(refusal_of("mod: score" + causal, planted),
            "engine: warp_planted, but plain_causal has no build for it");
}

TEST(RowsToFuzz, AreTheAddedOnesUnlessOthersAreNamed) {
  add_rows();
  EXPECT_EQ(rows_to_fuzz("plain_causal, decode", Engine::warp),
            (std::vector<std::string>{"plain_causal", "decode"}));
  const std::vector<std::string> all = rows_to_fuzz("all", Engine::warp);
  EXPECT_EQ(all.size(), implementations().size() - 1);  // one has no build for it
  EXPECT_EQ(std::count(all.begin(), all.end(), "only_thread"), 0);
  EXPECT_THROW(rows_to_fuzz("", Engine::warp), std::invalid_argument);
  EXPECT_THROW(rows_to_fuzz("plain_causal", Engine::thread), std::invalid_argument);
  EXPECT_EQ(rows_to_fuzz("only_thread", Engine::thread), std::vector<std::string>{"only_thread"});
  EXPECT_THROW(rows_to_fuzz("no_such_row", Engine::warp), std::invalid_argument);

  EXPECT_TRUE(has_shipped_row({}));
  EXPECT_TRUE(has_shipped_row({"plain_causal", "decode"}));
  EXPECT_FALSE(has_shipped_row({"plain_causal"}));
}

TEST(Rows, TakeWhatTheySay) {
  add_rows();
  const Implementation& causal = implementation_named("plain_causal");
  EXPECT_EQ(head_sizes(causal, DType::f16), (std::vector<int>{16, 32, 48, 64}));
  EXPECT_TRUE(takes(causal, DType::f16));
  EXPECT_FALSE(takes(causal, DType::bf16));
  EXPECT_TRUE(takes(causal, DType::f16, 64));
  EXPECT_FALSE(takes(causal, DType::f16, 64, 32));
  EXPECT_FALSE(takes(causal, DType::f16, 80));
  EXPECT_TRUE(takes(implementation_named("whole_tiles"), DType::f16));
  EXPECT_FALSE(takes(implementation_named("flash_forward"), DType::f32));
}

}  // namespace
}  // namespace attn::fuzz
