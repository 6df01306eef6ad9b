// The conformance kernels compiled for a GPU: proof that each primitive is accepted by nvcc for
// every architecture the build names, and the kernels that a run on a GPU launches.
#include "optimized/simt/conformance.h"

namespace attn::conformance {

/// Address of each kernel, as cudaLaunchKernel takes it.
extern const void* const kernels[];

namespace {
template <class... Parameters>
const void* address(void (*kernel)(Parameters...)) {
  return reinterpret_cast<const void*>(kernel);
}
}  // namespace

const void* const kernels[] = {
    address(identity),
    address(shuffles<std::uint32_t>),
    address(shuffles<float>),
    address(shuffles<double>),
    address(votes),
    address(arithmetic),
    address(conversions<half>),
    address(conversions<bfloat16>),
    address(shared_memory<std::uint16_t>),
    address(shared_memory<half>),
    address(shared_memory<float>),
    address(shared_memory<double>),
    address(shared_memory<simt::Vec16>),
    address(predicated_store),
    address(ldmatrix<false>),
    address(ldmatrix<true>),
    address(mma<half>),
    address(mma<bfloat16>),
    address(async_copies<4>),
    address(async_copies<8>),
    address(async_copies<16>),
    address(conditional_copy),
    address(global_memory<std::uint8_t>),
    address(global_memory<bfloat16>),
    address(global_memory<float>),
    address(global_memory<std::int64_t>),
    address(global_memory<simt::Vec16>),
    address(wide_global_memory),
    address(atomic_sums<float>),
    address(atomic_sums<std::int32_t>),
    address(atomic_sums<std::uint32_t>),
    address(atomic_sums<std::uint64_t>),
    address(atomic_maxima<std::int32_t>),
    address(atomic_maxima<std::uint32_t>),
    address(named_barriers),
};

}  // namespace attn::conformance
