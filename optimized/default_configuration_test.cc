// The default configuration: every problem has a row, and the rows say what they are derived from.
#include "optimized/default_configuration.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace attn {
namespace {

Problem problem(int sq, int d, int hq = 1, int hkv = 1) {
  Problem p;
  p.b = 1, p.hq = hq, p.hkv = hkv, p.sq = sq, p.skv = 1000, p.d = p.dv = d, p.dtype = DType::f16;
  return p;
}

/// The rule, from the definition: the first row whose limits hold.
const ConfigurationRow* first_that_fits(Pass pass, bool cache, const Problem& p) {
  const int rows = cache ? p.sq * (p.hq / p.hkv) : p.sq;
  for (const ConfigurationRow& row : default_configuration())
    if (row.pass == pass && row.cache == cache && (row.most_rows == 0 || rows <= row.most_rows) &&
        (row.most_head == 0 || std::max(p.d, p.dv) <= row.most_head))
      return &row;
  return nullptr;
}

TEST(DefaultConfiguration, EveryRowDecidesForSomeProblemAndGivesAReason) {
  for (const ConfigurationRow& row : default_configuration()) {
    EXPECT_FALSE(row.reason.empty());
    EXPECT_NE(row.tile, TileChoice::automatic);
    bool decides = false;
    for (const int sq : {1, 64, 65, 4096})
      for (const int d : {64, 128, 129, 256})
        decides |= &default_configuration_for(row.pass, row.cache, problem(sq, d)) == &row;
    EXPECT_TRUE(decides) << row.reason;
  }
}

TEST(DefaultConfiguration, EveryProblemHasTheFirstRowThatFits) {
  for (const auto& [pass, cache] :
       {std::pair{Pass::forward, false}, {Pass::forward, true}, {Pass::backward, false}})
    for (const int sq : {0, 1, 63, 64, 65, 128, 100000})
      for (const int d : {1, 64, 65, 128, 129, 256})
        for (const int hq : {1, 4, 64}) {
          const Problem p = problem(sq, d, hq);
          const ConfigurationRow* expected = first_that_fits(pass, cache, p);
          ASSERT_NE(expected, nullptr) << sq << " " << d;
          EXPECT_EQ(&default_configuration_for(pass, cache, p), expected) << sq << " " << d;
        }
}

TEST(DefaultConfiguration, OptionsOverrideTheTable) {
  AttentionOptions options;
  const Problem few = problem(64, 64), many = problem(65, 128), large = problem(500, 129);
  EXPECT_EQ(chosen_tile(options, Pass::forward, false, few), TileChoice::small);
  EXPECT_EQ(chosen_tile(options, Pass::forward, false, many), TileChoice::production);
  EXPECT_EQ(chosen_tile(options, Pass::forward, false, large), TileChoice::small);
  EXPECT_EQ(chosen_tile(options, Pass::forward, true, many), TileChoice::small) << "decode";
  for (const TileChoice tile : {TileChoice::small, TileChoice::production}) {
    options.tile = tile;
    for (const Problem& p : {few, many, large})
      EXPECT_EQ(chosen_tile(options, Pass::forward, false, p), tile);
  }
}

/// Each multiprocessor has two blocks if there is work for so many, and no part is without a tile.
TEST(ChosenSplits, FillTheDeviceAndLeaveNoPartEmpty) {
  for (const std::int64_t blocks : {1, 2, 7, 131, 132, 133, 264, 265, 100000})
    for (const int tiles : {1, 2, 3, 50, 264, 5000})
      for (const int multiprocessors : {1, 16, 132}) {
        const int splits = chosen_splits(blocks, tiles, multiprocessors);
        ASSERT_GE(splits, 1);
        EXPECT_LE(splits, tiles) << "a part without a tile";
        EXPECT_LE(splits, most_splits);
        EXPECT_TRUE(splits == tiles || splits == most_splits ||
                    splits * blocks >= 2 * multiprocessors)
            << "an idle device";
        EXPECT_TRUE(splits == 1 || (splits - 1) * blocks < 2 * multiprocessors) << "too many parts";
      }
  EXPECT_EQ(chosen_splits(0, 5, 132), 1);
  EXPECT_EQ(chosen_splits(4, 0, 132), 1);
}

}  // namespace
}  // namespace attn
