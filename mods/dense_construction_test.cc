#include "mods/dense_construction.h"

#include <gtest/gtest.h>

#include "mods/alibi.h"
#include "mods/identity.h"

namespace attn {
namespace {

const Sizes sizes{1, 1, 1, 2, 2};
const auto same = [](double s, int, int, int, int) { return s; };
const auto one = [](double, int, int, int, int) { return 1.0; };

std::string difference(const std::string& text) { return text.substr(0, text.find(" at ")); }

TEST(ModDenseConstruction, names_a_wrong_value) {
  const auto off_by_one = [](double s, int, int, int i, int) { return i == 1 ? s + 1 : s; };
  const std::string text = first_difference(identity(), sizes, off_by_one, one);
  EXPECT_NE(text.find(" at s=-24.000000 b0 h0 q1 kv0, expected -23.000000"), std::string::npos)
      << text;
}

TEST(ModDenseConstruction, names_a_wrong_derivative) {
  const auto two = [](double, int, int, int, int) { return 2.0; };
  EXPECT_EQ(difference(first_difference(identity(), sizes, same, two)), "derivative 1.000000");
  EXPECT_EQ(first_difference(identity(), sizes, same, two, 1.0), "");
}

TEST(ModDenseConstruction, a_nan_never_passes) {
  const auto nan = [](double, int, int, int, int) { return std::nan(""); };
  EXPECT_NE(first_difference(identity(), sizes, nan, one), "");
  EXPECT_EQ(difference(first_difference(identity(), sizes, same, nan, infinity)),
            "derivative 1.000000");
}

/// Right but for one number type.
template <class Wrong>
struct IdentityBut {
  template <class Score, class Index>
  Score operator()(Score s, Index, Index, Index, Index) const {
    if constexpr (std::is_same_v<Score, Wrong>)
      return s + 1;
    else
      return s;
  }
};

TEST(ModDenseConstruction, looks_at_every_number_type) {
  EXPECT_EQ(difference(first_difference(IdentityBut<double>(), sizes, same, one)),
            "value -23.000000");
  EXPECT_EQ(difference(first_difference(IdentityBut<Dual<double>>(), sizes, same, one)),
            "value of the dual -23.000000");
  EXPECT_EQ(difference(first_difference(IdentityBut<Rounded>(), sizes, same, one)),
            "rounded value -23.000000");
  EXPECT_EQ(difference(first_difference(IdentityBut<float>(), sizes, same, one)),
            "fp32 value -23.000000");
  EXPECT_EQ(difference(first_difference(IdentityBut<Range<double>>(), sizes, same, one)),
            "range without the value");
}

TEST(ModDenseConstruction, tells_which_entry_a_read_touches) {
  Tensor<float, 1> slopes({2});
  const ReadGradient got = gradient_of_read(alibi(slopes), {1, 2, 1, 4, 4}, 0, 0.0, 0, 1, 3, 1);
  EXPECT_EQ(got.derivative, -2);
  EXPECT_EQ(got.offset, 1);
  EXPECT_EQ(gradient_of_read(alibi(slopes), {1, 2, 1, 4, 4}, 1, 0.0, 0, 1, 3, 1).data, nullptr);
}

}  // namespace
}  // namespace attn
