#include "masks/neighborhood.h"
#include "masks/registry_entry.h"
#include "masks/sliding_tile.h"
#include "masks/sparse_video.h"

/// Masks of images and video.
namespace attn::detail {
namespace {

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

/// |clamp(at q, r, length - 1 - r) - at kv| <= r with r = kernel / 2; `place` is the coordinate of
/// position N.
std::string near(const std::string& place, const std::string& kernel, const std::string& length) {
  const std::string r = "${" + kernel + " / 2}",
                    last = "${" + length + " - 1 - " + kernel + " / 2}";
  return "abs(clamp(" + replaced(place, "N", "q") + ", " + r + ", " + last + ") - " +
         replaced(place, "N", "kv") + ") <= " + r;
}

/// Every second of six bits of position N, from bit 0 (`first` 1) or bit 1 (`first` 2) on.
std::string every_second_bit(int first) {
  const auto bit = [first](int at) {
    return "floor_mod(floor_div(N, " + std::to_string(first * at) + "), 2)";
  };
  return "(" + bit(1) + " + " + bit(4) + " * 2 + " + bit(16) + " * 4)";
}

// In tiles of t x t, position N has column (N / t^2 mod width / t) t + N mod t
// and row (N / (t width)) t + (N / t) mod t.
const char* const tile_x =
    "(floor_mod(floor_div(N, ${$tile * $tile}), ${$width / $tile}) * $tile + floor_mod(N, $tile))";
const char* const tile_y =
    "(floor_div(N, ${$tile * $width}) * $tile + floor_mod(floor_div(N, $tile), $tile))";

/// Text and padding around the vision tokens, of which there are `vision`.
std::string with_text(const std::string& vision, const std::string& inside) {
  const std::string end = "${" + vision + "}";
  return "kv < ${" + vision + " + $text} && (q >= " + end + " || kv >= " + end + " || " + inside +
         ")";
}

const char* const neighborhood_formula =
    "|clamp(x(q), r, width - 1 - r) - x(kv)| <= r, the same in y; r = floor(k / 2)";
const char* const sliding_tile_formula =
    "text sees and is seen by all; vision: the tile of kv within the clamped kernel window of the "
    "tile of q, in every axis";

Parameter kernel_parameter() { return whole("kernel", 3, 1, "side of the square, in pixels"); }

std::vector<MaskEntry> image_masks() {
  return {
      ATTN_MASK("natten", "NATTEN 2-D (attention-gym, PyTorch tests)", neighborhood_formula,
                "masks/neighborhood.h",
                near("floor_mod(N, $width)", "$kernel", "$width") + " && " +
                    near("floor_div(N, $width)", "$kernel", "$height"),
                takes(whole("width", 8, 1, "of the image"), whole("height", 8, 1, "of the image"),
                      kernel_parameter()),
                neighborhood(row_major(a["width"], a["height"]), a["kernel"])),
      ATTN_MASK("natten_tiled", "NATTEN, tokens in tiles (attention-gym)", neighborhood_formula,
                "masks/neighborhood.h",
                near(tile_x, "$kernel", "$width") + " && " + near(tile_y, "$kernel", "$height"),
                takes(whole("width", 8, 1, "of the image"), whole("height", 8, 1, "of the image"),
                      whole("tile", 4, 1, "side of a tile"), kernel_parameter()),
                neighborhood(tiled(a["width"], a["height"], a["tile"], a["tile"]), a["kernel"])),
      ATTN_MASK(
          "natten_morton", "NATTEN, tokens in Morton order (attention-gym)", neighborhood_formula,
          "masks/neighborhood.h",
          near(every_second_bit(1), "$kernel", "$side") + " && " +
              near(every_second_bit(2), "$kernel", "$side"),
          takes(Parameter{"side", Parameter::Kind::whole, 8, 1, 8, "of the image, a power of two"},
                kernel_parameter()),
          neighborhood(morton(a["side"]), a["kernel"])),
      ATTN_MASK(
          "sliding_tile_2d", "STA, sliding tile attention, 2-D (attention-gym)",
          sliding_tile_formula, "masks/sliding_tile.h",
          with_text("$height * $width * $tokens",
                    near("floor_div(N, ${$tokens * $width})", "$kernel", "$height") + " && " +
                        near("floor_mod(floor_div(N, $tokens), $width)", "$kernel", "$width")),
          takes(whole("height", 4, 1, "tiles"), whole("width", 4, 1, "tiles"),
                whole("kernel", 3, 1, "tiles"), whole("tokens", 3, 1, "of a tile"),
                whole("text", 8, 0, "tokens after the image")),
          sliding_tile_2d({a["height"], a["width"]}, {a["kernel"], a["kernel"]}, a["tokens"],
                          a["text"])),
      ATTN_MASK(
          "sliding_tile_3d", "STA, sliding tile attention, 3-D (attention-gym)",
          sliding_tile_formula, "masks/sliding_tile.h",
          with_text(
              "$frames * $height * $width * $tokens",
              near("floor_div(N, ${$tokens * $height * $width})", "$kernel", "$frames") + " && " +
                  near("floor_mod(floor_div(N, ${$tokens * $width}), $height)", "1", "$height") +
                  " && " + near("floor_mod(floor_div(N, $tokens), $width)", "$kernel", "$width")),
          takes(whole("frames", 4, 1, "tiles in time"), whole("height", 1, 1, "tiles"),
                whole("width", 4, 1, "tiles"), whole("kernel", 3, 1, "tiles in time and width"),
                whole("tokens", 3, 1, "of a tile"), whole("text", 8, 0, "tokens after the video")),
          sliding_tile({a["frames"], a["height"], a["width"]}, {a["kernel"], 1, a["kernel"]},
                       a["tokens"], a["text"])),
  };
}

std::vector<MaskEntry> video_masks() {
  return {
      ATTN_MASK("svg_spatial", "SVG spatial head (attention-gym)",
                "q < prompt or kv < prompt + sink or |q - kv| < band", "masks/sparse_video.h",
                "q < $prompt || kv < $prompt + $keep * $frame || abs(q - kv) < $band",
                takes(whole("prompt", 4, 0, "tokens"), whole("frame", 12, 1, "tokens of a frame"),
                      whole("band", 12, 0, "tokens, from spatial_band(frames, ...)"),
                      Parameter{"keep", Parameter::Kind::whole, 1, 0, 1, "keep the first frame"}),
                spatial_head(a["prompt"], a["frame"], a["band"], a["keep"] == 1)),
      ATTN_MASK("svg_temporal", "SVG temporal head (attention-gym)",
                "q < prompt or kv < prompt or |place(q) - place(kv)| < band, place = (q - prompt) "
                "mod frame",
                "masks/sparse_video.h",
                "q < $prompt || kv < $prompt || abs(floor_mod(kv - $prompt, $frame) - "
                "floor_mod(q - $prompt, $frame)) < $band",
                takes(whole("prompt", 4, 0, "tokens"), whole("frame", 12, 1, "tokens of a frame"),
                      whole("band", 2, 0, "tokens, from temporal_band(frames, ...)")),
                temporal_head(a["prompt"], a["frame"], a["band"])),
  };
}

}  // namespace

std::vector<MaskEntry> grid_masks() {
  std::vector<MaskEntry> all = image_masks();
  for (MaskEntry& entry : video_masks()) all.push_back(entry);
  return all;
}

}  // namespace attn::detail
