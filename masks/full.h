#pragma once

#include "masks/algebra.h"

namespace attn {

/// Every query attends to every key.
///
///     attend(b, h, i, j) = true
///
///       keys j
///     i #####
///       #####
///       #####
///
/// Elsewhere: `noop_mask` (PyTorch FlexAttention), `FullMask` (JAX splash attention).
struct Full : MaskBase {
  template <class Index>
  ATTN_HOST_DEVICE auto operator()(Index, Index, Index q, Index kv) const {
    using Condition = decltype(kv <= q);
    return Condition(true);
  }
};

/// Every pair attends.
inline Full full() { return {}; }

}  // namespace attn
