// Problems in files: what is read, and what is refused with the tensor and its shape in the
// message.
#include "fuzz/file_problem.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "fuzz/file_fixtures.h"
#include "mods/lang/environments.h"
#include "mods/lang/tree_functor.h"

namespace attn::fuzz {
namespace {

std::string refusal(const std::vector<NewArray>& arrays, const FileDescription& d = {}) {
  try {
    read_problem(file_of(arrays), d);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "read";
}
void expect_refusal(const std::string& text, const std::vector<NewArray>& arrays,
                    const FileDescription& d = {}) {
  const std::string message = refusal(arrays, d);
  EXPECT_NE(message.find(text), std::string::npos) << message << "\nexpected: " << text;
}
std::vector<NewArray> with(std::vector<NewArray> arrays, NewArray more) {
  std::erase_if(arrays, [&](const NewArray& a) { return a.name == more.name; });
  arrays.push_back(std::move(more));
  return arrays;
}
FileDescription described(const std::string& mod, const std::string& mask) {
  FileDescription d;
  d.mod = mod, d.mask = mask;
  return d;
}

/// What the mask says of one pair.
bool attends(const FileProblem& p, int b, int h, int i, int j) {
  ExactEnv env{p.in.sequences[b].sizes};
  using I = Index<ExactEnv>;
  return TreeMask(p.mask, p.tables)(I{b, &env}, I{h, &env}, I{i, &env}, I{j, &env});
}
double modified(const FileProblem& p, double s, int b, int h, int i, int j) {
  ExactEnv env{p.in.sequences[b].sizes};
  using I = Index<ExactEnv>;
  return TreeMod(p.mod, p.tables)(s, I{b, &env}, I{h, &env}, I{i, &env}, I{j, &env});
}

TEST(FileProblem, ShapesAndNumbers) {
  for (const char* dtype : {"F32", "F16", "BF16"}) {
    const FileProblem p = read_problem(file_of(small_inputs(dtype)), {});
    EXPECT_EQ(file_name_of(p.c.dtype), std::string(dtype));
    EXPECT_EQ(p.c.b, 2);
    EXPECT_EQ(p.c.hq, 4);
    EXPECT_EQ(p.c.hkv, 2);
    EXPECT_EQ(p.c.sq, 40);
    EXPECT_EQ(p.c.skv, 70);
    EXPECT_EQ(p.c.d, 16);
    EXPECT_EQ(p.c.dv, 12);
    EXPECT_EQ(p.in.scale, 0.25);
    EXPECT_FALSE(p.is_backward());
    const double x = normal_of(hash_of(hash_of_text("v"), 3 * 70 * 12 + 5 * 12 + 7));
    EXPECT_EQ(p.in.v(1, 1, 5, 7), rounded_to(p.c.dtype, x));
    ASSERT_EQ(p.in.sequences.size(), 2u);
    EXPECT_EQ(p.in.sequences[1].keys.count, 70);
  }
}

TEST(FileProblem, EmptyTensorsAreProblems) {
  const auto empty = [](const char* name, std::vector<std::int64_t> shape) {
    return NewArray{name, "F32", std::move(shape), {}};
  };
  const FileProblem p = read_problem(file_of({random_array("q", "F32", {1, 1, 3, 8}),
                                              empty("k", {1, 1, 0, 8}), empty("v", {1, 1, 0, 8})}),
                                     described("score", "q >= kv"));
  EXPECT_EQ(p.c.skv, 0);
  EXPECT_EQ(p.c.sq, 3);
}

TEST(FileProblem, BackwardInputs) {
  std::vector<NewArray> arrays = small_inputs();
  arrays.push_back(random_array("d_o", "BF16", {2, 4, 40, 12}));
  FileProblem p = read_problem(file_of(arrays), {});
  EXPECT_TRUE(p.is_backward());
  EXPECT_FALSE(p.forward_result);
  EXPECT_EQ(p.in.d_lse(1, 3, 39), 0);
  arrays.push_back(random_array("d_lse", "F32", {2, 4, 40}));
  arrays.push_back(random_array("o", "BF16", {2, 4, 40, 12}));
  arrays.push_back(random_array("lse", "F32", {2, 4, 40}));
  arrays.push_back(new_array("sink", "F32", {4}, {1, 2, 3, 4}));
  p = read_problem(file_of(arrays), {});
  ASSERT_TRUE(p.forward_result);
  EXPECT_EQ(p.forward_result->lse(0, 0, 1),
            static_cast<float>(normal_of(hash_of(hash_of_text("lse"), 1))));
  EXPECT_NE(p.in.d_lse(1, 3, 39), 0);
  EXPECT_EQ(p.in.sink, (std::vector<float>{1, 2, 3, 4}));
}

TEST(FileProblem, TensorsThatDoNotFit) {
  const std::vector<NewArray> fine = small_inputs();
  EXPECT_EQ(refusal(fine), "read");
  expect_refusal("no tensor 'q'", {fine[1], fine[2]});
  expect_refusal("no tensor 'v'", {fine[0], fine[1]});
  expect_refusal("q is F64, expected F32, F16 or BF16",
                 with(fine, random_array("q", "F64", {2, 4, 40, 16})));
  expect_refusal("k has shape [2, 70, 16], expected [B, H, S, D]",
                 with(fine, random_array("k", "BF16", {2, 70, 16})));
  expect_refusal("x.safetensors: ", with(fine, random_array("k", "BF16", {2, 2, 70, 15})));
  expect_refusal("x.safetensors: ", with(fine, random_array("k", "F16", {2, 2, 70, 16})));
  expect_refusal("x.safetensors: ", with(fine, random_array("k", "BF16", {2, 3, 70, 16})));
  expect_refusal("sink is F32 [3], expected F32 [4]", with(fine, random_array("sink", "F32", {3})));
  const std::vector<NewArray> backward = with(fine, random_array("d_o", "BF16", {2, 4, 40, 12}));
  EXPECT_EQ(refusal(backward), "read");
  expect_refusal("d_o is BF16 [2, 4, 40, 16], expected BF16 [2, 4, 40, 12]",
                 with(fine, random_array("d_o", "BF16", {2, 4, 40, 16})));
  expect_refusal("d_lse is BF16 [2, 4, 40], expected F32 [2, 4, 40]",
                 with(backward, random_array("d_lse", "BF16", {2, 4, 40})));
}

TEST(FileProblem, TooManyPairs) {
  const auto zeros = [](const char* name, std::int64_t rows) {
    return NewArray{
        name, "BF16", {1, 1, rows, 1}, std::vector<std::byte>(static_cast<std::size_t>(2 * rows))};
  };
  expect_refusal("expected at most 16777216 pairs",
                 {zeros("q", 4097), zeros("k", 4096), zeros("v", 4096)});
}

TEST(FileProblem, ManyRowsOfNothing) {
  const auto nothing = [](const char* name, std::vector<std::int64_t> shape) {
    return NewArray{name, "BF16", std::move(shape), {}};
  };
  const std::int64_t most = 2147483647;
  expect_refusal("elements, expected at most",
                 {nothing("q", {most, 1, 0, 1}), nothing("k", {most, 1, 0, 1}),
                  nothing("v", {most, 1, 0, 1})});
  expect_refusal(
      "elements, expected at most",
      {nothing("q", {1, 1, 0, 1}), nothing("k", {1, 1, 0, 1}), nothing("v", {1, 1, 0, most})});
}

TEST(FileProblem, ExpressionsReadTensorsOfTheFile) {
  std::vector<NewArray> arrays = small_inputs();
  arrays.push_back(new_array("slope", "BF16", {4}, {0.5, 0.25, 2, 4}));
  arrays.push_back(new_array("doc", "I64", {40}, std::vector<double>(40, 7)));
  arrays.push_back(random_array("mask", "U8", {1}));
  const FileProblem p = read_problem(
      file_of(arrays), described("score + slope[h] * (kv - q)", "doc[q] == 7 && kv < 3"));
  EXPECT_EQ(modified(p, 1, 0, 2, 3, 8), 11);
  EXPECT_TRUE(attends(p, 0, 0, 39, 2));
  EXPECT_FALSE(attends(p, 0, 0, 39, 3));
  arrays.push_back(new_array("large", "I64", {1}, {0x1p40}));
  expect_refusal("large: entry 0 is 1099511627776, expected 32 bits", arrays);
  expect_refusal("none", small_inputs(), described("score + none[h]", "true"));
}

TEST(FileProblem, NamesOfTheRegistries) {
  FileDescription d = described("soft_cap", "sliding_window");
  EXPECT_EQ(refusal(small_inputs(), d), "read");
  const FileProblem p = read_problem(file_of(small_inputs()), described("score", "causal"));
  EXPECT_TRUE(attends(p, 1, 3, 5, 5));
  EXPECT_FALSE(attends(p, 1, 3, 5, 6));
  d.parameters = {"nothing=3"};
  expect_refusal("--param: 'nothing', expected a parameter of the mask or the mod", small_inputs(),
                 d);
  for (const char* text : {"width", "=3", "width=", "width=3x"}) {
    d.parameters = {text};
    expect_refusal("expected NAME=NUMBER", small_inputs(), d);
  }
  expect_refusal("did you mean 'causal'", small_inputs(), described("score", "casual"));
}

TEST(FileProblem, TablesOfANamedModComeFromTheFileOrTheCommandLine) {
  FileDescription d = described("alibi", "true");
  expect_refusal("reads a table 'slope", small_inputs(), d);
  std::vector<NewArray> arrays = small_inputs();
  const Safetensors file = file_of(arrays);
  d.tables = {"slope[Hq]=alibi"};
  const FileProblem p = read_problem(file, d);
  EXPECT_EQ(modified(p, 0, 0, 1, 9, 1), -8 * std::exp2(-4));  // the second slope of four heads
  arrays.push_back(new_array("slope", "F32", {4}, {1, 2, 3, 4}));
  d.tables.clear();
  EXPECT_EQ(modified(read_problem(file_of(arrays), d), 0, 0, 1, 9, 1), -16);
}

TEST(FileProblem, WhatAnEmittedFileSaysOfItself) {
  const auto described = [](const std::string& version, const std::string& scale) {
    return described_by(file_of(
        {}, {{"attnproof", version}, {"mod", "score * 2"}, {"mask", "q >= kv"}, {"scale", scale}}));
  };
  const FileDescription d = described("1", "0.1");
  EXPECT_EQ(d.mod, "score * 2");
  EXPECT_EQ(d.mask, "q >= kv");
  EXPECT_EQ(d.scale, 0.1);
  EXPECT_THROW(described("2", "0.1"), std::invalid_argument);
  EXPECT_THROW(described("1", "one"), std::invalid_argument);
  EXPECT_THROW(described_by(file_of({})), std::invalid_argument);
}

}  // namespace
}  // namespace attn::fuzz
