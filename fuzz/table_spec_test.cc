// Tables made from text: their syntax, their extents and what stands in them.
#include "fuzz/table_spec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <set>
#include <string>
#include <utility>

#include "mods/alibi.h"

namespace attn::fuzz {
namespace {

using Extents = std::vector<std::int64_t>;

const Sizes sizes{2, 6, 3, 40, 50};

/// The entries of a table, in order, as doubles.
std::vector<double> entries(const std::string& text, const Sizes& s = sizes,
                            std::uint64_t seed = 1) {
  const TableStore store({parse_table_spec(text)}, s, seed);
  const Table& t = store.tables().all().front();
  std::int64_t count = 1;
  for (int axis = 0; axis < t.rank; ++axis) count *= t.extents[axis];
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(t.type == ValueType::real    ? static_cast<const float*>(t.data)[i]
                     : t.type == ValueType::index ? static_cast<const std::int32_t*>(t.data)[i]
                                                  : static_cast<const bool*>(t.data)[i]);
  return values;
}

TEST(TableSpec, IsReadBackAsWritten) {
  for (const char* text :
       {"slope[Hq]=uniform(0,0.5)", "t[B,Hq,Sq,Skv]=dyadic(-2,2)", "slope[1]=alibi",
        "len[B]=ints(-3,7)", "doc[Sq+Skv]=documents(40)", "m[1,1,Sq,Skv]=bits(0.25)",
        "x[2*Sq-1]=/some/file.txt", "rel[17]=uniform(-1e-30,0.1)"})
    EXPECT_EQ(to_text(parse_table_spec(text)), text);
  EXPECT_EQ(to_text(parse_table_spec("  a [ Hq , 2 * Sq ]  = ints( 1 , 2 ) ")),
            "a[Hq,2 * Sq]=ints(1,2)");
}

TEST(TableSpec, HasTheTypeOfItsSource) {
  EXPECT_EQ(parse_table_spec("t[1]=uniform(0,1)").type(), ValueType::real);
  EXPECT_EQ(parse_table_spec("t[1]=dyadic(0,1)").type(), ValueType::real);
  EXPECT_EQ(parse_table_spec("t[1]=alibi").type(), ValueType::real);
  EXPECT_EQ(parse_table_spec("t[1]=ints(0,1)").type(), ValueType::index);
  EXPECT_EQ(parse_table_spec("t[1]=documents(4)").type(), ValueType::index);
  EXPECT_EQ(parse_table_spec("t[1]=bits(0.5)").type(), ValueType::condition);
}

TEST(TableSpec, ComputesExtents) {
  const auto of = [](const std::string& dims) {
    return extents_of(parse_table_spec("t[" + dims + "]=uniform(0,1)"), sizes);
  };
  EXPECT_EQ(of("B,H,Sq,Skv"), (Extents{2, 6, 40, 50}));
  EXPECT_EQ(of("Hq,Hkv"), (Extents{6, 3}));
  EXPECT_EQ(of("2*Sq-1"), (Extents{79}));
  EXPECT_EQ(of("Sq+Skv,1,2*3*Hkv"), (Extents{90, 1, 18}));
  EXPECT_EQ(of("Skv - Sq - 10"), (Extents{0}));
  EXPECT_THROW(of("Sq - Skv"), std::invalid_argument);
}

TEST(TableSpec, NamesWhatIsWrong) {
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"slope", "NAME[DIM,...]=SOURCE"},
      {"slope[Hq]", "NAME[DIM,...]=SOURCE"},
      {"=[Hq]uniform(0,1)", "NAME[DIM,...]=SOURCE"},
      {"score[Hq]=uniform(0,1)", "'score'"},
      {"2x[Hq]=uniform(0,1)", "'2x'"},
      {"t[]=uniform(0,1)", "''"},
      {"t[Hq,]=uniform(0,1)", "''"},
      {"t[Hx]=uniform(0,1)", "'Hx'"},
      {"t[2*]=uniform(0,1)", "''"},
      {"t[1,1,1,1,1]=uniform(0,1)", "1 to 4 extents"},
      {"t[Hq]=", "a source"},
      {"t[Hq]=uniform(0)", "2 argument(s) of uniform"},
      {"t[Hq]=uniform(0,1,2)", "2 argument(s) of uniform"},
      {"t[Hq]=uniform(0,1", "')'"},
      {"t[Hq]=uniform(0,x)", "'x'"},
      {"t[Hq]=uniform(0,inf)", "'inf'"},
      {"t[Hq]=uniform(2,1)", "low <= high"},
      {"t[Hq]=ints(0.5,1)", "whole numbers"},
      {"t[Hq]=ints(0,2e9)", "whole numbers"},
      {"t[Hq]=documents(0)", "a length of at least 1"},
      {"t[Hq]=documents", "')'"},
      {"t[Hq]=bits(1.5)", "a share from 0 to 1"},
      {"t[2147483648]=alibi", "'2147483648'"},
      {"t[2147483647*2]=alibi", "below 2^31, not 4294967294"},
      {"t[Hq]=uniform(-1e39,1)", "'-1e39'"},
      {"t[Hq]=uniform(0,1e400)", "'1e400'"},
      {"t[\x1b]=alibi", "'t[\\x1b]=alibi'"},
      {"t[Hq]=/a\xff", "'t[Hq]=/a\\xff': expected one line"},
      {"t[Hq]=" + std::string(5000, 'x'), "at most 4096 bytes"},
      {"t[Hq]=/dev/zero", "cannot be read"},
  };
  for (const auto& [text, names] : bad) {
    try {
      parse_table_spec(text).type();
      ADD_FAILURE() << "accepted: " << text;
    } catch (const std::invalid_argument& error) {
      EXPECT_NE(std::string(error.what()).find(names), std::string::npos) << text << "\n"
                                                                          << error.what();
    }
  }
}

TEST(TableStore, StaysWithinTheArguments) {
  const auto uniform = entries("t[Hq,Sq]=uniform(-2,3)");
  double low = 9, high = -9;
  for (const double x : uniform) low = std::min(low, x), high = std::max(high, x);
  EXPECT_GE(low, -2);
  EXPECT_LE(high, 3);
  EXPECT_GT(high - low, 4.5);  // 240 draws of a range of 5
  for (const double x : entries("t[Hq,Sq]=dyadic(-2,2)")) {
    EXPECT_EQ(x * 4, std::floor(x * 4));
    EXPECT_TRUE(x >= -2 && x <= 2) << x;
  }
  std::set<double> ints;
  for (const double x : entries("t[Hq,Sq]=ints(-1,2)")) ints.insert(x);
  EXPECT_EQ(ints, (std::set<double>{-1, 0, 1, 2}));
  for (const double x : entries("t[Sq]=bits(0)")) EXPECT_EQ(x, 0);
  for (const double x : entries("t[Sq]=bits(1)")) EXPECT_EQ(x, 1);
  std::set<double> both;
  for (const double x : entries("t[Sq]=bits(0.5)")) both.insert(x);
  EXPECT_EQ(both.size(), 2u);
}

TEST(TableStore, DocumentsGrowAlongTheLastAxis) {
  const auto ids = entries("doc[B,Sq+Skv]=documents(7)");
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (i % 90 == 0)
      EXPECT_EQ(ids[i], 0) << i;
    else
      EXPECT_TRUE(ids[i] == ids[i - 1] || ids[i] == ids[i - 1] + 1) << i;
  }
  EXPECT_GT(ids[89], 0);
  for (std::size_t i = 1; const double id : entries("doc[8]=documents(1)")) EXPECT_EQ(id + 1, i++);
}

TEST(TableStore, AlibiHasTheSlopesOfThePaper) {
  const auto slopes = entries("slope[B,Hq]=alibi");
  const Tensor<float, 1> paper = alibi_slopes(sizes.hq);
  ASSERT_EQ(slopes.size(), 12u);
  for (int i = 0; i < 12; ++i) EXPECT_EQ(slopes[i], paper(i % 6)) << i;
}

/// Every entry is a pure function of seed, name and position, so a smaller table is a corner of a
/// larger one.
TEST(TableStore, SmallerTablesHoldTheSameLeadingEntries) {
  for (const char* source :
       {"uniform(-2,2)", "dyadic(-2,2)", "ints(0,99)", "bits(0.5)", "documents(5)"}) {
    const std::string text = std::string("t[B,Sq,Skv]=") + source;
    const auto large = entries(text), small = entries(text, {2, 1, 1, 7, 11});
    ASSERT_EQ(small.size(), 2u * 7 * 11);
    for (int b = 0; b < 2; ++b)
      for (int q = 0; q < 7; ++q)
        for (int kv = 0; kv < 11; ++kv)
          EXPECT_EQ(small[(b * 7 + q) * 11 + kv], large[(b * 40 + q) * 50 + kv]) << text;
  }
}

TEST(TableStore, DependsOnSeedAndName) {
  const auto first = entries("t[Sq]=uniform(0,1)");
  EXPECT_EQ(entries("t[Sq]=uniform(0,1)"), first);
  EXPECT_NE(entries("t[Sq]=uniform(0,1)", sizes, 2), first);
  EXPECT_NE(entries("u[Sq]=uniform(0,1)"), first);
}

TEST(TableStore, TablesThatNoMemoryHoldsAreRefused) {
  const Sizes large{1 << 20, 1 << 20, 1, 1 << 20, 1 << 20};
  EXPECT_THROW(entries("t[B,Hq,Sq,Skv]=uniform(0,1)", large), std::invalid_argument);
  EXPECT_THROW(entries("t[2000*2000000]=uniform(0,1)", large), std::invalid_argument);
  EXPECT_THROW(entries("t[Sq*Sq]=uniform(0,1)", large), std::invalid_argument);
  EXPECT_THROW(entries("t[2147483647+1]=uniform(0,1)"), std::invalid_argument);
  EXPECT_THROW(entries("t[0,2147483647,2147483647,2147483647]=alibi"), std::invalid_argument);
  // together: one of them fits
  const TableSpec half = parse_table_spec("t[268435455]=bits(0)"),
                  other = parse_table_spec("u[2]=bits(0)");
  EXPECT_THROW(TableStore({half, other}, sizes, 1), std::invalid_argument);
}

TEST(TableStore, EmptyTablesAreTables) {
  EXPECT_EQ(entries("t[Sq,Skv]=uniform(0,1)", {1, 1, 1, 0, 50}).size(), 0u);
  EXPECT_EQ(entries("t[Hq]=alibi", {1, 0, 0, 1, 1}).size(), 0u);
}

class TableFile : public testing::Test {
 protected:
  std::string write(const std::string& text) {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    path_ = testing::TempDir() + "table_spec_test_" + test->name();
    std::ofstream(path_) << text;
    return path_;
  }
  void TearDown() override { std::remove(path_.c_str()); }
  /// The message with which a table of this file is refused; empty if it is not.
  std::string refusal(const std::string& path) {
    try {
      entries("t[2,3]=" + path);
      return {};
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
  }

 private:
  std::string path_;
};

TEST_F(TableFile, HoldsNumbersRowByRow) {
  const std::string path = write("0.5 1 2\n3\t4 -1e-3\n");
  EXPECT_EQ(parse_table_spec("t[2,3]=" + path).type(), ValueType::real);
  EXPECT_EQ(entries("t[2,3]=" + path),
            (std::vector<double>{0.5, 1, 2, 3, 4, static_cast<float>(-1e-3)}));
}
TEST_F(TableFile, IsAnIndexWhereAllAreWhole) {
  const std::string path = write("0 0 1 1 2 -7");
  EXPECT_EQ(parse_table_spec("t[2,3]=" + path).type(), ValueType::index);
  EXPECT_EQ(entries("t[2,3]=" + path), (std::vector<double>{0, 0, 1, 1, 2, -7}));
}
TEST_F(TableFile, NamesWhatIsWrong) {
  EXPECT_NE(refusal(testing::TempDir() + "no_such_file").find("no_such_file"), std::string::npos);
  EXPECT_NE(refusal(write("1 2 3 4 5")).find("6 numbers in the file, not 5"), std::string::npos);
  EXPECT_NE(refusal(write("1 2 3 4 5 6 7")).find("not 7"), std::string::npos);
  EXPECT_NE(refusal(write("1 2 3 4 5 six")).find("'six'"), std::string::npos);
}

}  // namespace
}  // namespace attn::fuzz
