#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace attn {

/// The memory of a launch beside its tensors: what the host tells the kernels, and what one kernel
/// leaves for the next. Parts are named first, so that their size is known before any is placed.
class WorkspacePlan {
 public:
  /// `pointer` will stand at a copy of `values`, which must outlive the launch's call.
  template <class T>
  void upload(const T*& pointer, std::span<const T> values) {
    add(reinterpret_cast<void**>(const_cast<T**>(&pointer)), values.size_bytes(), values.data());
  }
  /// `pointer` will stand at memory for `count` elements that kernels write before they read.
  template <class T>
  void scratch(T*& pointer, std::int64_t count) {
    add(reinterpret_cast<void**>(&pointer), static_cast<std::size_t>(count) * sizeof(T), nullptr);
  }

  std::size_t bytes() const { return bytes_; }

  /// A stretch of the workspace, and who is told where it starts.
  struct Part {
    void** pointer;
    std::size_t offset, bytes;
    const void* values;  ///< null: scratch
  };
  const std::vector<Part>& parts() const { return parts_; }

 private:
  void add(void** pointer, std::size_t bytes, const void* values) {
    if (bytes == 0) return;
    parts_.push_back({pointer, bytes_, bytes, values});
    bytes_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  static constexpr std::size_t kAlignment = 256;
  std::vector<Part> parts_;
  std::size_t bytes_ = 0;
};

}  // namespace attn
