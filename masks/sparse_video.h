#pragma once

#include <cmath>
#include <cstdint>

#include "masks/algebra.h"
#include "mods/arguments_check.h"

namespace attn {

/// Heads of a video generator that look along space or along time. The sequence is a prompt of p
/// tokens, then frames of n tokens each.
///
///     spatial:   attend(b, h, i, j) = i < p  or  j < p + sink  or  |i - j| < band
///     temporal:  attend(b, h, i, j) = i < p  or  j < p  or  |place(i) - place(j)| < band
///
/// place(i) = (i - p) mod n is the position inside the frame; sink is 0, or n where the first frame
/// is kept in sight. p = 1, n = 3, three frames, spatial band 3, temporal band 1:
///
///     spatial       temporal
///     ##########    ##########
///     ####......    ##..#..#..
///     #####.....    #.#..#..#.
///     ######....    #..#..#..#
///     #.#####...    ##..#..#..
///     #..#####..    #.#..#..#.
///     #...#####.    #..#..#..#
///     #....#####    ##..#..#..
///     #.....####    #.#..#..#.
///     #......###    #..#..#..#
///
/// H. Xi et al., "Sparse VideoGen", ICML 2025, section 3.2: which head is which is decided online.
///
/// Elsewhere: `generate_spatial_head_mask_mod` and `generate_temporal_head_mask_mod`
/// (attention-gym), with widths counted in frames: `spatial_band` and `temporal_band` convert.
struct SparseVideo : MaskBase {
  enum class Along { space, time };  ///< what its head looks along
  Along along;                       ///< which of the two
  std::int32_t prompt;               ///< p
  std::int32_t frame;                ///< n, tokens of a frame
  std::int32_t band;                 ///< pairs less far apart than this attend
  std::int32_t sink = 0;             ///< keys after the prompt that stay in sight; Along::space

  template <class Index>
  ATTN_HOST_DEVICE auto operator()(Index, Index, Index q, Index kv) const {
    const auto prompt_pair = q < prompt || kv < prompt + sink;
    if (along == Along::space) return prompt_pair || attn::abs(kv - q) < band;
    const Index q_place = attn::floor_mod(q - prompt, frame);
    const Index kv_place = attn::floor_mod(kv - prompt, frame);
    return prompt_pair || attn::abs(kv_place - q_place) < band;
  }
  /// @throws std::invalid_argument if prompt, band or sink is below 0, or the frame below 1.
  void check(const Sizes&) const {
    check_at_least("sparse_video", "prompt", prompt, 0);
    check_at_least("sparse_video", "frame", frame, 1);
    check_at_least("sparse_video", "band", band, 0);
    check_at_least("sparse_video", "sink", sink, 0);
  }
};

/// @throws std::invalid_argument if a number is out of range.
inline SparseVideo spatial_head(std::int32_t prompt, std::int32_t frame, std::int32_t band,
                                bool keep_first_frame = false) {
  const SparseVideo mask{{},   SparseVideo::Along::space,   prompt, frame,
                         band, keep_first_frame ? frame : 0};
  mask.check({});
  return mask;
}
/// @throws std::invalid_argument if a number is out of range.
inline SparseVideo temporal_head(std::int32_t prompt, std::int32_t frame, std::int32_t band) {
  const SparseVideo mask{{}, SparseVideo::Along::time, prompt, frame, band, 0};
  mask.check({});
  return mask;
}

/// `width` frames of `frame` tokens, rounded up to a multiple of `round`.
inline std::int32_t spatial_band(double width, std::int32_t frame, std::int32_t round = 128) {
  return static_cast<std::int32_t>(std::ceil(width * frame / round)) * round;
}
/// `width` frames' worth of tokens shared out among the places of a frame: |d| < width * frame /
/// frames, and |d| is whole.
inline std::int32_t temporal_band(double width, std::int32_t frame, std::int32_t frames) {
  return static_cast<std::int32_t>(std::ceil(width * frame / frames));
}

}  // namespace attn
