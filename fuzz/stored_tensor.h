#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "fuzz/case.h"
#include "mods/lang/tensor.h"
#include "reference/problem.h"

namespace attn::fuzz {

/// A tensor laid out in poisoned memory: every byte that no element owns is 0xff, a NaN in each
/// floating type, with a guard zone before and behind.
class StoredTensor {
 public:
  using Shape = std::array<std::int64_t, 4>;
  StoredTensor() = default;
  /// `strides` in elements, none negative; `first` is the offset of the first element.
  StoredTensor(const char* name, DType dtype, const Shape& extents, const Shape& strides,
               std::int64_t first = 0);

  /// Writes `values`, contiguous and representable in the dtype.
  void store(const Tensor<double, 4>& values);
  Tensor<double, 4> load() const;
  /// The element of the lowest address that is not owned and no longer poison, counted from the
  /// first element of the view, so that it may be negative; nothing if all are.
  std::optional<std::int64_t> trespass() const;
  const TensorInfo& info() const { return info_; }
  /// A view of rank 3, without the last axis.
  TensorInfo rows() const;
  /// Another tensor in the memory of this one: see Layout::fused.
  StoredTensor part(const char* name, const Shape& extents, std::int64_t first) const;

 private:
  std::byte* element(std::int64_t offset) const;
  template <class F>
  void for_each(F f) const;

  TensorInfo info_;
  std::int64_t first_ = 0;
  std::shared_ptr<std::vector<std::byte>> memory_;
};

/// Q, K, V, O and LSE of one case, as its layout says.
struct StoredForward {
  StoredTensor q, k, v, o, lse;  // lse is [B, Hq, Sq, 1]
  explicit StoredForward(const Case& c);
};

}  // namespace attn::fuzz
