#include "mods/catalogue.h"

#include <gtest/gtest.h>

#include <cmath>

namespace attn {
namespace {

const Sizes sizes{1, 2, 1, 4, 6};
const std::vector<Parameter> parameters{whole("width", 4, 0, "keys"), whole("w", 7, 1, "rows"),
                                        real("cap", 0.1, 0.01, 10, "score")};

/// The message of what `make` throws, or "".
template <class Make>
std::string refusal(const Make& make) {
  try {
    make();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}
std::string refusal_of(const ParameterValues& values) {
  return refusal([&] { Arguments("sliding_window", parameters, sizes, values, {}); });
}

TEST(Arguments, defaults_and_given_values) {
  const Arguments a("x", parameters, sizes, {{"w", 9}}, {});
  EXPECT_EQ(a["width"], 4);
  EXPECT_EQ(a["w"], 9);
  EXPECT_EQ(a("cap"), 0.1f);
}

TEST(Arguments, substitution_takes_whole_names_and_keeps_every_bit_of_a_number) {
  const Arguments a("x", parameters, sizes, {{"width", 12}}, {});
  EXPECT_EQ(a.substituted("kv < $width && q < $w"), "kv < 12 && q < 7");
  EXPECT_EQ(std::stod(a.substituted("$cap")), static_cast<double>(0.1f));
}

TEST(Arguments, substitution_folds_constants) {
  const Arguments a("x", parameters, sizes, {}, {});
  EXPECT_EQ(a.substituted("kv < ${$width * $w - 1} || q == ${-$w / 2}"), "kv < 27 || q == -3");
}

TEST(Arguments, refuses_a_bad_parameter_in_one_line) {
  EXPECT_EQ(
      refusal_of({{"width", -1}}),
      "parameter 'width' = -1: sliding_window expects a whole number from 0 to 16777216 (keys)");
  EXPECT_EQ(refusal_of({{"width", 1.5}}),
            "parameter 'width' = 1.5: sliding_window expects a whole number from 0 to 16777216 "
            "(keys)");
  EXPECT_EQ(refusal_of({{"cap", 0}}),
            "parameter 'cap' = 0: sliding_window expects a number from 0.01 to 10 (score)");
  EXPECT_NE(refusal_of({{"cap", std::nan("")}}), "");
  EXPECT_EQ(refusal_of({{"widht", 3}}),
            "parameter 'widht' = 3: sliding_window: did you mean 'width'?");
  EXPECT_EQ(refusal([] {
              Arguments("full", {}, sizes, {{"n", 3}}, {});
            }),
            "parameter 'n' = 3: full has no parameters");
}

TEST(Arguments, makes_a_table_once) {
  Arguments a("x", {}, sizes, {}, {});
  int filled = 0;
  const auto fill = [&](const auto& at) { return ++filled, 10 * at[0] + at[1]; };
  const auto table = a.table<std::int32_t, 2>("grid", {2, 3}, fill);
  a.table<std::int32_t, 2>("grid", {2, 3}, fill);
  EXPECT_EQ(filled, 6);
  EXPECT_EQ(table.tensor(1, 2), 12);
  EXPECT_NE(a.tables().find("grid"), nullptr);
}

TEST(Arguments, takes_a_given_table) {
  Tensor<std::int32_t, 1> own({2});
  Tables given;
  given.add("ids", own.view());
  Arguments a("document", {}, sizes, {}, given);
  EXPECT_EQ(refusal([&] { a.require_all_used(); }), "table 'ids': document reads no table");
  const auto fill = [](const auto&) { return 1; };
  EXPECT_EQ((a.table<std::int32_t, 1>("ids", {4}, fill).tensor.data), own.values().data());
  a.require_all_used();
  Arguments other("document", {}, sizes, {}, given);
  EXPECT_EQ(refusal([&] { other.table<float, 1>("ids", {4}, fill); }),
            "table 'ids': rank 1 and type index, document expects rank 1 and type real");
}

TEST(Catalogue, code_is_shown_without_its_plumbing) {
  EXPECT_EQ(display("document_wise(ids(a), window(a[\"width\"] - 1, 0)) && f(a(\"cap\"))"),
            "document_wise(ids, window(width - 1, 0)) && f(cap)");
}

TEST(Catalogue, suggests_close_names) {
  const std::vector<std::string> known{"causal", "causal_offset", "full", "document"};
  EXPECT_EQ(suggestion("cusal", known), ": did you mean 'causal'?");
  EXPECT_EQ(suggestion("caus", known), ": did you mean 'causal' or 'causal_offset'?");
  EXPECT_EQ(suggestion("zzzzzz", known), ": expected one of causal, causal_offset, full, document");
}

}  // namespace
}  // namespace attn
