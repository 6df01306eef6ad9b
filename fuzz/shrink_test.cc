// What failures shrink to: the smallest case that shows a planted fault, in every dimension.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fuzz/campaign.h"
#include "fuzz/run.h"

namespace attn::fuzz {
namespace {

/// The first case of one implementation that shows the fault, shrunk.
Case shrunk(PlantedFault fault, const char* implementation) {
  CampaignOptions o;
  o.cases = 500;
  o.seed = 61;
  o.fixed.implementations = {implementation};
  o.run.planted = fault;
  o.shrink_seconds = 300;  // more than it takes, so that the result does not depend on the machine
  const CampaignResult r = run_campaign(o);
  EXPECT_TRUE(r.failure) << implementation;
  if (!r.failure) return {};
  RunOptions planted;
  planted.planted = fault;
  EXPECT_FALSE(is_failure(run_case(r.failure->shrunk).outcome));
  for (const Case& smaller : smaller_cases(r.failure->shrunk))
    EXPECT_FALSE(is_failure(run_case(smaller, planted).outcome)) << to_text(smaller);
  return r.failure->shrunk;
}

/// The whole case, but for the seed.
void expect_minimum(PlantedFault fault, const char* implementation, const std::string& line) {
  Case c = shrunk(fault, implementation);
  c.seed = 0;
  EXPECT_EQ(to_text(c), "v1 " + line + "; seed: 0; impl: " + implementation);
}

/// h % Hkv and h / group differ from two groups of two heads on.
TEST(Shrink, AWrongKeyHeadNeedsTwoGroupsOfTwo) {
  expect_minimum(PlantedFault::M26, "flash_forward",
                 "B1 Hq4 Hkv2 Sq1 Skv1 D1 Dv1 fp16; mod: score; mask: true; fill: gaussian");
}

/// One query's tiles of keys are too few from the second tile of 32 on.
TEST(Shrink, AWrongTileCountNeedsASecondTile) {
  expect_minimum(PlantedFault::M21, "flash_forward",
                 "B1 Hq1 Hkv1 Sq1 Skv33 D1 Dv1 fp16; mod: score; mask: true; fill: exact_count");
}

/// Backward: with one key dS is P (dP - delta) = 0, whatever delta.
TEST(Shrink, DeltaNeedsTwoKeys) {
  expect_minimum(PlantedFault::M35, "flash_backward",
                 "B1 Hq1 Hkv1 Sq1 Skv2 D1 Dv1 fp16; mod: score; mask: true; fill: exact_count");
}

/// Decode: one key in two splits leaves one of them empty.
TEST(Shrink, AnEmptySplitNeedsTwoSplitsAndOneKey) {
  expect_minimum(
      PlantedFault::M54, "decode",
      "B1 Hq1 Hkv1 Sq1 Skv1 D1 Dv1 fp16; mod: score; mask: true; splits: 2; fill: exact_count");
}
TEST(Shrink, AWrongStrideOfSplitsNeedsAGroup) {
  expect_minimum(
      PlantedFault::M57, "decode",
      "B1 Hq2 Hkv1 Sq1 Skv1 D1 Dv1 fp16; mod: score; mask: true; splits: 2; fill: exact_count");
}

/// Two keys on two pages of one slot, in another order than in memory.
TEST(Shrink, PagesTakenForNeighboursNeedTwoPages) {
  expect_minimum(
      PlantedFault::M59, "decode_paged",
      "B1 Hq1 Hkv1 Sq1 Skv2 D1 Dv1 fp16; mod: score; mask: true; page: 1; fill: exact_count");
}

/// A kept pair of two that has no factor. (One alone would leave nothing where it is dropped.)
TEST(Shrink, ADropoutFactorNeedsDropoutOnly) {
  const Case c = shrunk(PlantedFault::M48b, "flash_forward");
  EXPECT_GT(c.dropout, 0) << to_text(c);
  EXPECT_LE(c.skv, 2) << to_text(c);
  EXPECT_EQ(c.b * c.hq * c.sq * c.d * c.dv, 1) << to_text(c);
  EXPECT_TRUE(to_text(c.mod) == "score" && to_text(c.mask) == "true") << to_text(c);
}

/// Blocks of one tile, mixed: two keys, one of which is masked.
TEST(Shrink, AMixedBlockNeedsAMaskedKey) {
  const Case c = shrunk(PlantedFault::M49, "block_sparse_forward");
  EXPECT_EQ(c.b * c.hq * c.sq * c.d * c.dv, 1) << to_text(c);
  EXPECT_EQ(c.skv, 2) << to_text(c);
  EXPECT_EQ(c.mask->size, 3) << to_text(c) << ": such as kv < 1";
  EXPECT_EQ(to_text(c.mod), "score");
  EXPECT_EQ(*c.blocks, (BlockSize{64, 32}));
  EXPECT_EQ(c.dtype, DType::f16);
  EXPECT_EQ(c.fill, Fill::exact_count);
}

/// A mod whose derivative is not 1, and two keys, so that dS is not 0.
TEST(Shrink, ADerivativeNeedsAMod) {
  const Case c = shrunk(PlantedFault::M39, "flash_backward");
  EXPECT_EQ(c.b * c.hq * c.sq * c.d * c.dv, 1) << to_text(c);
  EXPECT_EQ(c.skv, 2) << to_text(c);
  EXPECT_NE(to_text(c.mod), "score");
  EXPECT_LE(c.mod->size, 3) << to_text(c);
  EXPECT_EQ(to_text(c.mask), "true");
  EXPECT_TRUE(c.tables.empty());
}

/// A captured tensor that both batch entries read.
TEST(Shrink, ASumOverTheBatchNeedsTwoEntries) {
  const Case c = shrunk(PlantedFault::M45, "flash_backward");
  EXPECT_EQ(c.b, 2) << to_text(c);
  EXPECT_EQ(c.hq * c.sq * c.d * c.dv, 1) << to_text(c);
  EXPECT_EQ(c.skv, 2) << to_text(c);
  EXPECT_EQ(c.tables.size(), 1u) << to_text(c);
  EXPECT_LE(c.mod->size, 6) << to_text(c) << ": such as score + t[h, 0, 0]";
  EXPECT_EQ(to_text(c.mask), "true");
}

}  // namespace
}  // namespace attn::fuzz
