// Flash forward with more functors that are known at compile time, for timing alone.
#include "optimized/typed_kernels_define.h"

namespace attn::cuda {

template void run_typed_forward<GpuVariant::full>(const GpuBench&, const GpuBenchTables&,
                                                  const AttentionArguments&, const Implementation&);
template void run_typed_forward<GpuVariant::documents>(const GpuBench&, const GpuBenchTables&,
                                                       const AttentionArguments&,
                                                       const Implementation&);
template void run_typed_forward<GpuVariant::checkerboard>(const GpuBench&, const GpuBenchTables&,
                                                          const AttentionArguments&,
                                                          const Implementation&);

}  // namespace attn::cuda
