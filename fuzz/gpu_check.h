#pragma once

#include <cstdint>
#include <string>

namespace attn::fuzz {

/// The options of `attnproof gpu-check`.
struct GpuCheckArguments {
  double seconds = 320;     ///< for everything; with the tenth below, 6 minutes
  std::uint64_t cases = 0;  ///< random ones, at most, for each implementation; 0: as time allows
  std::uint64_t seed = 1;   ///< the same seed draws the same cases
  int jobs = 0;             ///< threads that compute bounds; 0: one a processor core
  std::string json = "gpu-check.json";  ///< the file of the result
  std::string replay;                   ///< the line of a report: run this case alone
};

/// `attnproof gpu-check`, on linked_gpu(): everything that only a GPU can tell, in one run of
/// bounded time, with one JSON file as its result. In this order, each part whatever the others
/// found:
///
///   conformance  each primitive of the layer against the CPU engine, to the bit where it is exact
///   corpus       the cases of public bug reports
///   fuzz         random cases of every implementation against the oracle
///   determinism  random cases of every implementation, each twice: the same bits
///   bench        time and TFLOPS of the shapes of optimized/gpu_timing.h
///
/// The file is written after every part, so that a run that is cut short has said what it found.
/// A run that outlasts `seconds` by a tenth (a kernel that hangs) is ended: status "timed out".
///
/// @return 0: clean; 1: a discrepancy; 3: there is no GPU, or this program was built without CUDA.
/// @throws std::invalid_argument for bad usage.
int gpu_check_command(const GpuCheckArguments& arguments);

}  // namespace attn::fuzz
