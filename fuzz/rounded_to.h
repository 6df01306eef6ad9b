#pragma once

#include "mods/lang/storage.h"

namespace attn::fuzz {

/// The nearest number of a storage type.
inline double rounded_to(DType t, double x) {
  switch (t) {
    case DType::f64:
      return x;
    case DType::f32:
      return static_cast<float>(x);
    case DType::f16:
      return to_float(from_float<half>(static_cast<float>(x)));
    case DType::bf16:
      return to_float(from_float<bfloat16>(static_cast<float>(x)));
  }
  return x;
}

}  // namespace attn::fuzz
