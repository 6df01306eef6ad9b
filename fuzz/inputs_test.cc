// The inputs of a case: a pure function of seed, tensor and position, exact in the storage type,
// and each fill in the region that it is named after.
#include "fuzz/inputs.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "fuzz/campaign.h"
#include "fuzz/inputs_fixture.h"

namespace attn::fuzz {
namespace {

std::vector<double> values_of(Tensor<double, 4> PassInputs::*tensor, const Case& c) {
  return (Made(c).in.*tensor).values();
}

/// The elements so that a NaN equals itself.
std::vector<std::uint64_t> bits_of(const Tensor<double, 4>& x) {
  std::vector<std::uint64_t> bits;
  for (const double value : x.values()) bits.push_back(std::bit_cast<std::uint64_t>(value));
  return bits;
}

template <class F>
void for_each_pair(const PassInputs& in, F f) {
  for (int b = 0; b < in.sizes.b; ++b)
    for (int h = 0; h < in.sizes.hq; ++h)
      for (int i = 0; i < in.sizes.sq; ++i)
        for (int j = 0; j < in.sizes.skv; ++j) f(raw_product(in, b, h, i, j), i, j);
}
Case with_fill(Fill fill, int i) {
  Case c = small_case(fill, i);
  c.dtype = i % 2 ? DType::f16 : DType::bf16;
  return c;
}

TEST(Inputs, AreRepresentableAndFinite) {
  for (int i = 0; i < 1500; ++i) {
    const Case c = drawn_case({}, 21, i).value();
    const Made made(c);
    ASSERT_EQ(made.in.scale, c.scale.value_or(1 / std::sqrt(static_cast<double>(c.d))));
    for (const Tensor<double, 4>* x : {&made.in.q, &made.in.k, &made.in.v, &made.in.d_o})
      for (const double value : x->values())
        ASSERT_TRUE((std::isfinite(value) && rounded_to(c.dtype, value) == value) ||
                    (c.fill == Fill::nan_keys && x == &made.in.k && std::isnan(value)))
            << value << " in " << to_text(c);
    for (const double value : made.in.d_lse.values())
      ASSERT_EQ(value, rounded_to(DType::f32, value));
    ASSERT_EQ(made.in.sink.size(), c.sink ? static_cast<std::size_t>(c.hq) : 0u);
    ASSERT_EQ(made.in.dropout.p, c.dropout);
    ASSERT_EQ(made.in.sequences.size(), static_cast<std::size_t>(c.b));
  }
}

TEST(Inputs, AreTheSameEveryTime) {
  for (int f = 0; f < fill_count; ++f) {
    const Case c = small_case(static_cast<Fill>(f));
    const Made a(c), again(c);
    EXPECT_EQ(bits_of(a.in.q), bits_of(again.in.q));
    EXPECT_EQ(bits_of(a.in.k), bits_of(again.in.k));
    EXPECT_EQ(bits_of(a.in.v), bits_of(again.in.v));
    Case other = c;
    ++other.seed;
    EXPECT_NE(Made(other).in.v.values(), a.in.v.values()) << name_of(c.fill);
  }
}

/// Shrinking a length keeps the elements that remain, so that what fails goes on failing. The exact
/// fills look for an attended key, and a few others lay out their numbers by D or Dv.
TEST(Inputs, SmallerCasesKeepTheElementsThatRemain) {
  for (int f = 0; f < static_cast<int>(Fill::exact_code); ++f) {
    const Case large = small_case(static_cast<Fill>(f));
    Case small = large;
    small.b = 1, small.hq = 2, small.hkv = 1, small.sq = 5, small.skv = 13;
    const bool by_head_size =
        large.fill == Fill::very_negative || large.fill == Fill::very_positive ||
        large.fill == Fill::large_products || large.fill == Fill::outlier ||
        large.fill == Fill::marker_v || large.fill == Fill::nan_keys || large.fill == Fill::capped;
    if (!by_head_size) small.d = 11, small.dv = 3;
    const Made all(large), part(small);
    const auto expect_part = [&](const Tensor<double, 4>& x, const Tensor<double, 4>& of) {
      const auto e = x.extents();
      for (int b = 0; b < e[0]; ++b)
        for (int h = 0; h < e[1]; ++h)
          for (int s = 0; s < e[2]; ++s)
            for (int d = 0; d < e[3]; ++d)
              ASSERT_EQ(std::bit_cast<std::uint64_t>(x(b, h, s, d)),
                        std::bit_cast<std::uint64_t>(of(b, h, s, d)))
                  << name_of(large.fill);
    };
    expect_part(part.in.q, all.in.q);
    expect_part(part.in.k, all.in.k);
    expect_part(part.in.v, all.in.v);
  }
}

TEST(Inputs, OneKeyAndValueForTheWholeBatchWhereTheLayoutSharesThem) {
  for (int f = 0; f < fill_count; ++f) {
    Case c = small_case(static_cast<Fill>(f));
    c.layout = Layout::shared_kv;
    const Made made(c);
    for (int h = 0; h < c.hkv; ++h)
      for (int j = 0; j < c.skv; ++j) {
        for (int d = 0; d < c.d; ++d)
          ASSERT_EQ(std::bit_cast<std::uint64_t>(made.in.k(0, h, j, d)),
                    std::bit_cast<std::uint64_t>(made.in.k(1, h, j, d)))
              << name_of(c.fill);
        for (int d = 0; d < c.dv; ++d)
          ASSERT_EQ(made.in.v(0, h, j, d), made.in.v(1, h, j, d)) << name_of(c.fill);
      }
  }
}

TEST(Fills, FarScoresAreFar) {
  for (int i = 0; i < 12; ++i) {
    for (const double scale : {0.125, 0.25, -0.125}) {
      Case c = with_fill(Fill::very_negative, i);
      c.scale = scale;
      for_each_pair(Made(c).in,
                    [&](double product, int, int) { ASSERT_LT(scale * product, -1e4); });
      c.fill = Fill::very_positive;
      for_each_pair(Made(c).in, [&](double product, int, int) { ASSERT_GT(scale * product, 1e4); });
    }
  }
}

TEST(Fills, LargeProductsLeaveFp16BeforeTheScaleOnly) {
  for (int i = 0; i < 8; ++i) {
    const Case c = with_fill(Fill::large_products, i);
    for_each_pair(Made(c).in, [&](double product, int, int) {
      ASSERT_GT(std::abs(product), 65504);
      ASSERT_LT(std::abs(*c.scale * product), 65504);
    });
  }
}

TEST(Fills, LargeScoresMakeRowsNearlyOneHot) {
  // scores of variance 64 * 24 / 64 or more: half of the rows put two thirds of their weight on one
  const Case c = small_case(Fill::large);
  const Made made(c);
  const ForwardBounds bounds = made.bounds(c);
  int one_hot = 0;
  for (int i = 0; i < c.sq; ++i) {
    double most = 0;
    for (int j = 0; j < c.skv; ++j)
      most = std::max(most,
                      std::exp(*c.scale * raw_product(made.in, 0, 0, i, j) - bounds.lse(0, 0, i)));
    one_hot += most > 2.0 / 3;
  }
  EXPECT_GE(one_hot, c.sq / 2);
}

TEST(Fills, TiesAreNearTies) {
  for (int i = 0; i < 20; ++i) {
    const Case c = with_fill(Fill::ties, i);
    double least = 1e9, most = -1e9;
    for_each_pair(Made(c).in, [&](double product, int row, int) {
      if (row != 0) return;
      least = std::min(least, *c.scale * product), most = std::max(most, *c.scale * product);
    });
    EXPECT_LT(most - least, 4 * std::sqrt(24.0) * 0.125 * 3.5) << "no wider than Gaussian rows";
  }
}

TEST(Fills, CancellingPairsHaveOppositeValues) {
  const Made made(small_case(Fill::cancelling));
  for (int j = 0; j + 1 < 21; j += 2)
    for (int d = 0; d < 10; ++d) {
      EXPECT_EQ(made.in.k(0, 0, j, d), made.in.k(0, 0, j + 1, d));
      EXPECT_EQ(made.in.v(0, 0, j, d), -made.in.v(0, 0, j + 1, d));
    }
}

TEST(Fills, RisingScoresRise) {
  for (const double scale : {0.25, -0.5, 1e-3, 0.0}) {
    Case c = small_case(Fill::rising);
    c.scale = scale;
    c.skv = 320;  // the longest that is drawn
    c.dtype = DType::f16;
    const Made made(c);
    for (int j = 1; j < c.skv; ++j) {
      const double k = made.in.k(0, 0, j, 0), before = made.in.k(0, 0, j - 1, 0);
      ASSERT_TRUE(std::isfinite(k)) << to_text(c);
      EXPECT_TRUE(scale < 0 ? k <= before : k >= before) << j;
    }
  }
}

TEST(Fills, DenormalsAreSubnormalOrNear) {
  Case c = small_case(Fill::denormal);
  for (const double v : values_of(&PassInputs::v, c)) EXPECT_LT(std::abs(v), 0x1p-121);
  c.dtype = DType::f16;
  for (const double v : values_of(&PassInputs::v, c)) EXPECT_LT(std::abs(v), 0x1p-14);
}

TEST(Fills, TheRestIsAsNamed) {
  int outliers = 0, nans = 0;
  for (const double q : values_of(&PassInputs::q, small_case(Fill::outlier)))
    outliers += std::abs(q) > 4;
  EXPECT_GT(outliers, 0);
  for (const double k : values_of(&PassInputs::k, small_case(Fill::nan_keys)))
    nans += std::isnan(k);
  EXPECT_GT(nans, 0);
  EXPECT_LT(nans, 2 * 2 * 21 / 2) << "at most one channel of less than half of the keys";
  for (const double v : values_of(&PassInputs::v, small_case(Fill::small_ints))) {
    EXPECT_EQ(v, std::round(v));
    EXPECT_LE(std::abs(v), 2);
  }
  for (const double v : values_of(&PassInputs::v, small_case(Fill::marker_v))) EXPECT_GE(v, 0);
}

/// A mod that masks by itself leaves nothing to cancel: the fill proposes another key, or none.
TEST(ExactFills, AreFiniteWhereTheModIsNot) {
  for (const char* mod : {"kv <= q ? score : -inf", "score + 1e30", "-inf", "score - 60000"}) {
    Case c = small_case(Fill::exact_code);
    c.dtype = DType::f16;
    c.mod = parse_case(to_text(Case()) + "; mod: " + mod).mod;
    for (const double scale : {0.125, 0.0}) {
      c.scale = scale;
      for (const double q : values_of(&PassInputs::q, c)) ASSERT_TRUE(std::isfinite(q)) << mod;
    }
  }
}

/// What the exact fills are for: rows of which the oracle proves the answer to the last bit.
TEST(ExactFills, AreProved) {
  const auto rows = [](Fill fill, const std::string& mask, const std::string& mod = "score") {
    Case c = small_case(fill);
    c.mask = parse_case(to_text(c) + "; mask: " + mask).mask;
    c.mod = parse_case(to_text(c) + "; mod: " + mod).mod;
    return Made(c).bounds(c).rows;
  };
  constexpr int all = 2 * 4 * 9;
  for (const Fill fill : {Fill::exact_code, Fill::exact_rank}) {
    EXPECT_EQ(rows(fill, "true").one_hot, all) << name_of(fill);
    EXPECT_EQ(rows(fill, "kv <= q").one_hot, all) << name_of(fill);
    const auto some = rows(fill, "kv <= q && q != 4");
    EXPECT_EQ(some.one_hot, all - 8) << name_of(fill);
    EXPECT_EQ(some.empty, 8) << name_of(fill);
  }
  EXPECT_EQ(rows(Fill::exact_code, "kv <= q", "score + 0.5 * (kv - q)").one_hot, all);
  EXPECT_EQ(rows(Fill::exact_count, "kv <= q").counted, all - 8) << "all but the first row";
  EXPECT_EQ(rows(Fill::exact_count, "kv <= q").one_hot, 8);
  const auto powers = rows(Fill::exact_powers, "true");
  EXPECT_GT(powers.powers, all / 2);  // those whose best key scores 0
}

TEST(ExactFills, RankPutsMaskedKeysAboveTheWinner) {
  Case c = small_case(Fill::exact_rank);
  double most = 0;
  for_each_pair(Made(c).in,
                [&](double product, int, int) { most = std::max(most, *c.scale * product); });
  EXPECT_EQ(most, 0);
  c = parse_case(to_text(c) + "; mask: kv == q");
  for_each_pair(Made(c).in,
                [&](double product, int, int) { most = std::max(most, *c.scale * product); });
  EXPECT_GE(most, 128);
}

/// Two keys share a code, so that every row of even lengths has two winners, which differ in K.
TEST(ExactFills, PairsTie) {
  const Case c = [] {
    Case of = small_case(Fill::exact_pairs);
    of.skv = 20;
    return of;
  }();
  const Made made(c);
  for (int b = 0; b < c.b; ++b)
    for (int h = 0; h < c.hq; ++h)
      for (int i = 0; i < c.sq; ++i) {
        std::vector<int> winners;
        for (int j = 0; j < c.skv; ++j) {
          const double product = raw_product(made.in, b, h, i, j);
          EXPECT_LE(product, 0);
          if (product == 0) winners.push_back(j);
        }
        ASSERT_EQ(winners.size(), 2u);
        EXPECT_EQ(winners[0] + 1, winners[1]);
        EXPECT_EQ(winners[0] % 2, 0);
        bool differ = false;
        for (int d = 18; d < c.d; ++d)
          differ |= made.in.k(b, h / 2, winners[0], d) != made.in.k(b, h / 2, winners[1], d);
        EXPECT_TRUE(differ);
      }
}

TEST(RoundedTo, IsTheNearestNumberOfTheType) {
  EXPECT_EQ(rounded_to(DType::bf16, 1 + 0x1p-9), 1);
  EXPECT_EQ(rounded_to(DType::bf16, 1 + 0x1.8p-8), 1 + 0x1p-7);
  EXPECT_EQ(rounded_to(DType::f16, 1 + 0x1p-12), 1);
  EXPECT_EQ(rounded_to(DType::f32, 1 + 0x1p-25), 1);
}

}  // namespace
}  // namespace attn::fuzz
