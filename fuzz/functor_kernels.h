#pragma once

#include <string_view>

#include "optimized/attention.h"

/// The shipped kernels with a mod and a mask of the user's. The unit that includes this is compiled
/// for an engine, and instantiates `run_functors` for the types (fuzz/functor_build.cc writes it).
namespace attn {
inline namespace ATTN_TARGET {

/// Runs the pass that `row` stands for. @throws as flash_forward.
template <class Mod, class Mask>
std::string_view run_functors(const AttentionArguments& call, const Implementation& row,
                              const Mod& mod, const Mask& mask) {
  const auto run = [&](auto storage) {
    using T = decltype(storage);
    if (row.pass == Pass::forward)
      flash_forward<T>(call, row, mod, mask);
    else
      flash_backward<T>(call, row, mod, mask);
  };
  if (call.q.dtype == DType::f16)
    run(half{});
  else if (call.q.dtype == DType::bf16)
    run(bfloat16{});
  else
    throw std::invalid_argument(std::string("q: ") + name_of(call.q.dtype) +
                                ", expected fp16 or bf16");
  return simt::engine_name();
}

}  // namespace ATTN_TARGET
}  // namespace attn
