// What the parts of a case mean for each kind of implementation, and which parts it refuses.
#include "fuzz/case_sequences.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace attn::fuzz {
namespace {

/// The first row of the table of that kind; nothing if there is none.
const Implementation* row_of(Pass pass, Sequences how, bool block_sparse = false) {
  for (const Implementation& row : implementations())
    if (row.pass == pass && row.sequences == how && row.block_sparse == block_sparse) return &row;
  return nullptr;
}

Case case_of(const Implementation& row, const std::string& parts = "") {
  return parse_case("v1 B3 Hq2 Hkv1 Sq4 Skv17 D8 Dv8 bf16; " + parts +
                    "; impl: " + std::string(row.name));
}

TEST(LogicalSequences, AreBatchEntriesWhereTensorsAreDense) {
  const auto sequences = logical_sequences(case_of(*row_of(Pass::forward, Sequences::dense)));
  ASSERT_EQ(sequences.size(), 3u);
  EXPECT_EQ(sequences[2].b, 2);
  EXPECT_EQ(sequences[2].queries.batch, 2);
  EXPECT_EQ(sequences[2].queries.count, 4);
  EXPECT_EQ(sequences[2].keys.count, 17);
  EXPECT_EQ(sequences[2].sizes.skv, 17);
  EXPECT_EQ(sequences[2].sizes.q_offset, 0);
}

TEST(LogicalSequences, SeeWhatPackedOnesSee) {
  const Implementation* row = row_of(Pass::forward, Sequences::packed);
  ASSERT_TRUE(row) << "no implementation of packed sequences";
  const auto sequences = logical_sequences(case_of(*row, "qlens: 1,0,4; kvlens: 3,17,2"));
  ASSERT_EQ(sequences.size(), 3u);
  EXPECT_EQ(sequences[1].queries.count, 0);
  EXPECT_EQ(sequences[1].keys.count, 17);
  const Sizes& last = sequences[2].sizes;
  EXPECT_EQ(last.b, 3);
  EXPECT_EQ(last.sq, 4);
  EXPECT_EQ(last.skv, 2);
  EXPECT_EQ(last.q_start, 1);
  EXPECT_EQ(last.kv_start, 20);
  EXPECT_EQ(last.q_offset, 0);
  EXPECT_EQ(sequences[2].queries.first, 0) << "each has a logical batch entry of its own";
  EXPECT_EQ(sequences[2].queries.batch, 2);
}

TEST(LogicalSequences, CountRowsOfACacheFromTheFirstKey) {
  const Implementation* row = row_of(Pass::forward, Sequences::cached);
  ASSERT_TRUE(row) << "no implementation of decode";
  const auto sequences = logical_sequences(case_of(*row, "kvlens: 3,0,17"));
  EXPECT_EQ(sequences[0].sizes.q_offset, -1) << "four queries, three keys";
  EXPECT_EQ(sequences[0].sizes.skv, 3);
  EXPECT_EQ(sequences[1].sizes.q_offset, -4);
  EXPECT_EQ(sequences[2].sizes.q_offset, 13);
  EXPECT_EQ(sequences[2].queries.count, 4);
}

TEST(Cumulative, BeginsWithZero) {
  EXPECT_EQ(cumulative({}), std::vector<std::int32_t>{0});
  EXPECT_EQ(cumulative({2, 0, 3}), (std::vector<std::int32_t>{0, 2, 2, 5}));
}

/// The refusal; empty if the parts fit.
std::string refusal(const Implementation& row, const std::string& parts) {
  try {
    check_parts(case_of(row, parts), row);
    return {};
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
}

TEST(CheckParts, RefusesWhatDoesNotFit) {
  const Implementation& plain = *row_of(Pass::forward, Sequences::dense);
  EXPECT_EQ(refusal(plain, "sink: on; dropout: 0.5; rowmax: on; layout: shared_kv"), "");
  for (const char* part :
       {"qlens: 1,2,3", "kvlens: 1,2,3", "page: 16", "splits: 2", "blocks: 8x8", "dlse: on"}) {
    const std::string name = std::string(part).substr(0, std::string(part).find(':'));
    const std::string message = refusal(plain, part);
    EXPECT_TRUE(message.starts_with(name + ": given for " + std::string(plain.name))) << message;
  }
}

TEST(CheckParts, AsksForWhatIsNeeded) {
  const Implementation* paged = row_of(Pass::forward, Sequences::paged);
  ASSERT_TRUE(paged);
  EXPECT_NE(refusal(*paged, "kvlens: 1,2,3").find("page: none"), std::string::npos);
  EXPECT_EQ(refusal(*paged, "kvlens: 1,2,3; page: 1; splits: 2"), "");
  EXPECT_NE(refusal(*paged, "page: 4; layout: shared_kv").find("shared_kv"), std::string::npos);
  EXPECT_NE(refusal(*paged, "page: 4; qlens: 1,1,1").find("qlens"), std::string::npos);
  const Implementation* sparse = row_of(Pass::forward, Sequences::dense, true);
  ASSERT_TRUE(sparse);
  EXPECT_NE(refusal(*sparse, "").find("blocks: none"), std::string::npos);
  EXPECT_EQ(refusal(*sparse, "blocks: 7x9"), "");
  const Implementation* backward = row_of(Pass::backward, Sequences::dense);
  ASSERT_TRUE(backward);
  EXPECT_EQ(refusal(*backward, "dlse: on"), "");
  EXPECT_NE(refusal(*backward, "rowmax: on").find("rowmax"), std::string::npos);
}

TEST(CheckParts, LengthsAreOneASequenceAndNoneTooLong) {
  const Implementation* packed = row_of(Pass::forward, Sequences::packed);
  ASSERT_TRUE(packed) << "no implementation of packed sequences";
  EXPECT_EQ(refusal(*packed, "qlens: 1,0,4; kvlens: 17,0,0"), "");
  EXPECT_NE(refusal(*packed, "qlens: 1,0").find("qlens: 2 lengths, expected one a sequence"),
            std::string::npos);
  EXPECT_NE(refusal(*packed, "qlens: 1,0,5").find("qlens: 5, expected lengths from 0 to 4"),
            std::string::npos);
  EXPECT_NE(refusal(*packed, "kvlens: 1,0,18").find("kvlens: 18"), std::string::npos);
}

}  // namespace
}  // namespace attn::fuzz
