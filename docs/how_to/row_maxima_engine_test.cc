#include "docs/how_to/row_maxima.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "optimized/simt/memory.h"

namespace how_to {
namespace {

//! [test]
TEST(RowMaxima, is_exact_for_every_length) {
  std::mt19937 random(1);
  for (int n = 0; n < 100; ++n) {
    const int rows = 3;
    std::vector<float> values(static_cast<std::size_t>(rows * n));
    for (float& value : values) value = static_cast<float>(random()) - 0x1p31f;
    const attn::simt::DeviceBuffer<float> x(values, attn::simt::Access::input);
    attn::simt::DeviceBuffer<float> out(rows);
    attn::simt::launch({rows, 1, 1}, 32, 0, {}, row_maxima, x.data(), out.data(), n);
    for (int row = 0; row < rows; ++row) {
      float largest = -attn::infinity;
      for (int i = 0; i < n; ++i) largest = std::max(largest, values[row * n + i]);
      EXPECT_EQ(out[row], largest) << "row " << row << " of " << n;
    }
  }
}
//! [test]

}  // namespace
}  // namespace how_to
