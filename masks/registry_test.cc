#include "masks/registry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>

#include "mods/lang/compile.h"
#include "mods/lang/parse.h"
#include "mods/lang/tree_functor.h"

namespace attn {
namespace {

/// The masks of public systems, each with the names under which it stands here.
const std::map<std::string, std::vector<std::string>> lines{
    {"noop / full", {"full"}},
    {"causal (top-left)", {"causal"}},
    {"causal with offset", {"causal_offset"}},
    {"causal bottom-right", {"causal_bottom_right"}},
    {"inverse causal", {"inverse_causal"}},
    {"sliding window (gym)", {"sliding_window"}},
    {"sliding window causal (axlearn)", {"sliding_window_causal"}},
    {"left-right window", {"window"}},
    {"FA window (l,r)", {"flash_window"}},
    {"cuDNN bounds (L,R)", {"cudnn_bounds"}},
    {"FI window", {"flashinfer_window"}},
    {"LocalMask", {"local_mask"}},
    {"chunked causal", {"chunked_causal"}},
    {"truncated key", {"truncated_key"}},
    {"dilated window", {"dilated_window"}},
    {"global + window", {"global_window"}},
    {"attention sink (streaming)", {"streaming"}},
    {"prefix LM", {"prefix_lm", "prefix_lm_batch"}},
    {"document", {"document"}},
    {"document and inner", {"document_wise"}},
    {"packed causal doc", {"packed_causal"}},
    {"shared prefix", {"shared_prefix"}},
    {"batchify", {"batchify"}},
    {"block diagonal", {"block_diagonal"}},
    {"block causal", {"block_causal"}},
    {"mini causal", {"mini_causal"}},
    {"ima (index-stress)", {"index_stress"}},
    {"block diffusion", {"block_diffusion"}},
    {"Flamingo cross", {"flamingo"}},
    {"NATTEN 2-D / tiled / Morton", {"natten", "natten_tiled", "natten_morton"}},
    {"STA 2-D/3-D", {"sliding_tile_2d", "sliding_tile_3d"}},
    {"SVG spatial head", {"svg_spatial"}},
    {"SVG temporal head", {"svg_temporal"}},
    {"JetSpec tree causal", {"draft_tree"}},
    {"JetSpec training", {"draft_training"}},
    {"VSA top-k tiles", {"top_tiles"}},
    {"skip odd keys", {"skip_odd_keys"}},
    {"causal/bidirectional by buffer", {"causal_by_buffer"}},
    {"padded dense", {"padded"}},
    {"first-M-rows-empty", {"first_rows"}},
    {"random sparsity p", {"random_sparsity"}},
    {"explicit array", {"dense"}},
    {"XF family (22 classes)",
     {"xf_lower_triangular",
      "xf_lower_triangular_bias",
      "xf_lower_triangular_br",
      "xf_lower_triangular_br_local",
      "xf_local_br",
      "xf_block_diagonal",
      "xf_block_diagonal_causal",
      "xf_block_diagonal_causal_br",
      "xf_block_diagonal_causal_local",
      "xf_block_diagonal_causal_local_br",
      "xf_block_diagonal_padded",
      "xf_block_diagonal_gappy",
      "xf_block_diagonal_local_padded",
      "xf_block_diagonal_causal_local_padded",
      "xf_block_diagonal_causal_offset_padded",
      "xf_block_diagonal_causal_offset_gappy",
      "xf_block_diagonal_local_br_gappy",
      "xf_paged_block_diagonal_padded",
      "xf_paged_block_diagonal_gappy",
      "xf_paged_block_diagonal_causal_offset_padded",
      "xf_paged_block_diagonal_causal_offset_gappy",
      "xf_paged_block_diagonal_causal_local_padded"}},
    {"block-sparse pattern", {"block_pattern"}},
    {"combinators",
     {"both", "either", "exactly_one", "negation", "shift", "choose_by_head", "choose_by_batch"}},
};

const Sizes shapes[] = {{2, 2, 1, 20, 20}, {2, 3, 1, 13, 24}, {1, 2, 2, 24, 13},
                        {1, 1, 1, 1, 9},   {1, 1, 1, 9, 1},   {1, 1, 1, 48, 40}};

TEST(MaskRegistry, has_every_mask_of_the_public_systems_once) {
  EXPECT_EQ(lines.size(), 45u);
  EXPECT_EQ(lines.at("XF family (22 classes)").size(), 22u);
  std::map<std::string, int> listed, registered;
  for (const auto& [line, names] : lines)
    for (const std::string& name : names) ++listed[name];
  for (const MaskEntry& entry : mask_registry()) ++registered[entry.name];
  EXPECT_EQ(registered, listed);
  for (const auto& [name, count] : registered) EXPECT_EQ(count, 1) << name;
}

TEST(MaskRegistry, says_where_each_stands_or_what_it_is_made_of) {
  for (const MaskEntry& entry : mask_registry()) {
    if (!entry.header.empty()) {
      EXPECT_TRUE(std::ifstream(entry.header).good()) << entry.name;
    }
    for (const std::string& text : {entry.code, entry.formula, entry.line, entry.expression})
      EXPECT_FALSE(text.empty()) << entry.name;
    EXPECT_EQ(entry.code.find("a["), std::string::npos) << entry.code;
  }
  EXPECT_EQ(mask_named("xf_block_diagonal_causal_local_br").code,
            "document_wise(document(q_ids, kv_ids), q_ends, kv_ends, window(width - 1, 0))");
}

/// The first pair where the mask and its expression differ, or "".
std::string difference(const NamedMask& mask) {
  const TreeMask tree(parse_mask(mask.expression(), mask.tables().declarations()), mask.tables());
  const Sizes& sizes = mask.sizes();
  for (int b = 0; b < sizes.b; ++b)
    for (int h = 0; h < sizes.hq; ++h)
      for (int i = 0; i < sizes.sq; ++i)
        for (int j = 0; j < sizes.skv; ++j)
          if (mask.attends(b, h, i, j) != attends<ExactEnv>(tree, sizes, b, h, i, j))
            return "b" + std::to_string(b) + " h" + std::to_string(h) + " q" + std::to_string(i) +
                   " kv" + std::to_string(j) + " of " + mask.expression();
  return "";
}

TEST(MaskRegistry, each_says_the_same_as_its_expression) {
  for (const MaskEntry& entry : mask_registry())
    for (const Sizes& sizes : shapes)
      EXPECT_EQ(difference(make_mask(entry, sizes)), "") << entry.name;
}

TEST(MaskRegistry, each_says_the_same_as_its_expression_at_other_parameters) {
  const Sizes sizes{1, 2, 1, 17, 19};
  int compared = 0, refused = 0;
  for (const MaskEntry& entry : mask_registry())
    for (const Parameter& p : entry.parameters)
      for (const double value : {std::max(p.least, std::floor(p.value / 2)), p.value + 1, 3.0}) {
        if (value < p.least || value > p.most) continue;
        try {
          EXPECT_EQ(difference(make_mask(entry, sizes, {{p.name, value}})), "")
              << entry.name << ' ' << p.name << '=' << value;
          ++compared;
        } catch (const std::invalid_argument&) {
          ++refused;  // an image that is too small, a kernel that does not fit
        }
      }
  EXPECT_GT(compared, 10 * refused);
}

TEST(MaskRegistry, every_expression_compiles_for_the_kernels) {
  for (const MaskEntry& entry : mask_registry()) {
    const NamedMask mask = make_mask(entry, {2, 2, 1, 20, 20});
    EXPECT_NO_THROW(
        compile_mask(parse_mask(mask.expression(), mask.tables().declarations()), mask.tables()))
        << entry.name;
  }
}

TEST(MaskRegistry, verdicts_are_sound) {
  const Sizes sizes{1, 2, 1, 18, 20};
  for (const MaskEntry& entry : mask_registry()) {
    const NamedMask mask = make_mask(entry, sizes);
    for (const int side : {3, 5, 20})
      for (int q = 0; q < sizes.sq; q += side)
        for (int k = 0; k < sizes.skv; k += side) {
          const Box box{
              {0, 0, q, k},
              {0, 1, std::min(q + side, sizes.sq) - 1, std::min(k + side, sizes.skv) - 1}};
          bool some = false, some_not = false;
          for (int h = 0; h <= 1; ++h)
            for (int i = q; i <= box.last[2]; ++i)
              for (int j = k; j <= box.last[3]; ++j)
                (mask.attends(0, h, i, j) ? some : some_not) = true;
          const Maybe said = mask.verdict(box);
          EXPECT_TRUE(said.can_be_true || !some) << entry.name << " q" << q << " kv" << k;
          EXPECT_TRUE(said.can_be_false || !some_not) << entry.name << " q" << q << " kv" << k;
        }
  }
}

TEST(MaskRegistry, examples_are_worth_a_look) {
  // Each example has attended and masked pairs at the size that the tool shows, full apart.
  for (const MaskEntry& entry : mask_registry()) {
    if (entry.name == "full") continue;
    const Sizes sizes{2, 4, 4, 64, 64};
    const NamedMask mask = make_mask(entry, sizes);
    int attended = 0;
    for (int i = 0; i < sizes.sq; ++i)
      for (int j = 0; j < sizes.skv; ++j) attended += mask.attends(0, 0, i, j);
    EXPECT_GT(attended, 0) << entry.name;
    EXPECT_LT(attended, sizes.sq * sizes.skv) << entry.name;
  }
}

TEST(MaskRegistry, takes_tables_of_the_caller) {
  Tensor<std::int32_t, 1> ids({6});
  ids.values() = {0, 1, 0, 1, 0, 1};
  Tables tables;
  tables.add("ids", ids.view());
  const NamedMask mask = make_mask(mask_named("document"), {1, 1, 1, 6, 6}, {}, tables);
  EXPECT_TRUE(mask.attends(0, 0, 0, 2));
  EXPECT_FALSE(mask.attends(0, 0, 0, 1));
  try {
    make_mask(mask_named("document"), {1, 1, 1, 6, 7}, {}, tables);
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(),
                 "document: kv_ids has shape [1, 6], expected [1 or B = 1, at least Skv = 7]");
  }
  EXPECT_THROW(make_mask(mask_named("causal"), {1, 1, 1, 6, 6}, {}, tables), std::invalid_argument);
}

TEST(MaskRegistry, refuses_what_it_does_not_have) {
  try {
    mask_named("slidingwindow");
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_EQ(std::string(error.what())
                  .rfind("no mask is called 'slidingwindow': did you mean 'sliding_window'", 0),
              0u);
  }
  EXPECT_THROW(make_mask(mask_named("window"), {1, 1, 1, 4, 4}, {{"left", -1}}),
               std::invalid_argument);
}

}  // namespace
}  // namespace attn
