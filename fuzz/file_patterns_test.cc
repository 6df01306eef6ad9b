// Every known fault, committed by a program that is otherwise right, is named.
#include "fuzz/file_patterns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <string>

#include "fuzz/file_faults.h"
#include "fuzz/file_fixtures.h"

namespace attn::fuzz {
namespace {

using Arrays = std::vector<NewArray>;

/// Problems that differ in what a fault can show in.
std::vector<FileProblem> problems() {
  const auto inputs = [](std::int64_t sq, std::int64_t skv) {
    return Arrays{random_array("q", "BF16", {2, 4, sq, 8}),
                  random_array("k", "BF16", {2, 2, skv, 8}),
                  random_array("v", "BF16", {2, 2, skv, 12}),
                  random_array("mod_bias", "F32", {2, 4, sq, skv})};
  };
  const auto problem = [](Arrays arrays, const char* mod, const char* mask, bool sink) {
    FileDescription d;
    d.mod = mod, d.mask = mask;
    if (sink) arrays.push_back(new_array("sink", "F32", {4}, {1, 2, 3, 0.5}));
    if (!sink) d.scale = 0.5;
    return read_problem(file_of(arrays), d);
  };
  return {problem(inputs(20, 20), "score", "kv <= q", false),
          problem(inputs(20, 37), "score", "kv <= q + (Skv - Sq)", true),
          problem(inputs(20, 37), "score", "kv <= q", true),
          problem(inputs(37, 37), "score", "q - kv >= 0 && q - kv < 5 + b + h", false),
          problem(inputs(20, 300), "score + mod_bias[b, h, q, kv]", "true", false),
          problem(inputs(20, 37), "score + mod_bias[b, h, q, kv]", "true", true)};
}

JudgedOutputs judged(const FileProblem& p, const FileProblem& solved_instead) {
  JudgedOutputs x{forward_expectation(p, Rounds::flash, BoundKind::working), {}};
  for (const ExpectedOutput& wrong :
       forward_expectation(solved_instead, Rounds::flash, BoundKind::working).outputs) {
    x.got.push_back(wrong.reference);
    for (double& value : x.got.back().values()) value = rounded_to(wrong.dtype, value);
  }
  return x;
}
bool is_wrong(const FileProblem& p, const JudgedOutputs& x) {
  return judge(p.c, p.in, x.expected, x.got, [&] { return x.expected; }).outcome ==
         Outcome::discrepancy;
}

TEST(FilePatterns, EachFaultIsNamedWhereItShows) {
  std::set<std::string> never_seen;
  for (const Fault& fault : known_faults(pairs_of(problems()[0]))) never_seen.insert(fault.what);
  const std::set<std::string> all = never_seen;
  for (const FileProblem& p : problems()) {
    const Pairs pairs = pairs_of(p);
    for (const Fault& fault : known_faults(pairs)) {
      FileProblem wrong = p;
      if (!fault.apply(wrong)) continue;
      const JudgedOutputs x = judged(p, wrong);
      if (!is_wrong(p, x)) continue;
      never_seen.erase(fault.what);
      EXPECT_NE(looks_like(p, x, {}, Rounds::flash).find(fault.what), std::string::npos)
          << fault.what << "\nwas said to be: " << looks_like(p, x, {}, Rounds::flash);
    }
  }
  EXPECT_GT(all.size(), 25u);
  for (const std::string& what : never_seen) ADD_FAILURE() << "never wrong: " << what;
}

/// The same faults written as formulas: what programs really do.
TEST(FilePatterns, FaultsByTheirFormulas) {
  struct Example {
    const char *mask, *wrong, *what;
    std::int64_t sq, skv;
  };
  const Example examples[] = {
      {"kv <= q", "kv < q", "the last key of each row is left out", 20, 20},
      {"kv <= q", "kv < q", "the last key of each row is left out", 20, 11},
      {"kv <= q", "kv < q", "the last key of each row is left out", 11, 20},
      {"kv < q", "kv <= q", "one key too many at its end", 20, 20},
      {"0 <= q - kv && q - kv <= 5", "0 <= q - kv && q - kv < 5", "the first key of each row", 20,
       37},
      {"0 <= q - kv && q - kv < 5", "0 <= q - kv && q - kv <= 5", "one key too many at its start",
       20, 37},
      {"kv <= q + (Skv - Sq)", "kv <= q", "aligned top left (M16)", 20, 37},
      {"kv <= q + (Skv - Sq)", "kv <= q", "aligned top left (M16)", 37, 20},
      {"kv <= q", "kv <= q + (Skv - Sq)", "aligned bottom right (M16)", 20, 37},
      {"kv <= q", "q <= kv", "queries and keys of the mask are exchanged", 20, 20},
      {"kv <= q", "kv > q", "inverted (M33)", 20, 20},
      {"kv <= q", "true", "left out (M40)", 20, 20},
      {"true", "kv < 32", "tile of keys is left out (tile 32)", 20, 37},
      {"true", "kv < Sq", "the loop over keys counts queries (M21)", 20, 37},
      {"kv < 9 + b", "kv < 9", "of batch entry 0 is used for all", 20, 37},
      {"kv < 9 + h", "kv < 9", "of head 0 is used for all", 20, 37},
  };
  for (const Example& x : examples) {
    const Safetensors file = file_of({random_array("q", "BF16", {2, 4, x.sq, 8}),
                                      random_array("k", "BF16", {2, 2, x.skv, 8}),
                                      random_array("v", "BF16", {2, 2, x.skv, 12})});
    FileDescription d;
    d.mask = x.mask;
    const FileProblem p = read_problem(file, d);
    d.mask = x.wrong;
    const JudgedOutputs outputs = judged(p, read_problem(file, d));
    EXPECT_TRUE(is_wrong(p, outputs)) << x.what;
    const std::string text = looks_like(p, outputs, {}, Rounds::flash);
    EXPECT_NE(text.find(x.what), std::string::npos) << x.what << "\nwas said to be: " << text;
  }
}

TEST(FilePatterns, FaultsOfABackwardPass) {
  Arrays arrays = small_inputs();
  arrays.push_back(random_array("d_o", "BF16", {2, 4, 40, 12}));
  FileDescription d;
  d.mask = "causal";
  const FileProblem p = read_problem(file_of(arrays), d);
  FileProblem unmasked = p;
  unmasked.mask = condition_constant(true);
  const FileVerdict v = judge_outputs(p, file_of(solved(unmasked)), Rounds::flash, {});
  EXPECT_NE(v.looks_like.find("the mask is left out"), std::string::npos) << v.looks_like;

  const auto scaled = [&](const std::string& name, double factor) {
    Arrays outputs = solved(p);
    for (NewArray& array : outputs)
      if (array.name == name) {
        const Safetensors file = file_of(outputs);
        const Tensor<double, 4> x = numbers_in(file, *file.find(name), DType::bf16, {2, 4, 40, 16});
        std::vector<double> values = x.values();
        for (double& value : values) value *= factor;
        array = new_array(name, "BF16", array.shape, values);
      }
    return judge_outputs(p, file_of(outputs), Rounds::flash, {}).looks_like;
  };
  EXPECT_EQ(scaled("dq", 4), "dQ is 4 times what it should be: the scale is missing");
  EXPECT_EQ(scaled("dq", 0.25), "dQ is 0.25 times what it should be: the scale is applied twice");
  EXPECT_EQ(scaled("dq", -1), "dQ is -1 times what it should be: the sign");
  EXPECT_EQ(scaled("dq", 2), "dQ is 2 times what it should be");
  EXPECT_EQ(scaled("dq", 0), "dQ is zero everywhere");
}

/// What is said of the right outputs after `change` to one of them.
std::string said(const FileProblem& p, std::size_t output,
                 const std::function<void(Tensor<double, 4>&)>& change) {
  JudgedOutputs x = judged(p, p);
  change(x.got[output]);
  EXPECT_TRUE(is_wrong(p, x));
  return looks_like(p, x, {}, Rounds::flash);
}

TEST(FilePatterns, PlacesAndRatios) {
  const FileProblem p = read_problem(file_of(small_inputs()), {});
  const auto add_to = [](int first, int last) {
    return [=](Tensor<double, 4>& o) {
      for (int i = first; i <= last; ++i) o(1, 2, i, 3) += 1 + i;
    };
  };
  EXPECT_EQ(said(p, 0, add_to(32, 39)),
            "only the last, partial tile of queries is wrong (tile 32)");
  EXPECT_EQ(said(p, 0, add_to(16, 31)), "only block 1 of 16 queries is wrong");
  EXPECT_EQ(said(p, 0, add_to(3, 39)), "");
  EXPECT_EQ(said(p, 1,
                 [](Tensor<double, 4>& lse) {
                   for (double& x : lse.values()) x /= std::log(2.0);
                 }),
            "LSE is 1.443 times what it should be: in base 2 (M55)");

  FileDescription d;
  d.mask = "q > 3";
  EXPECT_EQ(said(read_problem(file_of(small_inputs()), d), 0,
                 [](Tensor<double, 4>& o) { o(0, 0, 1, 2) = 1; }),
            "only rows without a key are wrong: O is 0 there, LSE -inf or the sink (M05, M06)");
}

TEST(FilePatterns, LargeProblemsAreLookedAtOnly) {
  const FileProblem p = read_problem(file_of({random_array("q", "F32", {1, 1, 1024, 40}),
                                              random_array("k", "F32", {1, 1, 1024, 40}),
                                              random_array("v", "F32", {1, 1, 1024, 40})}),
                                     {});
  EXPECT_EQ(said(p, 0, [](Tensor<double, 4>& o) { o(0, 0, 1000, 0) += 1; }),
            "only block 62 of 16 queries is wrong");
}

}  // namespace
}  // namespace attn::fuzz
