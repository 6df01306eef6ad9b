#include "masks/causal.h"
#include "masks/document.h"
#include "masks/document_wise.h"
#include "masks/registry_entry.h"
#include "masks/window.h"

/// The 22 attention-bias classes of xFormers. Blocks are documents; a class that aligns at the
/// bottom right counts positions from the end of each document. The paged ones differ in where the
/// keys lie in memory, which is no matter of the mask: kv counts a sequence's keys in order,
/// whatever their pages.
namespace attn::detail {
namespace {

/// Where a document's padding begins: a quarter of its slots, one at least, hold no key.
std::int64_t padding_start(std::int64_t document, std::int64_t length) {
  const std::int64_t start = document_start(document, length);
  const std::int64_t slots = document_start(document + 1, length) - start;
  return start + slots - (slots + 3) / 4;
}

Entries q_ids(Arguments& a) {
  return entries(a, "q_ids", a.sizes.sq, [&](auto n) { return document_at(n, a.sizes.sq); });
}
Entries kv_ids(Arguments& a) {
  return entries(a, "kv_ids", a.sizes.skv, [&](auto n) { return document_at(n, a.sizes.skv); });
}
Entries q_starts(Arguments& a) {
  return entries(a, "q_starts", a.sizes.sq,
                 [&](auto n) { return document_start(document_at(n, a.sizes.sq), a.sizes.sq); });
}
Entries kv_starts(Arguments& a) {
  return entries(a, "kv_starts", a.sizes.skv,
                 [&](auto n) { return document_start(document_at(n, a.sizes.skv), a.sizes.skv); });
}
Entries q_ends(Arguments& a) {
  return entries(a, "q_ends", a.sizes.sq, [&](auto n) {
    return document_start(document_at(n, a.sizes.sq) + 1, a.sizes.sq);
  });
}
Entries kv_ends(Arguments& a) {
  return entries(a, "kv_ends", a.sizes.skv, [&](auto n) {
    return document_start(document_at(n, a.sizes.skv) + 1, a.sizes.skv);
  });
}
/// Keys with padding behind each document, under the id -1.
Entries padded_ids(Arguments& a) {
  return entries(a, "padded_ids", a.sizes.skv, [&](auto n) {
    const std::int64_t document = document_at(n, a.sizes.skv);
    return n < padding_start(document, a.sizes.skv) ? document : -1;
  });
}
Entries padded_ends(Arguments& a) {
  return entries(a, "padded_ends", a.sizes.skv,
                 [&](auto n) { return padding_start(document_at(n, a.sizes.skv), a.sizes.skv); });
}
/// Keys with gaps before and behind each document, under the id -1.
Entries gappy_ids(Arguments& a) {
  return entries(a, "gappy_ids", a.sizes.skv, [&](auto n) {
    const std::int64_t document = document_at(n, a.sizes.skv);
    const bool first = n == document_start(document, a.sizes.skv);
    return !first && n < padding_start(document, a.sizes.skv) ? document : -1;
  });
}

const char* const in_block = "q and kv in one block";
Parameter width() { return whole("width", 6, 1, "keys a query sees, its own included"); }

std::vector<MaskEntry> single() {
  return {
      ATTN_MASK("xf_lower_triangular", "XF LowerTriangularMask", "kv <= q", "", "kv <= q", takes(),
                causal()),
      ATTN_MASK("xf_lower_triangular_bias",
                "XF LowerTriangularMaskWithTensorBias; the bias is the mod absolute_bias",
                "kv <= q", "", "kv <= q", takes(), causal()),
      ATTN_MASK("xf_lower_triangular_br", "XF LowerTriangularFromBottomRightMask",
                "kv <= q + Skv - Sq", "", "kv <= q + (Skv - Sq)", takes(), causal(bottom_right)),
      ATTN_MASK("xf_lower_triangular_br_local",
                "XF LowerTriangularFromBottomRightLocalAttentionMask",
                "q + Skv - Sq - w < kv <= q + Skv - Sq", "",
                "q + (Skv - Sq) - $width < kv && kv <= q + (Skv - Sq)", takes(width()),
                window(a["width"] - 1, 0, bottom_right)),
      ATTN_MASK("xf_local_br", "XF LocalAttentionFromBottomRightMask",
                "q + Skv - Sq - l <= kv <= q + Skv - Sq + r", "",
                "q + (Skv - Sq) - $left <= kv && kv <= q + (Skv - Sq) + $right",
                takes(whole("left", 6, 0, "keys before"), whole("right", 3, 0, "keys after")),
                window(a["left"], a["right"], bottom_right)),
  };
}

/// The text of a document-wise mask: same id, and the inner mask on the distance of the two places.
std::string inside(const std::string& kv_table, const std::string& kv_origin,
                   const std::string& q_origin, const std::string& low, const std::string& high) {
  const std::string distance = "(kv - " + kv_origin + "[kv] - (q - " + q_origin + "[q]))";
  std::string text = "q_ids[q] == " + kv_table + "[kv]";
  if (!low.empty()) text += " && " + low + " <= " + distance;
  if (!high.empty()) text += " && " + distance + " <= " + high;
  return text;
}
std::vector<MaskEntry> block_diagonal() {
  return {
      ATTN_MASK("xf_block_diagonal", "XF BlockDiagonalMask", in_block, "", "q_ids[q] == kv_ids[kv]",
                takes(), document(q_ids(a), kv_ids(a))),
      ATTN_MASK("xf_block_diagonal_causal", "XF BlockDiagonalCausalMask",
                "in one block, causal from its start", "",
                inside("kv_ids", "kv_starts", "q_starts", "", "0"), takes(),
                document_wise(document(q_ids(a), kv_ids(a)), q_starts(a), kv_starts(a), causal())),
      ATTN_MASK("xf_block_diagonal_causal_br", "XF BlockDiagonalCausalFromBottomRightMask",
                "in one block, causal from its end", "",
                inside("kv_ids", "kv_ends", "q_ends", "", "0"), takes(),
                document_wise(document(q_ids(a), kv_ids(a)), q_ends(a), kv_ends(a), causal())),
      ATTN_MASK("xf_block_diagonal_causal_local", "XF BlockDiagonalCausalLocalAttentionMask",
                "in one block, a causal window from its start", "",
                inside("kv_ids", "kv_starts", "q_starts", "1 - $width", "0"), takes(width()),
                document_wise(document(q_ids(a), kv_ids(a)), q_starts(a), kv_starts(a),
                              window(a["width"] - 1, 0))),
      ATTN_MASK("xf_block_diagonal_causal_local_br",
                "XF BlockDiagonalCausalLocalAttentionFromBottomRightMask",
                "in one block, a causal window from its end", "",
                inside("kv_ids", "kv_ends", "q_ends", "1 - $width", "0"), takes(width()),
                document_wise(document(q_ids(a), kv_ids(a)), q_ends(a), kv_ends(a),
                              window(a["width"] - 1, 0))),
  };
}

/// Padded and gappy keys; `p` is "" or "paged_", the layout.
std::vector<MaskEntry> with_padding(const std::string& p, const std::string& c) {
  return {
      ATTN_MASK("xf_" + p + "block_diagonal_padded", "XF " + c + "BlockDiagonalPaddedKeysMask",
                in_block, "", "q_ids[q] == padded_ids[kv]", takes(),
                document(q_ids(a), padded_ids(a))),
      ATTN_MASK("xf_" + p + "block_diagonal_gappy", "XF " + c + "BlockDiagonalGappyKeysMask",
                in_block, "", "q_ids[q] == gappy_ids[kv]", takes(),
                document(q_ids(a), gappy_ids(a))),
      ATTN_MASK(
          "xf_" + p + "block_diagonal_causal_offset_padded",
          "XF " + c + "BlockDiagonalCausalWithOffsetPaddedKeysMask",
          "in one block, causal from its end", "",
          inside("padded_ids", "padded_ends", "q_ends", "", "0"), takes(),
          document_wise(document(q_ids(a), padded_ids(a)), q_ends(a), padded_ends(a), causal())),
      ATTN_MASK(
          "xf_" + p + "block_diagonal_causal_offset_gappy",
          "XF " + c + "BlockDiagonalCausalWithOffsetGappyKeysMask",
          "in one block, causal from its end", "",
          inside("gappy_ids", "padded_ends", "q_ends", "", "0"), takes(),
          document_wise(document(q_ids(a), gappy_ids(a)), q_ends(a), padded_ends(a), causal())),
      ATTN_MASK("xf_" + p + "block_diagonal_causal_local_padded",
                "XF " + c + "BlockDiagonalCausalLocalAttentionPaddedKeysMask",
                "in one block, a causal window from its end", "",
                inside("padded_ids", "padded_ends", "q_ends", "1 - $width", "0"), takes(width()),
                document_wise(document(q_ids(a), padded_ids(a)), q_ends(a), padded_ends(a),
                              window(a["width"] - 1, 0))),
  };
}

std::vector<MaskEntry> local_padding() {
  const std::vector<Parameter> ends =
      takes(whole("left", 4, 0, "keys before"), whole("right", 2, 0, "keys after"));
  return {
      ATTN_MASK("xf_block_diagonal_local_padded", "XF BlockDiagonalLocalAttentionPaddedKeysMask",
                "in one block, a window from its end", "",
                inside("padded_ids", "padded_ends", "q_ends", "-$left", "$right"), ends,
                document_wise(document(q_ids(a), padded_ids(a)), q_ends(a), padded_ends(a),
                              window(a["left"], a["right"]))),
      ATTN_MASK("xf_block_diagonal_local_br_gappy",
                "XF BlockDiagonalLocalAttentionFromBottomRightGappyKeysMask",
                "in one block, a window from its end", "",
                inside("gappy_ids", "padded_ends", "q_ends", "-$left", "$right"), ends,
                document_wise(document(q_ids(a), gappy_ids(a)), q_ends(a), padded_ends(a),
                              window(a["left"], a["right"]))),
  };
}

}  // namespace

std::vector<MaskEntry> xformers_masks() {
  std::vector<MaskEntry> all;
  for (const auto& part : {single(), block_diagonal(), with_padding("", ""),
                           with_padding("paged_", "Paged"), local_padding()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace attn::detail
