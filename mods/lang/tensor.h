#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "mods/lang/host_device.h"

namespace attn {

/// A strided view of memory that somebody else owns. Extents and strides count elements; strides
/// are 64-bit and may be zero (an expanded axis) or negative.
template <class T, int Rank>
struct TensorView {
  T* data = nullptr;                         ///< the element at indices 0; null: no tensor
  std::array<std::int64_t, Rank> extents{};  ///< elements along each axis
  std::array<std::int64_t, Rank> strides{};  ///< elements from one to the next
  /// From `data` to the element at these indices, in elements. Nothing is checked.
  template <class... I>
  ATTN_INLINE std::int64_t offset(I... index) const {
    static_assert(sizeof...(I) == Rank, "one index an axis");
    const std::int64_t at[] = {static_cast<std::int64_t>(index)...};
    std::int64_t sum = 0;
    for (int axis = 0; axis < Rank; ++axis) sum += at[axis] * strides[axis];
    return sum;
  }
  template <class... I>
  ATTN_INLINE T& operator()(I... index) const {
    return data[offset(index...)];
  }
  std::int64_t size() const {  /// elements
    std::int64_t n = 1;
    for (std::int64_t e : extents) n *= e;
    return n;
  }
  operator TensorView<const T, Rank>() const
    requires(!std::is_const_v<T>)
  {
    return {data, extents, strides};
  }
};

/// Row-major strides: the last axis is contiguous.
template <std::size_t Rank>
constexpr std::array<std::int64_t, Rank> contiguous_strides(
    const std::array<std::int64_t, Rank>& extents) {
  std::array<std::int64_t, Rank> strides{};
  std::int64_t step = 1;
  for (std::size_t axis = Rank; axis-- > 0; step *= extents[axis]) strides[axis] = step;
  return strides;
}

/// "[2, 4, 128, 64]", for messages.
template <std::size_t Rank>
std::string shape_string(const std::array<std::int64_t, Rank>& extents) {
  std::string text = "[";
  for (std::size_t axis = 0; axis < Rank; ++axis)
    text += (axis ? ", " : "") + std::to_string(extents[axis]);
  return text + "]";
}

/// An owning, contiguous, zero-initialised tensor; copies share nothing.
template <class T, int Rank>
class Tensor {
 public:
  Tensor() = default;
  /// @throws std::invalid_argument if an extent is negative.
  explicit Tensor(std::array<std::int64_t, Rank> extents) : extents_(extents) {
    static_assert(!std::is_same_v<T, bool>, "std::vector<bool> has no storage to point at");
    for (std::int64_t e : extents)
      if (e < 0)
        throw std::invalid_argument("extents: " + shape_string(extents) +
                                    ", expected none below zero");
    values_.resize(static_cast<std::size_t>(view().size()));
  }
  TensorView<T, Rank> view() {  /// of its memory, which it keeps
    return {values_.data(), extents_, contiguous_strides(extents_)};
  }
  TensorView<const T, Rank> view() const {  /// the same, to read
    return {values_.data(), extents_, contiguous_strides(extents_)};
  }
  template <class... I>
  T& operator()(I... index) {
    return view()(index...);
  }
  template <class... I>
  const T& operator()(I... index) const {
    return view()(index...);
  }
  const std::array<std::int64_t, Rank>& extents() const { return extents_; }  ///< of each axis
  std::vector<T>& values() { return values_; }                                ///< row-major
  const std::vector<T>& values() const { return values_; }                    ///< row-major

 private:
  std::array<std::int64_t, Rank> extents_{};
  std::vector<T> values_;
};

}  // namespace attn
