#pragma once

#include <cstdint>

#include "masks/algebra.h"
#include "mods/arguments_check.h"

namespace attn {

/// Cross-attention from text to the images in it: a token sees the image that it belongs to.
///
///     m = floor(j / tokens)                                  the image of key j
///     attend(b, h, i, j) = start[m] <= i < end[m]            the text that image m serves
///
/// flamingo(2, start 0 3, end 3 6), two images of two tokens each:
///
///       keys j
///     i ##..
///       ##..
///       ##..
///       ..##
///       ..##
///       ..##
///
/// J.-B. Alayrac et al., "Flamingo", 2022, section 2.3 (multi-visual input support).
///
/// Elsewhere: `generate_vision_cross_attention_mask_mod` (attention-gym). Text before the first
/// image is a row without a key.
struct Flamingo : MaskBase {
  std::int32_t tokens;              ///< keys an image
  Captured<1, std::int32_t> start;  ///< [images]
  Captured<1, std::int32_t> end;    ///< [images]

  template <class Index>
  ATTN_HOST_DEVICE auto operator()(Index, Index, Index q, Index kv) const {
    const Index image = attn::floor_div(kv, tokens);
    return start(image) <= q && q < end(image);
  }
  /// @throws std::invalid_argument if `tokens` is below 1 or the tables do not cover the keys.
  void check(const Sizes& sizes) const {
    check_at_least("flamingo", "tokens", tokens, 1);
    const std::int64_t images = (std::int64_t{sizes.skv} + tokens - 1) / tokens;
    check_table("flamingo", "start", start, at_least("images", images));
    check_table("flamingo", "end", end, at_least("images", images));
  }
};

/// Images of `tokens` keys each. The memory stays the caller's.
/// @throws std::invalid_argument if `tokens` is below 1.
inline Flamingo flamingo(std::int32_t tokens, Captured<1, std::int32_t> start,
                         Captured<1, std::int32_t> end) {
  check_at_least("flamingo", "tokens", tokens, 1);
  start.name = "start";
  end.name = "end";
  return {{}, tokens, start, end};
}

}  // namespace attn
