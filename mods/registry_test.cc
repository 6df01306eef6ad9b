#include "mods/registry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>

#include "mods/dense_construction.h"
#include "mods/lang/compile.h"
#include "mods/lang/parse.h"
#include "mods/lang/tree_functor.h"

namespace attn {
namespace {

/// The score mods of public systems, each with the names under which it stands here; none: it is no
/// score mod, and among `excluded_mods`.
const std::map<std::string, std::vector<std::string>> lines{
    {"checkerboard", {"checkerboard"}},
    {"identity", {"identity"}},
    {"times_two / squared / scaled_squared", {"times_two", "squared", "scaled_squared"}},
    {"rel_bias", {"rel_bias", "rel_bias_abs"}},
    {"rel_causal", {"rel_causal"}},
    {"clamped rel", {"clamped_rel"}},
    {"ALiBi (gym)", {"alibi"}},
    {"ALiBi (FA2)", {"alibi_distance"}},
    {"ALiBi (FLX)", {"alibi_reversed"}},
    {"softcap", {"soft_cap"}},
    {"head offset", {"head_offset"}},
    {"head bias / batch bias", {"head_bias", "batch_bias"}},
    {"dual buffer", {"dual_buffer"}},
    {"absolute 2-D bias", {"absolute_bias_2d", "absolute_bias_batch", "absolute_bias"}},
    {"relative 1-D bias", {"relative_bias", "relative_bias_abs"}},
    {"local-window clamp bias", {"clamped_relative_bias"}},
    {"global-token bias", {"global_token_bias", "query_bias"}},
    {"multiplicative", {"multiplicative"}},
    {"weird bias", {"weird_bias"}},
    {"silu", {"silu"}},
    {"trig / trig2", {"trig", "trig2"}},
    {"stress set", {"stress_arithmetic", "stress_parity", "stress_buffers", "stress_xor"}},
    {"sandwich", {"sandwich"}},
    {"Graphormer spatial", {"graphormer_spatial"}},
    {"Graphormer edge", {"graphormer_edge"}},
    {"activation (softmax-free)", {"activation_sigmoid", "activation_relu"}},
    {"MLA rope", {"mla_rope"}},
    {"tanh / sigmoid attention", {}},
    {"attention sink", {}},
    {"temperature / captured scale", {"temperature"}},
};

const Sizes shapes[] = {{2, 2, 1, 9, 9}, {2, 3, 1, 5, 12}, {1, 2, 2, 12, 5}, {1, 1, 1, 1, 9}};

TEST(ModRegistry, has_every_mod_of_the_public_systems_once) {
  EXPECT_EQ(lines.size(), 30u);
  std::map<std::string, int> listed, registered;
  for (const auto& [line, names] : lines)
    for (const std::string& name : names) ++listed[name];
  for (const ModEntry& entry : mod_registry()) ++registered[entry.name];
  EXPECT_EQ(registered, listed);
  for (const auto& [name, count] : registered) EXPECT_EQ(count, 1) << name;
  for (const auto& [line, names] : lines) {
    if (!names.empty()) continue;
    const std::string topic = line.substr(0, line.find(' '));
    EXPECT_EQ(
        std::count_if(excluded_mods().begin(), excluded_mods().end(),
                      [&](const Excluded& e) { return std::string(e.name).rfind(topic, 0) == 0; }),
        1)
        << line;
  }
}

TEST(ModRegistry, says_where_each_stands_or_what_it_is_made_of) {
  for (const ModEntry& entry : mod_registry()) {
    if (!entry.header.empty()) {
      EXPECT_TRUE(std::ifstream(entry.header).good()) << entry.name;
    }
    for (const std::string& text : {entry.code, entry.formula, entry.line, entry.expression})
      EXPECT_FALSE(text.empty()) << entry.name;
  }
  EXPECT_EQ(mod_named("dual_buffer").code, "then(absolute_bias(head), absolute_bias(query))");
}

/// The first pair and score where the mod and its expression differ, or "".
std::string difference(const NamedMod& mod) {
  const TreeMod tree(parse_mod(mod.expression(), mod.tables().declarations()), mod.tables());
  ExactEnv env{mod.sizes()};
  for (const double s : {-3.5, -0.25, 0.0, 1.0, 6.0})
    for (int b = 0; b < env.sizes.b; ++b)
      for (int h = 0; h < env.sizes.hq; ++h)
        for (int i = 0; i < env.sizes.sq; ++i)
          for (int j = 0; j < env.sizes.skv; ++j) {
            const double got = mod.score(s, b, h, i, j), said = modified(tree, env, s, b, h, i, j);
            if (!(got == said))
              return std::to_string(got) + " and " + std::to_string(said) + " at s" +
                     std::to_string(s) + " b" + std::to_string(b) + " h" + std::to_string(h) +
                     " q" + std::to_string(i) + " kv" + std::to_string(j) + " of " +
                     mod.expression();
          }
  return "";
}

TEST(ModRegistry, each_says_the_same_as_its_expression) {
  for (const ModEntry& entry : mod_registry())
    for (const Sizes& sizes : shapes) {
      EXPECT_EQ(difference(make_mod(entry, sizes)), "") << entry.name;
      for (const Parameter& p : entry.parameters)
        EXPECT_EQ(difference(make_mod(entry, sizes, {{p.name, p.value + 1}})), "") << entry.name;
    }
}

TEST(ModRegistry, every_expression_compiles_for_the_kernels) {
  for (const ModEntry& entry : mod_registry()) {
    const NamedMod mod = make_mod(entry, {2, 2, 1, 9, 9});
    EXPECT_NO_THROW(
        compile_mod(parse_mod(mod.expression(), mod.tables().declarations()), mod.tables()))
        << entry.name;
  }
}

TEST(ModRegistry, ranges_hold_every_score) {
  const Sizes sizes{2, 2, 1, 7, 8};
  for (const ModEntry& entry : mod_registry()) {
    const NamedMod mod = make_mod(entry, sizes);
    const Range<double> range = mod.range({-2.0, 2.0});
    for (const double s : {-2.0, -0.5, 0.0, 2.0})
      for (int b = 0; b < 2; ++b)
        for (int h = 0; h < 2; ++h)
          for (int i = 0; i < sizes.sq; ++i)
            for (int j = 0; j < sizes.skv; ++j) {
              const double t = mod.score(s, b, h, i, j);
              EXPECT_LE(range.low, t) << entry.name;
              EXPECT_GE(range.high, t) << entry.name;
            }
  }
}

TEST(ModRegistry, refuses_what_it_does_not_have) {
  try {
    mod_named("alibbi");
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "no score mod is called 'alibbi': did you mean 'alibi'?");
  }
  EXPECT_THROW(make_mod(mod_named("soft_cap"), {1, 1, 1, 4, 4}, {{"cap", -1}}),
               std::invalid_argument);
  EXPECT_THROW(make_mod(mod_named("clamped_rel"), {1, 1, 1, 4, 4}, {{"low", 9}}),
               std::invalid_argument);
}

}  // namespace
}  // namespace attn
