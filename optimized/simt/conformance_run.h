// What each primitive of the layer gives on fixed arguments, run on any target, so that a GPU can
// be held against the CPU engines.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "optimized/device_memory.h"

namespace attn {

/// How exactly the layer defines a result.
enum class Precision {
  exact,  ///< to the bit; of a NaN neither sign nor payload is defined
  exp2,   ///< within simt::kExp2RelativeError of 2^x; subnormal results are 0
  log2,   ///< within one unit in the last place of the nearest fp32
};

/// What one conformance kernel gave, against what it should.
struct ConformanceResult {
  std::string primitive;             ///< the kernel of optimized/simt/conformance.h, and its type
  std::vector<std::uint32_t> words;  ///< what it wrote; in place of any NaN 0x7fffffff
  Precision precision = Precision::exact;
  std::vector<float> arguments;  ///< of exp2 and log2: x
};

namespace warp {
/// Runs every conformance kernel on this target; their memory is taken from `memory`. Each target
/// has its own, in its own unit (optimized/simt/conformance_unit.cc).
std::vector<ConformanceResult> run_conformance(DeviceMemory& memory);
}
namespace thread {
std::vector<ConformanceResult> run_conformance(DeviceMemory& memory);
}
namespace cuda {
std::vector<ConformanceResult> run_conformance(DeviceMemory& memory);
}

/// A line for each primitive of `got` that is not what it should be: not the words of `expected`,
/// or outside its precision; and for each that only one of the two has.
std::vector<std::string> conformance_differences(const std::vector<ConformanceResult>& got,
                                                 const std::vector<ConformanceResult>& expected);

}  // namespace attn
