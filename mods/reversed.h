#pragma once

#include "mods/lang/captured.h"

namespace attn {

/// The same memory, read backwards: reversed(t)(n) is t(length - 1 - n).
///
/// Tables of distances count key minus query here; one that counts query minus key, as in PyTorch
/// FlexAttention, is `relative_bias(reversed(table))`, without a copy, and its gradient has the
/// order of the table.
template <class T>
Captured<1, T> reversed(const Captured<1, T>& table) {
  const TensorView<const T, 1>& t = table.tensor;
  if (t.extents[0] == 0) return table;
  const TensorView<const T, 1> backwards{
      t.data + (t.extents[0] - 1) * t.strides[0], t.extents, {-t.strides[0]}};
  return Captured<1, T>(backwards, table.name);
}

}  // namespace attn
