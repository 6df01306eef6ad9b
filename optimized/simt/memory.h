// Global memory as the CPU engines see it. A kernel under the checker may touch only memory that is
// registered here; every byte of it is guarded, an input, an output or both.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <vector>

namespace attn::simt {

namespace cpu {
class Allocation;
}

/// What a kernel may do with a byte of global memory.
enum class Access : std::uint8_t {
  none = 0,    ///< any access is a fault: guard zones, padding between the rows of a view
  input = 3,   ///< initialised and read-only
  output = 5,  ///< writable; a read before the first write is a fault
  in_out = 7,  ///< initialised and writable
};

/// A stretch of memory; `element_bytes` (1, 2, 4 or more) is the smallest size kernels access it
/// in.
struct MemorySpan {
  const void* base = nullptr;     ///< the first byte
  std::size_t bytes = 0;          ///< 0: the span is ignored
  std::size_t element_bytes = 4;  ///< 1, 2, 4 or more
};

/// Makes memory that somebody else owns visible to kernels while this object lives.
///
/// Spans that overlap are merged (q, k and v may be interleaved in one buffer), so that one byte
/// has one state. An access through a pointer into one span never reaches another span: it is out
/// of bounds even where the two are neighbours.
class Registration {
 public:
  Registration() = default;
  /// Registers one span of `count` elements, all of them in the state `access`.
  template <class T>
  Registration(const T* base, std::size_t count, Access access)
      : Registration({MemorySpan{base, count * sizeof(T), sizeof(T)}}, access) {}
  /// Registers several spans, all bytes in the state `access`. Empty spans are ignored.
  /// Throws std::invalid_argument when a span overlaps one that another object registered.
  explicit Registration(std::vector<MemorySpan> spans, Access access = Access::none);
  ~Registration();
  Registration(Registration&&) noexcept = default;
  Registration& operator=(Registration&&) noexcept;
  Registration(const Registration&) = delete;

  /// Gives the bytes [first, first + bytes) a new state. They must lie inside one registered span.
  void mark(const void* first, std::size_t bytes, Access access);
  /// True where every byte of the stretch has been written (or is an input).
  bool initialised(const void* first, std::size_t bytes) const;

 private:
  cpu::Allocation& find(const void* first, std::size_t bytes) const;
  void release();
  std::vector<std::shared_ptr<cpu::Allocation>> allocations_;
};

/// Owning array in emulated global memory, filled with 0xff bytes (a NaN in every floating type).
template <class T>
class DeviceBuffer {
 public:
  /// `count` elements that a kernel must write before it may read them.
  explicit DeviceBuffer(std::size_t count, Access access = Access::output)
      : memory_(new (std::align_val_t{kAlignment}) std::byte[bytes_for(count)]), count_(count) {
    std::fill_n(memory_.get(), bytes_for(count), std::byte{0xff});
    registration_ = Registration(data(), count, access);
  }
  /// A copy of `values`, readable and writable by kernels (or as `access` says).
  explicit DeviceBuffer(std::span<const T> values, Access access = Access::in_out)
      : DeviceBuffer(values.size(), access) {
    std::copy(values.begin(), values.end(), data());
  }
  explicit DeviceBuffer(const std::vector<T>& values, Access access = Access::in_out)
      : DeviceBuffer(std::span<const T>(values), access) {}

  T* data() { return reinterpret_cast<T*>(memory_.get()); }  ///< the first element
  const T* data() const { return reinterpret_cast<const T*>(memory_.get()); }  ///< the same
  std::size_t size() const { return count_; }                                  ///< elements
  T& operator[](std::size_t i) { return data()[i]; }
  const T& operator[](std::size_t i) const { return data()[i]; }
  T* begin() { return data(); }         ///< the first element
  T* end() { return data() + count_; }  ///< one past the last

  /// Gives `count` elements from index `first` a new state.
  void mark(std::size_t first, std::size_t count, Access access) {
    registration_.mark(data() + first, count * sizeof(T), access);
  }
  /// True where a kernel has written element `i`, or it began as initialised.
  bool initialised(std::size_t i) const { return registration_.initialised(data() + i, sizeof(T)); }

 private:
  static constexpr std::size_t kAlignment = 256;
  static std::size_t bytes_for(std::size_t count) { return count * sizeof(T) + kAlignment; }
  struct Free {
    void operator()(std::byte* p) const { operator delete[](p, std::align_val_t{kAlignment}); }
  };
  std::unique_ptr<std::byte[], Free> memory_;
  std::size_t count_;
  Registration registration_;
};

}  // namespace attn::simt
