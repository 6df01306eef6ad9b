#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "mods/lang/index.h"
#include "mods/lang/tensor.h"

namespace attn {

/// A tensor that a mod or mask reads: `slope(h)`, `bias(b, h, q, kv)`. The read is performed by the
/// environment of its indices. A floating `T` (float, half, bfloat16, double) gives a score and has
/// a gradient; `std::int32_t` gives an index; `bool` gives a condition.
///
/// An axis of extent 1 is read at 0 whatever the index (broadcast). The memory stays the caller's.
template <int Rank, class T = float>
struct Captured {
  static_assert(Rank >= 1 && Rank <= 4, "captured tensors have rank 1 to 4");
  TensorView<const T, Rank> tensor;      ///< the caller's memory
  const char* name = "captured tensor";  ///< for messages

  Captured() = default;
  Captured(TensorView<const T, Rank> view, const char* called = "captured tensor")
      : tensor(view), name(called) {}
  Captured(TensorView<T, Rank> view,
           const char* called = "captured tensor") requires(!std::same_as<T, const T>)
      : tensor(view), name(called) {}
  Captured(const Tensor<T, Rank>& owner,
           const char* called = "captured tensor") requires(!std::same_as<T, bool>)
      : tensor(owner.view()), name(called) {}
  Captured(Tensor<T, Rank>&&, const char* = "") = delete;  // it would dangle

  /// One index (or integer) an axis, at least one of them an index.
  template <class... I>
  ATTN_INLINE auto operator()(const I&... index) const {
    static_assert(sizeof...(I) == Rank, "one index an axis");
    static_assert((is_index<I> || ...), "at least one index must be an attn::Index");
    auto* env = environment_of(index...);
    using Env = std::remove_pointer_t<decltype(env)>;
    const typename Env::Int at[Rank] = {value_of<typename Env::Int>(index)...};
    if constexpr (std::same_as<T, std::int32_t>)
      return Index<Env>{env->read(*this, at), env};
    else
      return env->read(*this, at);
  }

 private:
  template <class First, class... Rest>
  ATTN_INLINE static auto* environment_of(const First& first, const Rest&... rest) {
    if constexpr (is_index<First>)
      return first.env;
    else
      return environment_of(rest...);
  }
  template <class Int, class I>
  ATTN_INLINE static Int value_of(const I& index) {
    if constexpr (is_index<I>)
      return index.value;
    else
      return Int(static_cast<std::int32_t>(index));
  }
};

/// True for the types of captured tensors that give a score and have a gradient.
template <class T>
inline constexpr bool is_floating_storage = std::is_same_v<T, float> || std::is_same_v<T, double> ||
                                            std::is_same_v<T, half> || std::is_same_v<T, bfloat16>;

/// The value of one stored entry as the scalar type `Score`.
template <class Score, class T>
ATTN_INLINE Score stored_score(const T& entry) {
  if constexpr (std::is_same_v<T, double> || std::is_same_v<T, float>)
    return static_cast<Score>(entry);
  else
    return static_cast<Score>(to_float(entry));
}

/// The offset of an entry, in elements.
/// @throws std::invalid_argument if an index is outside its axis (an axis of extent 1 broadcasts).
template <int Rank, class T>
std::int64_t checked_offset(const Captured<Rank, T>& c, const int (&at)[Rank]) {
  std::int64_t offset = 0;
  for (int axis = 0; axis < Rank; ++axis) {
    const std::int64_t extent = c.tensor.extents[axis];
    if (extent == 1) continue;
    if (at[axis] < 0 || at[axis] >= extent)
      throw std::invalid_argument(std::string(c.name) + ": index " + std::to_string(at[axis]) +
                                  " in axis " + std::to_string(axis) + " of shape " +
                                  shape_string(c.tensor.extents) + ", expected 0 to " +
                                  std::to_string(extent - 1));
    offset += at[axis] * c.tensor.strides[axis];
  }
  return offset;
}

}  // namespace attn
