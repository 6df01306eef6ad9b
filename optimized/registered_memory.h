#pragma once

#include <span>
#include <vector>

#include "mods/lang/call.h"
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

/// The captured tensors that a mod and a mask read, whatever their type.
template <class Mod, class Mask>
std::vector<CapturedTensor> captured_tensors(const Mod& mod, const Mask& mask, const Sizes& sizes) {
  TraceEnv env;
  env.sizes = sizes;
  using I = Index<TraceEnv>;
  const I zero{0, &env};
  if constexpr (!is_plain_functor<Mod> && std::is_invocable_v<const Mod&, double, I, I, I, I>)
    (void)call_mod(mod, 0.0, zero, zero, zero, zero);
  if constexpr (!is_plain_functor<Mask> && std::is_invocable_v<const Mask&, I, I, I, I>)
    (void)call_mask(mask, zero, zero, zero, zero);
  env.tensors.insert(env.tensors.end(), env.tables.begin(), env.tables.end());
  return env.tensors;
}

}  // namespace attn
