#pragma once

#include <span>
#include <vector>

#include "mods/lang/captured_tensors.h"
#include "optimized/attention_call.h"
#include "optimized/implementations.h"
#include "reference/sequences.h"

namespace attn {

/// An argument list that passed every check that can be made without the mod and the mask.
struct CheckedCall {
  Problem problem;                  ///< the sizes, valid
  std::vector<Sequence> sequences;  ///< empty: dense
};

/// Checks what an implementation is given and what it is to write.
/// @throws std::invalid_argument that names the argument, its value and what was expected.
CheckedCall check_call(const AttentionArguments& call, const Implementation& row);

/// The inputs that are there.
std::vector<TensorInfo> inputs_of(const AttentionArguments& call, Pass pass);
/// The outputs that are wanted: tensors, dSink, and of the captured gradients those whose tensors
/// `captured` lists, in the same order.
std::vector<TensorInfo> outputs_of(const AttentionArguments& call, Pass pass,
                                   std::span<const CapturedTensor> captured = {});

/// The checks that need the mod and the mask.
/// @throws std::invalid_argument
template <class Mod, class Mask>
void check_functors(const Mod& mod, const Mask& mask, const CheckedCall& checked) {
  if (checked.sequences.empty())
    check_functors(mod, mask, checked.problem);
  else
    check_functors(mod, mask, checked.sequences);
}

}  // namespace attn
