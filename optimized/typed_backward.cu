// Flash backward with functors that are known at compile time, for the budget of registers.
#include "optimized/typed_kernels_define.h"

namespace attn::cuda {

template void run_typed_backward<GpuVariant::causal>(const GpuBench&, const GpuBenchTables&,
                                                     const AttentionArguments&,
                                                     const Implementation&);
template void run_typed_backward<GpuVariant::soft_cap_alibi>(const GpuBench&, const GpuBenchTables&,
                                                             const AttentionArguments&,
                                                             const Implementation&);
template void run_typed_backward<GpuVariant::window>(const GpuBench&, const GpuBenchTables&,
                                                     const AttentionArguments&,
                                                     const Implementation&);

}  // namespace attn::cuda
