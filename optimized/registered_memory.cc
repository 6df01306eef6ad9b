#include "optimized/registered_memory.h"

#include <functional>

namespace attn {
namespace {

struct View {
  const std::byte* data;
  std::size_t element_bytes;
  std::span<const std::int64_t> extents, strides;  // in elements

  bool empty() const {
    for (const std::int64_t e : extents)
      if (e == 0) return true;
    return false;
  }
  /// From the lowest to the highest element, whatever the signs of the strides.
  simt::MemorySpan span() const {
    std::int64_t low = 0, high = 0;
    for (std::size_t axis = 0; axis < extents.size(); ++axis)
      (strides[axis] < 0 ? low : high) += (extents[axis] - 1) * strides[axis];
    const auto bytes = static_cast<std::int64_t>(element_bytes);
    return {data + low * bytes, static_cast<std::size_t>((high - low + 1) * bytes), element_bytes};
  }
};

/// Marks every element; a contiguous last axis in one stretch.
void mark(simt::Registration& memory, const View& view, simt::Access access) {
  const std::size_t rank = view.extents.size();
  const auto bytes = static_cast<std::int64_t>(view.element_bytes);
  const std::function<void(const std::byte*, std::size_t)> visit = [&](const std::byte* at,
                                                                       std::size_t axis) {
    if (axis == rank) return memory.mark(at, view.element_bytes, access);
    if (axis + 1 == rank && view.strides[axis] == 1)
      return memory.mark(at, static_cast<std::size_t>(view.extents[axis] * bytes), access);
    const std::int64_t count = view.strides[axis] == 0 ? 1 : view.extents[axis];
    for (std::int64_t i = 0; i < count; ++i) visit(at + i * view.strides[axis] * bytes, axis + 1);
  };
  visit(view.data, 0);
}

}  // namespace

simt::Registration register_tensors(std::span<const AccessedTensor> tensors,
                                    std::span<const CapturedTensor> captured) {
  std::vector<std::pair<View, simt::Access>> views;
  for (const AccessedTensor& t : tensors) {
    const auto rank = static_cast<std::size_t>(t.tensor.rank);
    views.push_back({{static_cast<const std::byte*>(t.tensor.data),
                      bytes_of(t.tensor.dtype),
                      {t.tensor.extents.data(), rank},
                      {t.tensor.strides.data(), rank}},
                     t.access});
  }
  for (const CapturedTensor& t : captured)
    views.push_back({{static_cast<const std::byte*>(t.data), t.element_bytes, t.extents, t.strides},
                     simt::Access::input});
  std::erase_if(views, [](const auto& v) { return v.first.empty(); });

  std::vector<simt::MemorySpan> spans;
  for (const auto& [view, access] : views) spans.push_back(view.span());
  simt::Registration memory(std::move(spans));
  for (const auto& [view, access] : views) mark(memory, view, access);
  return memory;
}

}  // namespace attn
