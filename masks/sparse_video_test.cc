#include "masks/sparse_video.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "masks/dense_construction.h"

namespace attn {
namespace {

TEST(SparseVideo, spatial) {
  for (const int prompt : {0, 2})
    for (const bool keep : {false, true})
      for (const int band : {0, 1, 4}) {
        const auto mask = spatial_head(prompt, 3, band, keep);
        for (const Sizes& sizes : {Sizes{1, 2, 1, 8, 11}, Sizes{1, 1, 1, 11, 4}}) {
          EXPECT_EQ(first_difference(mask, sizes,
                                     [=](int, int, int i, int j) {
                                       const int seen = keep ? prompt + 3 : prompt;
                                       return i < prompt || j < seen || std::abs(i - j) < band;
                                     }),
                    "");
          EXPECT_EQ(first_wrong_box(mask, sizes, Verdicts::sound), "");
        }
      }
}

TEST(SparseVideo, temporal) {
  for (const int prompt : {0, 2})
    for (const int band : {0, 1, 2, 9}) {
      const auto mask = temporal_head(prompt, 4, band);
      for (const Sizes& sizes : {Sizes{1, 2, 1, 8, 11}, Sizes{1, 1, 1, 11, 4}}) {
        EXPECT_EQ(first_difference(mask, sizes,
                                   [=](int, int, int i, int j) {
                                     if (i < prompt || j < prompt) return true;
                                     return std::abs((i - prompt) % 4 - (j - prompt) % 4) < band;
                                   }),
                  "");
        EXPECT_EQ(first_wrong_box(mask, sizes, Verdicts::sound), "");
      }
    }
}

TEST(SparseVideo, looks_like_its_pictures) {
  EXPECT_EQ(picture(spatial_head(1, 3, 3), {1, 1, 1, 10, 10}),
            "##########\n"
            "####......\n"
            "#####.....\n"
            "######....\n"
            "#.#####...\n"
            "#..#####..\n"
            "#...#####.\n"
            "#....#####\n"
            "#.....####\n"
            "#......###\n");
  EXPECT_EQ(picture(temporal_head(1, 3, 1), {1, 1, 1, 10, 10}),
            "##########\n"
            "##..#..#..\n"
            "#.#..#..#.\n"
            "#..#..#..#\n"
            "##..#..#..\n"
            "#.#..#..#.\n"
            "#..#..#..#\n"
            "##..#..#..\n"
            "#.#..#..#.\n"
            "#..#..#..#\n");
}

TEST(SparseVideo, bands_from_widths) {
  EXPECT_EQ(spatial_band(1.5, 100), 256);  // 150, rounded up to 128s
  EXPECT_EQ(spatial_band(1, 128), 128);
  EXPECT_EQ(spatial_band(1.5, 3, 1), 5);
  for (int distance = 0; distance < 20; ++distance)  // |d| < width * frame / frames
    EXPECT_EQ(distance < temporal_band(1.5, 10, 4), distance < 1.5 * 10 / 4);
}

TEST(SparseVideo, refuses_numbers_out_of_range) {
  EXPECT_THROW(spatial_head(-1, 3, 1), std::invalid_argument);
  EXPECT_THROW(spatial_head(0, 0, 1), std::invalid_argument);
  EXPECT_THROW(temporal_head(0, 3, -1), std::invalid_argument);
}

}  // namespace
}  // namespace attn
