#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "optimized/attention_call.h"
#include "optimized/device_memory.h"
#include "optimized/implementations.h"

namespace attn {

/// A call on host memory, mirrored in the memory of a device: every tensor is copied with all that
/// lies between its elements, views of one buffer stay views of one buffer, and an address keeps
/// its remainder by `DeviceMemory::alignment`. Around each stretch lies a guard zone.
///
/// What a launch may look at on the host before any work (captured tensors, the sink, lengths,
/// page tables) goes to memory that both sides read.
class DeviceCall {
 public:
  /// @throws std::runtime_error if the device has not enough memory.
  DeviceCall(const AttentionCall& host, Pass pass, DeviceMemory& memory);

  /// The same call on the device's memory; valid until the memory is reset.
  const AttentionCall& call() const { return call_; }

  /// Waits for the device, and copies what the call may write back to the host.
  /// @throws simt::CheckerFault if a guard zone or an input was written.
  void copy_back();

 private:
  struct Stretch {
    std::uintptr_t first = 0, last = 0;  ///< on the host; last: one past the end
    bool written = false;                ///< holds an output
    const char* name = "";
    std::byte* block = nullptr;  ///< on the device: guard, the stretch, guard
    std::byte* start = nullptr;  ///< where the stretch begins in it
    std::size_t block_bytes = 0;
  };

  void add(const TensorInfo& tensor, bool written);
  void add(const void* data, std::size_t bytes, const char* name, bool written);
  void merge_and_copy();
  void mirror(TensorInfo& tensor) const;
  void* mirrored(const void* host) const;
  template <class T>
  const T* share(const T* data, std::size_t count);
  void share_tables(Program& program);

  DeviceMemory& memory_;
  AttentionCall call_;
  std::vector<Stretch> stretches_;
  std::vector<float*> d_captured_;
};

}  // namespace attn
