// The inputs of a case beside Q, K and V: gradients, sinks, dropout, and sequences of other kinds.
#include "fuzz/pass_inputs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "fuzz/fill_context.h"
#include "fuzz/inputs_fixture.h"

namespace attn::fuzz {
namespace {

TEST(PassInputs, AForwardPassHasNoGradients) {
  const Made made(small_case(Fill::gaussian));
  EXPECT_TRUE(made.in.d_o.values().empty());
  EXPECT_TRUE(made.in.d_lse.values().empty());
}

TEST(PassInputs, GradientsFollowTheRegime) {
  const std::string row = name_of_row(Pass::backward, Sequences::dense);
  ASSERT_FALSE(row.empty()) << "no backward implementation";
  for (int f = 0; f < fill_count; ++f) {
    Case c = small_case(static_cast<Fill>(f));
    c.implementation = row;
    const Made made(c);
    ASSERT_EQ(made.in.d_o.extents(), (std::array<std::int64_t, 4>{2, 4, 9, 10}));
    double size = 0;
    for (const double x : made.in.d_o.values()) {
      size = std::max(size, std::abs(x));
      ASSERT_TRUE(std::isfinite(x)) << name_of(c.fill);
      ASSERT_TRUE(!is_exact(c.fill) || x == std::round(x)) << name_of(c.fill);
    }
    EXPECT_GT(size, 0) << name_of(c.fill);
    for (const double x : made.in.d_lse.values()) EXPECT_EQ(x, 0) << "none was asked for";
    for (int d = 0; d < 10 && c.fill == Fill::cancelling; ++d)
      EXPECT_EQ(made.in.d_o(1, 2, 4, d), -made.in.d_o(1, 2, 5, d));
    c.d_lse = true;
    const Made with_lse(c);
    double lse = 0;
    for (const double x : with_lse.in.d_lse.values()) lse += std::abs(x);
    EXPECT_GT(lse, 0);
    EXPECT_EQ(with_lse.in.d_o.values(), made.in.d_o.values());
  }
}

TEST(PassInputs, SinksAreOfEveryKind) {
  bool none = false, below = false, above = false, near = false;
  for (int seed = 0; seed < 20; ++seed) {
    Case c = small_case(Fill::gaussian, static_cast<std::uint64_t>(seed));
    EXPECT_TRUE(Made(c).in.sink.empty());
    c.sink = true;
    const Made made(c);
    for (const float logit : made.in.sink) {
      none |= logit == -INFINITY, below |= logit == -200, above |= logit == 200;
      near |= std::abs(logit) < 8;
      EXPECT_FALSE(std::isnan(logit));
    }
  }
  EXPECT_TRUE(none && below && above && near);
}

TEST(PassInputs, TheSeedOfDropoutIsThatOfTheCase) {
  Case c = small_case(Fill::gaussian);
  c.dropout = 0.5;
  const Made made(c);
  EXPECT_EQ(made.in.dropout.p, 0.5);
  ++c.seed;
  EXPECT_NE(Made(c).in.dropout.seed, made.in.dropout.seed);
}

/// A row of a cache looks for the keys that its mask lets it attend, at its own index.
TEST(PassInputs, ExactFillsSeekTheirKeysWithinTheSequence) {
  for (const Sequences how : {Sequences::packed, Sequences::cached, Sequences::paged}) {
    const std::string row = name_of_row(Pass::forward, how);
    if (row.empty()) continue;
    for (const Fill fill : {Fill::exact_code, Fill::exact_rank, Fill::exact_pairs}) {
      Case c = parse_case(
          "v1 B3 Hq4 Hkv2 Sq4 Skv30 D24 Dv10 bf16; scale: 0.125; mask: kv <= q; "
          "kvlens: 30,0,11; impl: " +
          row);
      if (how == Sequences::packed) c.query_lengths = {4, 2, 3};
      c.fill = fill;
      const Made made(c);
      for (const Sequence& s : made.in.sequences)
        for (int h = 0; h < c.hq; ++h)
          for (int i = 0; i < s.queries.count; ++i) {
            int winners = 0;
            for (int j = 0; j < s.keys.count && j <= s.sizes.q_offset + i; ++j)
              winners += raw_product(made.in, s.b, h, i, j) == 0;
            const bool attends_a_key = s.keys.count > 0 && s.sizes.q_offset + i >= 0;
            EXPECT_EQ(winners >= 1, attends_a_key) << name_of(fill) << " " << row;
          }
    }
  }
}

}  // namespace
}  // namespace attn::fuzz
