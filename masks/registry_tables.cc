#include "masks/causal.h"
#include "masks/choice.h"
#include "masks/dense.h"
#include "masks/document.h"
#include "masks/document_wise.h"
#include "masks/draft_tree.h"
#include "masks/flamingo.h"
#include "masks/full.h"
#include "masks/global_window.h"
#include "masks/index_stress.h"
#include "masks/key_count.h"
#include "masks/packed_causal.h"
#include "masks/pattern_blocks.h"
#include "masks/prefix_lm.h"
#include "masks/random_sparsity.h"
#include "masks/registry_entry.h"
#include "masks/shared_prefix.h"
#include "masks/top_tiles.h"
#include "masks/window.h"

/// Masks that read tables, with an example of each table.
namespace attn::detail {
namespace {

Entries ids(Arguments& a) {
  return entries(a, "ids", longer(a), [&](auto n) { return document_at(n, longer(a)); });
}
Entries starts(Arguments& a) {
  return entries(a, "starts", longer(a),
                 [&](auto n) { return document_start(document_at(n, longer(a)), longer(a)); });
}
Entries offsets(Arguments& a) {
  return entries(a, "offsets", example_documents + 1,
                 [&](auto d) { return document_start(d, longer(a)); });
}
/// Every later document continues the first.
Entries prefix(Arguments& a) {
  return entries(a, "prefix", example_documents, [](auto) { return 0; });
}
Entries counts(Arguments& a) {
  return entries(a, "counts", a.sizes.b, [&](auto b) { return a.sizes.skv * (3 + b) / (4 + b); });
}
Entries threshold(Arguments& a) {
  return entries(a, "threshold", a.sizes.skv, [](auto n) { return n - 2 + n * n % 5; });
}
Entries image_start(Arguments& a) {
  return entries(a, "image_start", a.sizes.skv, [&](auto m) { return m * 2 * a["tokens"] + 1; });
}
Entries image_end(Arguments& a) {
  return entries(a, "image_end", a.sizes.skv, [&](auto m) { return (m + 1) * 2 * a["tokens"]; });
}
Flags is_global(Arguments& a) {
  return flags(a, "is_global", longer(a), [](auto n) { return n % 24 == 0; });
}
Flags of_head(Arguments& a) {
  return flags(a, "of_head", a.sizes.hq, [](auto h) { return h % 2 == 0; });
}
Flags of_batch(Arguments& a) {
  return flags(a, "of_batch", a.sizes.b, [](auto b) { return b % 2 == 0; });
}
Captured<2, bool> ancestor(Arguments& a) {  // token n is a child of (n - 1) / 2
  return a.table<bool, 2>("ancestor", {a.sizes.sq, std::max(1, a.sizes.skv - a["prefix"])},
                          [](const auto& at) {
                            std::int64_t n = at[0];
                            while (n > at[1]) n = (n - 1) / 2;
                            return n == at[1];
                          });
}
Captured<2, bool> pairs(Arguments& a) {
  const auto seed = static_cast<std::uint64_t>(a["seed"]);
  return a.table<bool, 2>("pairs", {a.sizes.sq, a.sizes.skv}, [&](const auto& at) {
    return RandomPairs::uniform(seed, at[0], at[1]) < static_cast<double>(a("density"));
  });
}
Captured<4, bool> array(Arguments& a) {
  return a.table<bool, 4>(
      "array", {a.sizes.b, a.sizes.hq, a.sizes.sq, a.sizes.skv},
      [](const auto& at) { return (at[2] * at[2] + at[3] * at[3] + at[1] + at[0]) % 5 < 3; });
}
Captured<2, bool> pattern(Arguments& a) {
  return a.table<bool, 2>(
      "pattern",
      {(a.sizes.sq + a["rows"] - 1) / a["rows"], (a.sizes.skv + a["columns"] - 1) / a["columns"]},
      [](const auto& at) { return at[0] == at[1] || (at[0] + at[1]) % 3 == 0; });
}
std::int64_t tiles(const Arguments& a, std::int64_t length) {
  return (length + a["tile"] - 1) / a["tile"];
}
Captured<4, std::int32_t> chosen(Arguments& a) {
  const std::int64_t keys = std::max<std::int64_t>(tiles(a, a.sizes.skv), 1);
  return a.table<std::int32_t, 4>(
      "chosen", {a.sizes.b, a.sizes.hq, tiles(a, a.sizes.sq), 2},
      [&](const auto& at) { return (at[2] + at[3] * (2 + at[0] + at[1])) % keys; });
}
Entries valid(Arguments& a) {
  return entries(a, "valid", tiles(a, a.sizes.skv),
                 [&](auto n) { return n % 3 == 2 ? a["tile"] / 2 : a["tile"]; });
}

std::vector<MaskEntry> document_masks() {
  return {
      ATTN_MASK("document", "document (PyTorch, FlashAttention 4), SegmentId (axlearn, splash)",
                "ids[q] == ids[kv]", "masks/document.h", "ids[q] == ids[kv]", takes(),
                document(ids(a))),
      ATTN_MASK("both", "and: causal in packed documents", "kv <= q and ids[q] == ids[kv]",
                "masks/algebra.h", "kv <= q && ids[q] == ids[kv]", takes(),
                causal() && document(ids(a))),
      ATTN_MASK("document_wise", "document with an inner mask (attention-gym)",
                "ids[q] == ids[kv] and inner(q - start[ids[q]], kv - start[ids[kv]])",
                "masks/document_wise.h",
                "ids[q] == ids[kv] && abs((kv - starts[kv]) - (q - starts[q])) <= $width",
                takes(whole("width", 4, 0, "keys on each side")),
                document_wise(ids(a), starts(a), window(a["width"], a["width"]))),
      ATTN_MASK("packed_causal", "packed causal documents (attention-gym)", "start[q] <= kv <= q",
                "masks/packed_causal.h", "starts[q] <= kv && kv <= q", takes(),
                packed_causal(starts(a))),
      ATTN_MASK("shared_prefix", "shared prefix (attention-gym)",
                "start[d] <= kv <= q or (p != d and start[p] <= kv < start[p + 1]); d = ids[q], "
                "p = prefix[d]",
                "masks/shared_prefix.h",
                "offsets[ids[q]] <= kv && kv <= q || prefix[ids[q]] != ids[q] && "
                "offsets[prefix[ids[q]]] <= kv && kv < offsets[prefix[ids[q]] + 1]",
                takes(), shared_prefix(ids(a), offsets(a), prefix(a))),
      ATTN_MASK("padded", "padded dense batch (PyTorch, cuDNN, FlashInfer)", "kv < count[b]",
                "masks/key_count.h", "kv < counts[b]", takes(), key_count(counts(a))),
      ATTN_MASK("prefix_lm_batch", "prefix LM, a length a batch entry (PyTorch blog)",
                "kv < p[b] or kv <= q", "masks/prefix_lm.h", "kv < counts[b] || kv <= q", takes(),
                prefix_lm(counts(a))),
      ATTN_MASK("flamingo", "vision cross attention, Flamingo (attention-gym)",
                "start[m] <= q < end[m], m = floor(kv / tokens)", "masks/flamingo.h",
                "image_start[floor_div(kv, $tokens)] <= q && q < image_end[floor_div(kv, $tokens)]",
                takes(whole("tokens", 8, 1, "keys of an image")),
                flamingo(a["tokens"], image_start(a), image_end(a))),
  };
}

std::vector<MaskEntry> other_masks() {
  return {
      ATTN_MASK("global_window", "global and window (attention-gym, FlashAttention 4)",
                "|q - kv| <= w or global[q] or global[kv]", "masks/global_window.h",
                "abs(q - kv) <= $reach || is_global[q] || is_global[kv]",
                takes(whole("reach", 6, 0, "keys on each side")),
                global_window(a["reach"], is_global(a))),
      ATTN_MASK("choose_by_head", "a mask a head", "which[h] ? kv <= q : |q - kv| <= w",
                "masks/choice.h", "of_head[h] ? kv <= q : abs(q - kv) <= $width",
                takes(whole("width", 8, 0, "keys on each side")),
                choose_by_head(of_head(a), causal(), window(a["width"], a["width"]))),
      ATTN_MASK("choose_by_batch", "a mask a batch entry", "which[b] ? |q - kv| <= w : kv <= q",
                "masks/choice.h", "of_batch[b] ? abs(q - kv) <= $width : kv <= q",
                takes(whole("width", 8, 0, "keys on each side")),
                choose_by_batch(of_batch(a), window(a["width"], a["width"]), causal())),
      ATTN_MASK("causal_by_buffer", "causal or bidirectional by a buffer (PyTorch tests)",
                "flag[b] ? kv <= q : true", "", "of_batch[b] ? kv <= q : true", takes(),
                choose_by_batch(of_batch(a), causal(), full())),
      ATTN_MASK("index_stress", "ima, index stress (FlashAttention 4)", "kv >= threshold[kv]",
                "masks/index_stress.h", "kv >= threshold[kv]", takes(), index_stress(threshold(a))),
      ATTN_MASK("draft_tree", "JetSpec tree causal (attention-gym)",
                "kv < prefix or ancestor[q, kv - prefix]", "masks/draft_tree.h",
                "kv < $prefix || ancestor[q, max(kv - $prefix, 0)]",
                takes(whole("prefix", 16, 0, "keys that all see")),
                draft_tree(a["prefix"], ancestor(a))),
      ATTN_MASK("top_tiles", "VSA top-k tiles (attention-gym)",
                "floor(kv / n) in chosen[b, h, floor(q / n)] and kv is no padding",
                "masks/top_tiles.h",
                "(chosen[b, h, floor_div(q, $tile), 0] == floor_div(kv, $tile) || "
                "chosen[b, h, floor_div(q, $tile), 1] == floor_div(kv, $tile)) && "
                "floor_mod(kv, $tile) < valid[floor_div(kv, $tile)]",
                takes(whole("tile", 8, 1, "positions of a tile")),
                top_tiles(a["tile"], chosen(a), valid(a))),
      ATTN_MASK("block_pattern", "block-sparse pattern (FlashInfer BSR, cuDNN, FlashAttention 4)",
                "pattern[floor(q / R), floor(kv / C)]", "masks/pattern_blocks.h",
                "pattern[floor_div(q, $rows), floor_div(kv, $columns)]",
                takes(whole("rows", 16, 1, "queries of a block"),
                      whole("columns", 16, 1, "keys of a block")),
                block_pattern(pattern(a), a["rows"], a["columns"])),
      ATTN_MASK("random_sparsity", "random sparsity (splash make_random_mask)",
                "u[q, kv] < density", "masks/random_sparsity.h", "pairs[q, kv]",
                takes(real("density", 0.3, 0, 1, "share of pairs that attend"),
                      whole("seed", 1, 0, "of the random numbers")),
                dense(pairs(a))),
      ATTN_MASK("dense", "explicit array (NumpyMask, BoolTensorBias, bit-packed, dense)",
                "mask[b, h, q, kv]", "masks/dense.h", "array[b, h, q, kv]", takes(),
                dense(array(a))),
  };
}

}  // namespace

std::vector<MaskEntry> table_masks() {
  std::vector<MaskEntry> all = document_masks();
  for (MaskEntry& entry : other_masks()) all.push_back(entry);
  return all;
}

}  // namespace attn::detail
