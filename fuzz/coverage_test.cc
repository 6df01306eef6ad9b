// What of a case is counted.
#include "fuzz/coverage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "fuzz/campaign.h"
#include "fuzz/case_sequences.h"

namespace attn::fuzz {
namespace {

Coverage of(const std::string& line, const RowCounts& rows = {}) {
  Coverage coverage = empty_coverage();
  Verdict verdict;
  verdict.rows = rows;
  count(coverage, parse_case(line), verdict);
  return coverage;
}
std::uint64_t cases_of(const Coverage& coverage, const std::string& dimension,
                       const std::string& region) {
  return coverage.at(dimension).at(region);
}

TEST(Coverage, CountsWhatACaseIs) {
  const Coverage c =
      of("v1 B1 Hq6 Hkv2 Sq65 Skv33 D16 Dv8 fp16; mod: score > 1 ? -score : log(2.0) + score * "
         "m[b, h, "
         "q, kv];"
         " table: m[B,1,1,Skv]=uniform(1,2); mask: kv <= q; sink: on; fill: ties");
  for (const auto& [dimension, region] : {std::pair{"spans", "two query and two key tiles"},
                                          {"heads", "GQA"},
                                          {"group", "3"},
                                          {"queries", "65..128"},
                                          {"keys", "33..64"},
                                          {"lengths", "Sq > Skv"},
                                          {"sink", "given"},
                                          {"head size", "D != Dv"},
                                          {"operation", "negate"},
                                          {"operation", "log"},
                                          {"fill", "ties"},
                                          {"operation", "<="},
                                          {"table rank", "4"},
                                          {"table by", "b kv"},
                                          {"table type", "real"},
                                          {"jump of the mod", "branch on the score"},
                                          {"derivative", "changes sign"}})
    EXPECT_EQ(cases_of(c, dimension, region), 1u) << dimension << " " << region;
  EXPECT_EQ(cases_of(c, "operation", "-"), 0u) << "of one operand only";
}

/// The regions of one dimension that a case is counted in, in alphabetical order.
std::string regions(const std::string& line, const std::string& dimension,
                    const RowCounts& r = {}) {
  const Coverage coverage = of(line, r);
  std::string all;
  for (const auto& [region, cases] : coverage.at(dimension))
    if (cases > 0) all += (all.empty() ? "" : "; ") + region;
  return all;
}

TEST(Coverage, CountsACaseInEachRegionThatItIsOf) {
  struct Expected {
    std::string line, dimension, regions;
  };
  const std::string shape = "v1 B1 Hq1 Hkv1 Sq4 Skv4 D8 Dv8 bf16", more = shape + "; ",
                    decode = "v1 B2 Hq2 Hkv1 Sq4 Skv40 D8 Dv8 bf16; impl: decode",
                    packed = "v1 B2 Hq1 Hkv1 Sq4 Skv4 D8 Dv8 bf16; impl: packed_forward; ",
                    paged = "v1 B1 Hq1 Hkv1 Sq4 Skv4 D8 Dv8 bf16; impl: decode_paged; ",
                    sparse = "v1 B1 Hq1 Hkv1 Sq4 Skv4 D8 Dv8 bf16; impl: block_sparse_forward; ";
  const Expected all[] = {
      {shape, "implementation", "flash_forward"},
      {shape, "dtype", "bf16"},
      {"v1 B1 Hq1 Hkv1 Sq4 Skv4 D8 Dv8 fp16", "dtype", "fp16"},
      {shape, "scale", "default"},
      {more + "scale: 2", "scale", "positive"},
      {more + "scale: -2", "scale", "negative"},
      {more + "scale: 0", "scale", "zero"},
      {shape, "layout", "bhsd"},
      {more + "layout: shared_kv", "layout", "shared_kv"},
      {shape, "tile", "small"},
      {more + "tile: production", "tile", "production"},
      {shape, "spans", "fewer tiles"},
      // shapes
      {"v1 B1 Hq1 Hkv1 Sq0 Skv1 D8 Dv8 bf16", "queries", "0"},
      {"v1 B1 Hq1 Hkv1 Sq0 Skv1 D8 Dv8 bf16", "keys", "1"},
      {"v1 B1 Hq1 Hkv1 Sq16 Skv17 D8 Dv8 bf16", "queries", "2..16"},
      {"v1 B1 Hq1 Hkv1 Sq16 Skv17 D8 Dv8 bf16", "keys", "17..32"},
      {"v1 B1 Hq1 Hkv1 Sq128 Skv129 D8 Dv8 bf16", "queries", "65..128"},
      {"v1 B1 Hq1 Hkv1 Sq128 Skv129 D8 Dv8 bf16", "keys", ">128"},
      {"v1 B1 Hq1 Hkv1 Sq128 Skv129 D8 Dv8 bf16", "lengths", "Sq < Skv"},
      {shape, "lengths", "Sq = Skv"},
      {shape, "heads", "MHA"},
      {shape, "group", "1"},
      {"v1 B1 Hq4 Hkv1 Sq4 Skv4 D8 Dv8 bf16", "heads", "MQA"},
      {"v1 B1 Hq4 Hkv1 Sq4 Skv4 D8 Dv8 bf16", "group", "4"},
      {shape, "head size", "D = Dv, multiple of 8"},
      {"v1 B1 Hq1 Hkv1 Sq4 Skv4 D12 Dv12 bf16", "head size", "D = Dv, odd"},
      {"v1 B1 Hq1 Hkv1 Sq4 Skv4 D128 Dv128 bf16", "head size", "D = Dv, multiple of 8"},
      {"v1 B1 Hq1 Hkv1 Sq4 Skv4 D8 Dv136 bf16", "head size", "D != Dv; beyond 128"},
      // what only some implementations have
      {shape, "sequences", ""},
      {packed + "qlens: 1,2; kvlens: 3,4", "sequences", "several"},
      {packed + "qlens: 0,2; kvlens: 3,4", "sequences", "several; some without queries"},
      {packed + "qlens: 1,2; kvlens: 3,0", "sequences", "several; some without keys"},
      {paged + "page: 2; kvlens: 3", "sequences", "one"},
      {"v1 B0 Hq1 Hkv1 Sq4 Skv4 D8 Dv8 bf16; impl: packed_forward", "sequences", "none"},
      {shape, "splits", ""},
      {decode, "splits", "chosen"},
      {decode + "; splits: 3", "splits", "3"},
      {decode, "page", ""},
      {paged + "page: 2; kvlens: 3", "page", "2"},
      {shape, "blocks", ""},
      {sparse + "blocks: 64x64", "blocks", "whole tiles"},
      {sparse + "blocks: 64x48", "blocks", "not whole tiles"},
      {sparse + "blocks: 63x64", "blocks", "not whole tiles"},
      {shape, "dLSE", ""},
      {more + "impl: flash_backward", "dLSE", "none"},
      {more + "impl: flash_backward; dlse: on", "dLSE", "given"},
      {more + "impl: flash_backward", "row max", ""},
      {shape, "row max", "not wanted"},
      {more + "rowmax: on", "row max", "wanted"},
      {shape, "sink", "none"},
      {more + "sink: on", "sink", "given"},
      {shape, "dropout", "none"},
      {more + "dropout: 0.5", "dropout", "0.5"},
      // expressions
      {shape, "mod size", "score"},
      {more + "mod: score * score * score * score", "mod size", "small"},
      {more + "mod: score * score * score * score * score", "mod size", "large"},
      {shape, "mask size", "all true"},
      {more + "mask: kv <= q", "mask size", "small"},
      {more + "mask: kv <= q && q < kv + 4", "mask size", "large"},
      {shape, "jump of the mod", "none"},
      {more + "mod: floor(score)", "jump of the mod", "floor"},
      {more + "mod: score > 0 ? score : 0", "jump of the mod", "branch on the score"},
      {more + "mod: kv > 0 ? score : 0", "jump of the mod", "none"},
      {shape, "table by", ""},
      {more + "mod: score + t[0]; table: t[1]=uniform(0,1)", "table by", "nothing"},
      {more + "mod: score + t[q]; table: t[Sq]=uniform(0,1)", "table by", "q"},
      {more + "mod: score + t[q, kv]; table: t[1,Skv]=uniform(0,1)", "table by", "kv"},
      {more + "mod: score + t[h] + u[q]; table: t[Hq]=uniform(0,1); table: u[Sq]=uniform(0,1)",
       "table by", "h; q"},
      {more + "mask: t[kv] == 0; table: t[Skv]=ints(0,2)", "table type", "index"},
      {more + "mask: t[kv] == 0; table: t[Skv]=ints(0,2)", "table rank", "1"},
  };
  for (const Expected& x : all)
    EXPECT_EQ(regions(x.line, x.dimension), x.regions) << x.dimension << ": " << x.line;
}

TEST(Coverage, CountsTheReadsOfEachTableOnce) {
  const Coverage c =
      of("v1 B1 Hq1 Hkv1 Sq4 Skv4 D8 Dv8 bf16; mod: score + t[h] + u[q]; "
         "table: t[Hq]=uniform(0,1); table: u[Sq]=uniform(0,1)");
  EXPECT_EQ(cases_of(c, "table by", "h"), 1u);
  EXPECT_EQ(cases_of(c, "table by", "q"), 1u);
}

TEST(Coverage, DoesNotCountWhatWasRefused) {
  Coverage coverage = empty_coverage();
  Verdict refused;
  refused.outcome = Outcome::refused;
  count(coverage, Case(), refused);
  EXPECT_EQ(coverage, empty_coverage());
}

TEST(Coverage, TellsHowTheDerivativeBehaves) {
  const std::string before = "v1 B1 Hq1 Hkv1 Sq4 Skv4 D8 Dv8 bf16; mod: ";
  EXPECT_EQ(cases_of(of(before + "2 * score"), "derivative", "has one sign"), 1u);
  EXPECT_EQ(cases_of(of(before + "abs(score - 1)"), "derivative", "changes sign"), 1u);
  EXPECT_EQ(cases_of(of(before + "max(score, 0)"), "derivative", "vanishes"), 1u);
  EXPECT_EQ(cases_of(of(before + "kv >= 0 ? score : abs(score)"), "derivative", "has one sign"),
            1u);
  EXPECT_EQ(cases_of(of(before + "-score"), "derivative", "has one sign"), 1u);
  EXPECT_EQ(cases_of(of(before + "q > 0 ? score : -score"), "derivative", "changes sign"), 1u);
  EXPECT_EQ(cases_of(of(before + "score < 0 ? 0 * score : score"), "derivative", "vanishes"), 1u);
  EXPECT_EQ(cases_of(of(before + "score < 8 ? -inf : score"), "derivative", "has one sign"), 1u)
      << "what is masked has no derivative";
}

TEST(Coverage, CountsRowsByWhatTheyProvedToBe) {
  RowCounts rows;
  rows.empty = 3, rows.one_key = 1;
  const Coverage c = of("v1 B1 Hq1 Hkv1 Sq4 Skv4 D8 Dv8 bf16", rows);
  EXPECT_EQ(cases_of(c, "rows", "some empty"), 1u);
  EXPECT_EQ(cases_of(c, "rows", "some of one key"), 1u);
  EXPECT_EQ(cases_of(c, "rows", "some general"), 0u);
  const std::pair<std::int64_t RowCounts::*, const char*> kinds[] = {
      {&RowCounts::empty, "some empty"},
      {&RowCounts::one_key, "some of one key"},
      {&RowCounts::one_hot, "some proved one-hot"},
      {&RowCounts::counted, "some proved uniform"},
      {&RowCounts::powers, "some of powers of two"},
      {&RowCounts::general, "some general"}};
  for (const auto& [kind, region] : kinds) {
    RowCounts one;
    one.*kind = 2;
    EXPECT_EQ(regions("v1 B1 Hq1 Hkv1 Sq4 Skv4 D8 Dv8 bf16", "rows", one), region);
  }
}

/// Rows of one key, of both passes, as the bounds tell them.
TEST(Coverage, RowsOfOneKeyAreCountedByBothPasses) {
  for (const char* implementation : {"flash_forward", "flash_backward"}) {
    const Case c = parse_case(
        std::string(
            "v1 B1 Hq1 Hkv1 Sq9 Skv5 D8 Dv8 bf16; mask: q < 3 ? kv == q : kv < q - 3; impl: ") +
        implementation);
    const Verdict v = run_case(c);  // rows 0..2: one key each; 3: none; 4: one; 5..8: two to five
    EXPECT_EQ(v.rows.one_key, 4) << implementation;
    EXPECT_EQ(v.rows.empty, 1) << implementation;
  }
}

/// Decode has the rows of all heads of a group in one tile, packed sequences are each their own.
TEST(Coverage, SpansTilesOfOneSequenceOnly) {
  const auto spans = [](const std::string& line) { return spans_tiles(parse_case(line)); };
  const std::string b2 = "v1 B2 Hq1 Hkv1 Sq65 Skv33 D8 Dv8 bf16; impl: packed_forward; qlens: ";
  EXPECT_TRUE(spans(b2 + "65,1; kvlens: 33,1"));
  EXPECT_FALSE(spans(b2 + "65,1; kvlens: 1,33"));
  EXPECT_FALSE(spans(b2 + "65,64; kvlens: 32,33"));
  const std::string decode = "v1 B1 Hq8 Hkv1 Sq9 Skv40 D8 Dv8 bf16; impl: decode; kvlens: ";
  EXPECT_TRUE(spans(decode + "33"));
  EXPECT_FALSE(spans(decode + "32"));
  EXPECT_FALSE(spans("v1 B1 Hq8 Hkv1 Sq8 Skv40 D8 Dv8 bf16; impl: decode"));
  EXPECT_FALSE(spans("v1 B1 Hq1 Hkv1 Sq65 Skv33 D8 Dv8 bf16; tile: production"));
}

}  // namespace
}  // namespace attn::fuzz
