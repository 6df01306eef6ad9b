// Flash forward with functors that are known at compile time, for the budget of registers.
#include "optimized/shared_bytes.h"
#include "optimized/typed_kernels_define.h"

namespace attn::cuda {

template void run_typed_forward<GpuVariant::causal>(const GpuBench&, const GpuBenchTables&,
                                                    const AttentionArguments&,
                                                    const Implementation&);
template void run_typed_forward<GpuVariant::soft_cap_alibi>(const GpuBench&, const GpuBenchTables&,
                                                            const AttentionArguments&,
                                                            const Implementation&);
template void run_typed_forward<GpuVariant::window>(const GpuBench&, const GpuBenchTables&,
                                                    const AttentionArguments&,
                                                    const Implementation&);

}  // namespace attn::cuda
