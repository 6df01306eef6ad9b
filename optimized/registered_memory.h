#pragma once

#include <span>

#include "mods/lang/environments.h"
#include "optimized/simt/memory.h"
#include "reference/problem.h"

namespace attn {

/// A tensor that a launch touches.
struct AccessedTensor {
  TensorInfo tensor;
  simt::Access access = simt::Access::input;
};

/// Makes exactly the elements that the views address visible to kernels on the CPU engines; what
/// lies between and around them stays out of bounds, so that a read past a tail is a fault.
simt::Registration register_tensors(std::span<const AccessedTensor> tensors,
                                    std::span<const CapturedTensor> captured);

}  // namespace attn
