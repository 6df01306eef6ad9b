#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "mods/lang/tensor.h"
#include "reference/problem.h"

namespace attn::fuzz {

/// Where a row of a logical tensor [B, H, S, X] lies: the indices of the first and third axis.
struct RowPlace {
  std::int64_t entry, row;  ///< of the stored tensor
};
/// Of each row of each sequence: [B][rows of the sequence].
using RowPlaces = std::vector<std::vector<RowPlace>>;

/// A tensor laid out in poisoned memory: every byte that no element owns is 0xff, a NaN in each
/// floating type, with a guard zone before and behind.
class StoredTensor {
 public:
  using Shape = std::array<std::int64_t, 4>;  ///< extents or strides, in elements
  StoredTensor() = default;
  /// `strides` in elements, none negative; `first` is the offset of the first element.
  StoredTensor(const char* name, DType dtype, const Shape& extents, const Shape& strides,
               std::int64_t first = 0);
  /// Memory of that shape which nobody owns yet; see `part`.
  static StoredTensor buffer(DType dtype, const Shape& extents, const Shape& strides);
  /// A tensor in the memory of this one, beside others: rows side by side.
  StoredTensor part(const char* name, const Shape& extents, std::int64_t first) const;

  /// Writes `values`, representable in the dtype: all of them, or the rows that have a place.
  void store(const Tensor<double, 4>& values);
  /// Only the rows that have a place.
  void store(const Tensor<double, 4>& values, const RowPlaces& places);
  Tensor<double, 4> load() const;  ///< all of it, as it lies
  /// The logical tensor of these extents; rows without a place are 0.
  Tensor<double, 4> load(const Shape& extents, const RowPlaces& places) const;
  /// The element of the lowest address that no tensor in this memory owns and that is no longer
  /// poison, counted from the first element of the view, so that it may be negative; nothing if all
  /// are poison.
  std::optional<std::int64_t> trespass() const;
  /// As calls of kernels take it: data, type, extents and strides in elements.
  const TensorInfo& info() const { return info_; }
  /// A view of rank 3, without the last axis.
  TensorInfo rows() const;

 private:
  std::byte* element(std::int64_t offset) const;
  std::byte* row(std::int64_t b, std::int64_t h, std::int64_t r) const;
  std::int64_t row_step() const;  ///< bytes from one element of a row to the next
  void own_elements();
  void put_row(std::byte* at, const double* x, std::int64_t count) const;
  void get_row(const std::byte* at, double* x, std::int64_t count) const;
  template <class F>
  void for_each_row(F f) const;

  TensorInfo info_;
  std::int64_t first_ = 0;
  struct Memory {
    std::vector<std::byte> bytes;
    std::vector<std::byte> owned;  ///< 0xff: by an element of a tensor; else 0
  };
  std::shared_ptr<Memory> memory_;
};

/// [B, H, S] as [B, H, S, 1].
Tensor<double, 4> with_one_channel(const Tensor<double, 3>& x);

}  // namespace attn::fuzz
