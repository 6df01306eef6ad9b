#include "masks/batchify.h"
#include "masks/causal.h"
#include "masks/causal_blocks.h"
#include "masks/chunked_causal.h"
#include "masks/diagonal_blocks.h"
#include "masks/diffusion_blocks.h"
#include "masks/dilated_window.h"
#include "masks/draft_training.h"
#include "masks/full.h"
#include "masks/key_count.h"
#include "masks/mini_causal.h"
#include "masks/prefix_lm.h"
#include "masks/registry_entry.h"
#include "masks/shift.h"
#include "masks/streaming.h"
#include "masks/window.h"

/// Masks that know positions only.
namespace attn::detail {
namespace {

std::vector<MaskEntry> diagonals() {
  return {
      ATTN_MASK("full", "noop (PyTorch, attention-gym), FullMask (splash)", "true", "masks/full.h",
                "true", takes(), full()),
      ATTN_MASK("causal", "causal, top left", "kv <= q", "masks/causal.h", "kv <= q", takes(),
                causal()),
      ATTN_MASK("causal_offset", "causal with an offset (splash, PyTorch decode)", "kv <= q + o",
                "", "kv <= q + $offset",
                takes(whole("offset", 8, -(1 << 24), "keys past the diagonal")),
                causal(diagonal_offset(a["offset"]))),
      ATTN_MASK("causal_bottom_right", "causal, bottom right (FlashAttention, FlashInfer, cuDNN)",
                "kv <= q + Skv - Sq", "", "kv <= q + Skv - Sq", takes(), causal(bottom_right)),
      ATTN_MASK("inverse_causal", "inverse causal (PyTorch tests)", "kv >= q", "", "kv >= q",
                takes(), !causal(diagonal_offset(-1))),
      ATTN_MASK("negation", "not: the later keys only", "not (kv <= q)", "masks/algebra.h",
                "!(kv <= q)", takes(), !causal()),
      ATTN_MASK("shift", "a mask seen from other positions", "mask(q + rows, kv + keys)",
                "masks/shift.h", "kv + $keys <= q + $rows",
                takes(whole("rows", 0, -(1 << 24), "added to the row"),
                      whole("keys", -8, -(1 << 24), "added to the key")),
                shift(causal(), a["rows"], a["keys"])),
      ATTN_MASK("either", "or: a window or the first keys", "|q - kv| <= w or kv < n",
                "masks/algebra.h", "abs(q - kv) <= $width || kv < $count",
                takes(whole("width", 8, 0, "keys on each side"), whole("count", 4, 0, "keys")),
                window(a["width"], a["width"]) || key_count(a["count"])),
      ATTN_MASK("exactly_one", "xor: one of two", "(kv <= q) != (|q - kv| <= w)", "masks/algebra.h",
                "(kv <= q) != (abs(q - kv) <= $width)",
                takes(whole("width", 8, 0, "keys on each side")),
                causal() != window(a["width"], a["width"])),
  };
}

std::vector<MaskEntry> windows() {
  return {
      ATTN_MASK("window", "left-right window (axlearn)", "-l <= kv - q <= r", "masks/window.h",
                "-$left <= kv - q && kv - q <= $right",
                takes(whole("left", 12, 0, "keys before"), whole("right", 4, 0, "keys after")),
                window(a["left"], a["right"])),
      ATTN_MASK("sliding_window", "sliding window (attention-gym)", "0 <= q - kv <= W", "",
                "0 <= q - kv && q - kv <= $width", takes(whole("width", 16, 0, "keys before")),
                window(a["width"], 0)),
      ATTN_MASK("sliding_window_causal", "sliding window causal (axlearn)",
                "kv <= q and q - kv <= w", "", "kv <= q && q - kv <= $width",
                takes(whole("width", 16, 0, "keys before")),
                causal() && window(a["width"], unbounded)),
      ATTN_MASK("flash_window", "window (FlashAttention 2, 3, 4); -1 has no end",
                "q + off - l <= kv <= q + off + r", "",
                "($left < 0 || q + (Skv - Sq) - $left <= kv) && "
                "($right < 0 || kv <= q + (Skv - Sq) + $right)",
                takes(whole("left", 16, -1, "keys before, -1 all"),
                      whole("right", 0, -1, "keys after, -1 all")),
                window(a["left"] < 0 ? unbounded : a["left"],
                       a["right"] < 0 ? unbounded : a["right"], bottom_right)),
      ATTN_MASK("cudnn_bounds", "diagonal band bounds (cuDNN), bottom right",
                "q + off - L < kv <= q + off + R", "",
                "q + (Skv - Sq) - $left < kv && kv <= q + (Skv - Sq) + $right",
                takes(whole("left", 16, 1, "left bound, excluded"),
                      whole("right", 0, 0, "right bound, included")),
                window(a["left"] - 1, a["right"], bottom_right)),
      ATTN_MASK("flashinfer_window", "window_left (FlashInfer)", "kv + Sq + W >= Skv + q", "",
                "kv + Sq + $width >= Skv + q", takes(whole("width", 16, 0, "keys before")),
                window(a["width"], unbounded, bottom_right)),
      ATTN_MASK("local_mask", "LocalMask (splash)", "q + o - left <= kv <= q + o + right", "",
                "q + $offset - $left <= kv && kv <= q + $offset + $right",
                takes(whole("left", 8, 0, "keys before"), whole("right", 8, 0, "keys after"),
                      whole("offset", 0, -(1 << 24), "keys past the diagonal")),
                window(a["left"], a["right"], diagonal_offset(a["offset"]))),
      ATTN_MASK("dilated_window", "dilated sliding window (attention-gym, FlashAttention 4)",
                "|q - kv| <= w and |q - kv| mod d == 0", "masks/dilated_window.h",
                "abs(q - kv) <= $reach && abs(q - kv) % $dilation == 0",
                takes(whole("reach", 16, 0, "distance of the last key"),
                      whole("dilation", 2, 1, "step between keys")),
                dilated_window(a["reach"], a["dilation"])),
      ATTN_MASK("streaming", "attention sink, streaming (flaxattention)",
                "kv <= q and (kv < sinks or q - kv <= w)", "masks/streaming.h",
                "(kv < $sinks || q - kv <= $left) && kv <= q",
                takes(whole("sinks", 4, 0, "first keys kept"), whole("left", 12, 0, "keys before")),
                streaming(a["sinks"], a["left"])),
  };
}

std::vector<MaskEntry> blocks() {
  return {
      ATTN_MASK("chunked_causal", "chunked causal (splash, FlashAttention 3)",
                "floor(q / c) == floor(kv / c) and kv <= q", "masks/chunked_causal.h",
                "floor_div(q, $chunk) == floor_div(kv, $chunk) && kv <= q",
                takes(whole("chunk", 16, 1, "positions of a chunk")), chunked_causal(a["chunk"])),
      ATTN_MASK("block_diagonal", "block diagonal (FlashAttention 4)",
                "floor(q / n) == floor(kv / n)", "masks/diagonal_blocks.h",
                "floor_div(q, $length) == floor_div(kv, $length)",
                takes(whole("length", 16, 1, "positions of a block")), block_diagonal(a["length"])),
      ATTN_MASK("block_causal", "block causal (FlashAttention 4)", "floor(kv / n) <= floor(q / n)",
                "masks/causal_blocks.h", "floor_div(kv, $length) <= floor_div(q, $length)",
                takes(whole("length", 16, 1, "positions of a block")), block_causal(a["length"])),
      ATTN_MASK("mini_causal", "mini causal (FlashAttention 4)", "q mod n >= kv mod n",
                "masks/mini_causal.h", "floor_mod(q, $length) >= floor_mod(kv, $length)",
                takes(whole("length", 16, 1, "rows of a triangle")), mini_causal(a["length"])),
      ATTN_MASK("batchify", "batchify (attention-gym)",
                "floor(q / n) == floor(kv / n) and inner(q mod n, kv mod n)", "masks/batchify.h",
                "floor_div(q, $length) == floor_div(kv, $length) && "
                "floor_mod(kv, $length) <= floor_mod(q, $length)",
                takes(whole("length", 16, 1, "positions of an entry")),
                batchify(causal(), a["length"])),
      ATTN_MASK(
          "block_diffusion", "block diffusion (attention-gym): noised half, then clean half",
          "(Q == KV and same half) or (Q > KV, noised, clean) or (Q >= KV, both clean); "
          "Q = floor((q mod half) / n)",
          "masks/diffusion_blocks.h",
          "floor_div(floor_mod(q, $half), $length) == floor_div(floor_mod(kv, $half), $length)"
          " && (q >= $half) == (kv >= $half) || "
          "floor_div(floor_mod(q, $half), $length) > floor_div(floor_mod(kv, $half), $length)"
          " && q < $half && kv >= $half || "
          "floor_div(floor_mod(q, $half), $length) >= floor_div(floor_mod(kv, $half), $length)"
          " && q >= $half && kv >= $half",
          takes(whole("half", 32, 1, "tokens of each half"),
                whole("length", 8, 1, "tokens of a block")),
          block_diffusion(a["half"], a["length"])),
      ATTN_MASK("draft_training", "JetSpec training (attention-gym)",
                "kv < p or (floor(q / n) == floor((kv - p) / n) and (kv - p) mod n <= q mod n)",
                "masks/draft_training.h",
                "kv < $prefix || floor_div(q, $group) == floor_div(kv - $prefix, $group) && "
                "floor_mod(kv - $prefix, $group) <= floor_mod(q, $group)",
                takes(whole("prefix", 16, 0, "keys that all see"),
                      whole("group", 8, 1, "queries of a group")),
                draft_training(a["prefix"], a["group"])),
  };
}

std::vector<MaskEntry> lengths() {
  return {
      ATTN_MASK("truncated_key", "truncated key (axlearn)", "kv < n", "masks/key_count.h",
                "kv < $count", takes(whole("count", 40, 0, "keys")), key_count(a["count"])),
      ATTN_MASK("prefix_lm", "prefix LM (attention-gym, FlashAttention 4)", "kv < p or kv <= q",
                "masks/prefix_lm.h", "kv < $length || kv <= q",
                takes(whole("length", 20, 0, "keys of the prefix")), prefix_lm(a["length"])),
      ATTN_MASK("skip_odd_keys", "skip odd keys (PyTorch tests)", "kv mod 2 == 0", "",
                "floor_mod(kv, 2) == 0", takes(),
                [](auto, auto, auto, auto kv) { return floor_mod(kv, 2) == 0; }),
      ATTN_MASK("first_rows", "fully masked out rows (PyTorch tests): all but the first M", "q < M",
                "", "q < $rows", takes(whole("rows", 32, 0, "rows that attend")),
                [rows = a["rows"]](auto, auto, auto q, auto) { return q < rows; }),
  };
}

}  // namespace

std::vector<MaskEntry> position_masks() {
  std::vector<MaskEntry> all;
  for (const auto& part : {diagonals(), windows(), blocks(), lengths()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace attn::detail
