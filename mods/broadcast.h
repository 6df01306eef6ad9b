#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "mods/lang/captured.h"

namespace attn {

/// A table of rank 1 to 4 seen as [B, Hq, Sq, Skv], aligned to the right as in NumPy: [Skv],
/// [Sq, Skv], [Hq, Sq, Skv]. Axes missing on the left have extent 1; an axis of extent 1
/// broadcasts.
template <int Rank>
Captured<4> broadcast_table(const Captured<Rank>& table, const char* name) {
  TensorView<const float, 4> full{table.tensor.data, {1, 1, 1, 1}, {0, 0, 0, 0}};
  for (std::size_t axis = 0; axis < Rank; ++axis) {
    full.extents[4 - Rank + axis] = table.tensor.extents[axis];
    full.strides[4 - Rank + axis] = table.tensor.strides[axis];
  }
  return Captured<4>(full, name);
}

/// @throws std::invalid_argument if the table does not broadcast to [B, Hq, Sq, Skv].
inline void check_broadcast(const Captured<4>& table, const Sizes& sizes) {
  const std::array<std::int64_t, 4> problem{sizes.b, sizes.hq, sizes.sq, sizes.skv};
  for (std::size_t axis = 0; axis < 4; ++axis)
    if (table.tensor.extents[axis] != 1 && table.tensor.extents[axis] != problem[axis])
      throw std::invalid_argument(std::string(table.name) + ": shape " +
                                  shape_string(table.tensor.extents) +
                                  " (axes missing on the left read as 1), expected each axis 1 or "
                                  "as in [B, Hq, Sq, Skv] = " +
                                  shape_string(problem));
}

}  // namespace attn
