// The text of a case: what is written is read back, and what is wrong is named.
#include "fuzz/case.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "fuzz/campaign.h"

namespace attn::fuzz {
namespace {

TEST(CaseText, IsReadBackAsWritten) {
  for (int i = 0; i < 500; ++i) {
    const Case c = drawn_case({}, 11, i).value();
    const std::string text = to_text(c);
    const Case again = parse_case(text);
    EXPECT_EQ(to_text(again), text);
    EXPECT_EQ(again.sizes().skv, c.skv);
    EXPECT_EQ(again.scale, c.scale) << text;  // every bit of it
    EXPECT_TRUE(same_tree(again.mod, c.mod)) << text;
    EXPECT_TRUE(same_tree(again.mask, c.mask)) << text;
    EXPECT_EQ(again.small_tile, c.small_tile);
    EXPECT_EQ(again.layout, c.layout);
    EXPECT_EQ(again.fill, c.fill);
    EXPECT_EQ(again.seed, c.seed);
    EXPECT_EQ(again.dtype, c.dtype);
    EXPECT_EQ(again.implementation, c.implementation);
    EXPECT_EQ(again.query_lengths, c.query_lengths) << text;
    EXPECT_EQ(again.key_lengths, c.key_lengths) << text;
    EXPECT_EQ(again.page_size, c.page_size) << text;
    EXPECT_EQ(again.splits, c.splits) << text;
    EXPECT_EQ(again.blocks, c.blocks) << text;
    EXPECT_EQ(again.sink, c.sink) << text;
    EXPECT_EQ(again.dropout, c.dropout) << text;  // every bit of it
    EXPECT_EQ(again.d_lse, c.d_lse) << text;
    EXPECT_EQ(again.row_max, c.row_max) << text;
  }
}

TEST(CaseText, LeavesDefaultsOut) {
  Case c;
  EXPECT_EQ(to_text(c),
            "v1 B1 Hq1 Hkv1 Sq1 Skv1 D8 Dv8 bf16; mod: score; mask: true; fill: gaussian; seed: 0; "
            "impl: flash_forward");
  c.b = 2, c.hq = 4, c.hkv = 2, c.sq = 3, c.skv = 5, c.d = 7, c.dv = 9;
  c.dtype = DType::f16;
  c.scale = -0.5;
  c.layout = Layout::fused;
  c.small_tile = false;
  c.seed = 18446744073709551615u;
  c.tables.push_back(parse_table_spec("slope[Hq]=alibi"));
  EXPECT_EQ(to_text(c),
            "v1 B2 Hq4 Hkv2 Sq3 Skv5 D7 Dv9 fp16; mod: score; mask: true; table: slope[Hq]=alibi; "
            "scale: -0.5; layout: fused; tile: production; fill: gaussian; "
            "seed: 18446744073709551615; impl: flash_forward");
}

/// What only some implementations take; whether it fits is asked when the case is run.
TEST(CaseText, HasPartsForEveryKindOfImplementation) {
  const std::string text =
      "v1 B3 Hq1 Hkv1 Sq4 Skv17 D8 Dv8 bf16; mod: score; mask: true; qlens: 1,0,4; "
      "kvlens: 3,0,17; page: 16; splits: 3; blocks: 64x48; sink: on; dropout: 0.25; dlse: on; "
      "rowmax: on; fill: gaussian; seed: 0; impl: flash_forward";
  const Case c = parse_case(text);
  EXPECT_EQ(c.query_lengths, (std::vector<int>{1, 0, 4}));
  EXPECT_EQ(c.key_lengths, (std::vector<int>{3, 0, 17}));
  EXPECT_EQ(c.page_size, 16);
  EXPECT_EQ(c.splits, 3);
  EXPECT_EQ(c.blocks, (BlockSize{64, 48}));
  EXPECT_TRUE(c.sink && c.d_lse && c.row_max);
  EXPECT_EQ(c.dropout, 0.25);
  EXPECT_EQ(to_text(c), text);
  const Case plain = parse_case(
      "v1 B1 Hq1 Hkv1 Sq4 Skv17 D8 Dv8 bf16; kvlens: 5 ; sink: off; dlse: off; rowmax: off; "
      "splits: 0; dropout: 0");
  EXPECT_EQ(plain.key_lengths, std::vector<int>{5});
  EXPECT_FALSE(plain.sink || plain.d_lse || plain.row_max);
  EXPECT_EQ(to_text(plain).find("sink"), std::string::npos);
}

TEST(CaseText, PartsMayComeInAnyOrderAndBeLeftOut) {
  const Case c =
      parse_case("  v1 B1  Hq2 Hkv1 Sq64 Skv65 D8 Dv8 fp32 ;fill:exact_rank; ; mask :kv<=q;");
  EXPECT_EQ(c.hq, 2);
  EXPECT_EQ(c.skv, 65);
  EXPECT_EQ(c.dtype, DType::f32);
  EXPECT_EQ(c.fill, Fill::exact_rank);
  EXPECT_EQ(to_text(c.mask), "kv <= q");
  EXPECT_EQ(to_text(c.mod), "score");
  EXPECT_FALSE(c.scale);
  EXPECT_TRUE(c.small_tile);
}

TEST(CaseText, TablesMayFollowTheExpressionsThatReadThem) {
  const Case c = parse_case(
      "v1 B1 Hq1 Hkv1 Sq1 Skv1 D8 Dv8 bf16; mod: score + t[h]; table: t[Hq]=uniform(0,1)");
  EXPECT_EQ(c.declarations().size(), 1u);
}

TEST(CaseText, NamesEveryFillAndLayout) {
  for (int i = 0; i < fill_count; ++i) {
    Case c;
    c.fill = static_cast<Fill>(i);
    EXPECT_EQ(parse_case(to_text(c)).fill, c.fill);
  }
  for (int i = 0; i < layout_count; ++i) {
    Case c;
    c.layout = static_cast<Layout>(i);
    EXPECT_EQ(parse_case(to_text(c)).layout, c.layout);
  }
  for (const DType t : {DType::f64, DType::f32, DType::f16, DType::bf16})
    EXPECT_EQ(parse_dtype(name_of(t)), t);
}

TEST(CaseText, NamesThePartThatIsWrong) {
  const std::string good = "v1 B1 Hq1 Hkv1 Sq1 Skv1 D8 Dv8 bf16";
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"", "expected 'v1'"},
      {"v2 B1 Hq1 Hkv1 Sq1 Skv1 D8 Dv8 bf16", "'v2'"},
      {"v1 B1 Hq1 Hkv1 Sq1 Skv1 D8 bf16", "Dv"},
      {"v1 B1 Hq1 Hkv1 Sq1 D8 Dv8 bf16", "Skv"},
      {"v1 B Hq1 Hkv1 Sq1 Skv1 D8 Dv8 bf16", "B"},
      {"v1 B1 Hq1 Hkv1 Sq1x Skv1 D8 Dv8 bf16", "Sq is '1x'"},
      {"v1 B1 Hq1 Hkv1 Sq-1 Skv1 D8 Dv8 bf16", "Sq is -1"},
      {"v1 B1 Hq1 Hkv1 Sq1 Skv1 D0 Dv8 bf16", "D is 0"},
      {"v1 B1 Hq1 Hkv1 Sq1 Skv9999999 D8 Dv8 bf16", "Skv is 9999999"},
      {"v1 B1 Hq1 Hkv1 Sq1 Skv99999999999 D8 Dv8 bf16", "Skv"},
      {"v1 B1 Hq1 Hkv1 Sq1 Skv1 D8 Dv8 int8", "dtype: 'int8'"},
      {"v1 B1 Hq1 Hkv1 Sq1 Skv1 D8 Dv8", "dtype"},
      {good + " more", "'more'"},
      {good + "; mod: score +", "mod: column 8"},
      {good + "; mod: scores", "mod: column 1"},
      {good + "; mask: score > 0", "mask: column 1"},
      {good + "; mod: score + t[h]", "t"},
      {good + "; table: t=uniform(0,1)", "table"},
      {good + "; scale: fast", "scale is 'fast'"},
      {good + "; scale: inf", "scale is inf"},
      {good + "; scale: nan", "scale is nan"},
      {good + "; layout: diagonal", "layout is 'diagonal'"},
      {good + "; tile: huge", "tile is 'huge'"},
      {good + "; qlens: 1,,2", "qlens is ''"},
      {good + "; qlens: 1,x", "qlens is 'x'"},
      {good + "; kvlens: 1,-2", "kvlens is -2"},
      {good + "; kvlens:", "kvlens is ''"},
      {good + "; page: 0", "page is 0"},
      {good + "; page: big", "page is 'big'"},
      {good + "; splits: -1", "splits is -1"},
      {good + "; blocks: 64", "blocks is '64'"},
      {good + "; blocks: 64x", "blocks is ''"},
      {good + "; blocks: 0x8", "blocks is 0"},
      {good + "; sink: yes", "sink is 'yes', expected one of off, on"},
      {good + "; dropout: 1", "dropout is 1"},
      {good + "; dropout: -0.1", "dropout is -0.1"},
      {good + "; dropout: nan", "dropout is nan"},
      {good + "; dlse: 1", "dlse is '1'"},
      {good + "; rowmax: 1", "rowmax is '1'"},
      {good + "; fill: zeros", "fill is 'zeros'"},
      {good + "; seed: -1", "seed is '-1'"},
      {good + "; seed: 18446744073709551616", "seed"},
      {good + "; impl: flash_forward\xc3\xa4", "impl is 'flash_forward\\xc3\\xa4'"},
      {good + "; impl:", "impl is ''"},
      {good + "; colour: red", "'colour'"},
      {good + "; gaussian", "'gaussian'"},
  };
  for (const auto& [text, names] : bad) {
    try {
      parse_case(text);
      ADD_FAILURE() << "accepted: " << text;
    } catch (const std::invalid_argument& error) {
      EXPECT_NE(std::string(error.what()).find(names), std::string::npos) << text << "\n"
                                                                          << error.what();
    }
  }
}

std::string refusal(const std::string& text) {
  try {
    parse_case(text);
    return "accepted";
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
}

/// Whatever a line holds, one short line of text says what is wrong with it.
TEST(CaseText, HostileLinesAreRefusedInPrintableWords) {
  const std::string good = "v1 B1 Hq1 Hkv1 Sq1 Skv1 D8 Dv8 bf16";
  EXPECT_EQ(refusal(good + std::string("\0", 1)),
            "case: byte 36 is '\\x00', expected one line of UTF-8");
  EXPECT_EQ(refusal(good + "; mod:\nscore"),
            "case: byte 42 is '\\x0a', expected one line of UTF-8");
  EXPECT_EQ(refusal(good + "; mod: \x1b[2J"),
            "case: byte 43 is '\\x1b', expected one line of UTF-8");
  EXPECT_EQ(refusal(good + "; table: t[1]=\xff"),
            "case: byte 50 is '\\xff', expected one line of UTF-8");
  EXPECT_EQ(refusal(good + std::string(10000000, 'x')),
            "case: a line of 10000035 bytes, expected at most 1048576");
  const std::string longer = "v1 " + std::string(1000000, 'B');
  EXPECT_EQ(refusal(longer),
            "case: B is 'BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB...', expected a number");
  for (const char* part :
       {"; layout: ", "; seed: ", "; blocks: ", "; qlens: ", "; impl: ", "; ", " "})
    EXPECT_LT(refusal(good + part + std::string(100000, 'y')).size(), 400u) << part;
  EXPECT_EQ(refusal(good + "\n"), "accepted");  // the end of the line that it is
}

/// Sizes that each are fine make tensors that no memory holds, or loops that never end.
TEST(CaseText, TensorsThatNoMemoryHoldsAreRefused) {
  for (const char* shape :
       {"B1048576 Hq1048576 Hkv1 Sq0 Skv0 D1 Dv0", "B1024 Hq1024 Hkv1 Sq1024 Skv1 D8 Dv8",
        "B1024 Hq1 Hkv1 Sq1 Skv1048576 D8 Dv8", "B16 Hq16 Hkv1 Sq1 Skv1 D1 Dv1048576"})
    EXPECT_NE(refusal(std::string("v1 ") + shape + " bf16").find("elements, expected at most"),
              std::string::npos)
        << shape;
  EXPECT_NE(refusal("v1 B1 Hq8 Hkv8 Sq1 Skv1 D64 Dv64 bf16; page: 1048576").find("elements"),
            std::string::npos);
  EXPECT_EQ(refusal("v1 B1 Hq8 Hkv8 Sq131072 Skv131072 D128 Dv128 bf16"), "accepted");
}

}  // namespace
}  // namespace attn::fuzz
