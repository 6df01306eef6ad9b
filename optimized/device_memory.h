#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

namespace attn {

/// Memory of a device, for code that is the same on a GPU and, in tests, on the host. It is handed
/// out piece by piece and taken back all at once.
class DeviceMemory {
 public:
  static constexpr std::size_t alignment = 256;  ///< of every piece

  virtual ~DeviceMemory() = default;
  /// Memory that the device reads and writes. @throws std::runtime_error if there is not enough.
  virtual std::byte* allocate(std::size_t bytes) = 0;
  /// Memory that host and device both read, at one address, and the host writes.
  virtual std::byte* allocate_shared(std::size_t bytes) = 0;
  virtual void to_device(void* device, const void* host, std::size_t bytes) = 0;
  virtual void to_host(void* host, const void* device, std::size_t bytes) = 0;
  /// Waits for the device. @throws std::runtime_error if a kernel failed.
  virtual void synchronise() = 0;
  /// Takes back every piece.
  virtual void reset() = 0;
};

/// The device is the host itself: where kernels run on a CPU engine.
class HostMemory final : public DeviceMemory {
 public:
  std::byte* allocate(std::size_t bytes) override {
    pieces_.push_back(std::make_unique<std::byte[]>(bytes + alignment));
    void* start = pieces_.back().get();
    std::size_t space = bytes + alignment;
    return static_cast<std::byte*>(std::align(alignment, bytes, start, space));
  }
  std::byte* allocate_shared(std::size_t bytes) override { return allocate(bytes); }
  void to_device(void* device, const void* host, std::size_t bytes) override {
    if (bytes > 0) std::memcpy(device, host, bytes);
  }
  void to_host(void* host, const void* device, std::size_t bytes) override {
    if (bytes > 0) std::memcpy(host, device, bytes);
  }
  void synchronise() override {}
  void reset() override { pieces_.clear(); }

 private:
  std::vector<std::unique_ptr<std::byte[]>> pieces_;
};

}  // namespace attn
