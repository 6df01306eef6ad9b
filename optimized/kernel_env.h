#pragma once

#include <string>

#include "mods/lang/captured.h"
#include "mods/lang/dual.h"
#include "mods/lang/index.h"
#include "optimized/simt/simt.h"

namespace attn {
inline namespace ATTN_TARGET {

/// The environment of a mod or mask inside a kernel: fp32 scores, one lane a thread, captured reads
/// that go through the SIMT layer and so are checked on the CPU engines.
struct KernelEnv {
  using Int = simt::lane<int>;
  using Score = simt::lane<float>;
  Sizes sizes;

  ATTN_DEVICE Score to_score(const Int& i) const { return Score(i); }

  template <int Rank, class T>
  ATTN_DEVICE auto read(const Captured<Rank, T>& c, const Int (&at)[Rank]) const {
    simt::lane<std::int64_t> offset = 0;
    for (int axis = 0; axis < Rank; ++axis) {
      const std::int64_t extent = c.tensor.extents[axis];
      if (extent == 1) continue;  // broadcast
      check_index(at[axis], extent, axis, c.name);
      offset += simt::lane<std::int64_t>(at[axis]) * c.tensor.strides[axis];
    }
    if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>)
      return simt::per_lane([](std::uint16_t bits) { return to_float(T{bits}); },
                            simt::ldg_as<std::uint16_t>(c.tensor.data, offset));
    else if constexpr (std::is_same_v<T, bool>)
      return simt::ldg_as<std::uint8_t>(c.tensor.data, offset) != 0;
    else if constexpr (std::is_same_v<T, double>)
      return Score(simt::ldg(c.tensor.data, offset));
    else
      return simt::ldg(c.tensor.data, offset);
  }

  /// Applies a scalar functor lane by lane.
  template <class F, class... A>
  ATTN_DEVICE static auto each(F f, const A&... a) {
    return simt::per_lane(f, a...);
  }

 private:
  /// On a CPU engine an index outside the tensor is a fault even where it meets other memory of the
  /// same buffer.
  ATTN_DEVICE static void check_index([[maybe_unused]] const Int& index,
                                      [[maybe_unused]] std::int64_t extent,
                                      [[maybe_unused]] int axis,
                                      [[maybe_unused]] const char* name) {
#if !defined(__CUDACC__)
    simt::per_lane(
        [&](int i) {
          if (i < 0 || i >= extent)
            simt::cpu::self->fault(simt::FaultKind::out_of_bounds, {},
                                   "captured read at " + std::to_string(i) + " of axis " +
                                       std::to_string(axis) + " of " + name + ", which has " +
                                       std::to_string(extent) + " entries");
          return i;
        },
        index);
#endif
  }
};

/// KernelEnv for the backward pass: scores are dual numbers. Seeded on the score, a mod gives its
/// derivative to the score; seeded on its r-th floating read, to that entry of a captured tensor.
struct DualKernelEnv {
  using Int = simt::lane<int>;
  using Score = Dual<simt::lane<float>>;
  Sizes sizes;
  int seeded = -1;  ///< the read that carries the tangent; -1: none
  int reads = 0;    ///< floating reads of this call so far
  /// Of the seeded read: the tensor, and the entry in row-major order over its extents.
  const void* data = nullptr;
  int rank = 0;
  std::int64_t extents[4] = {}, strides[4] = {};
  simt::lane<std::int64_t> entry{};

  ATTN_DEVICE Score to_score(const Int& i) const { return Score(simt::lane<float>(i)); }

  template <int Rank, class T>
  ATTN_DEVICE auto read(const Captured<Rank, T>& c, const Int (&at)[Rank]) {
    const auto value = KernelEnv{sizes}.read(c, at);
    if constexpr (!is_floating_storage<T>) {
      return value;
    } else {
      const bool mine = reads++ == seeded;
      if (mine) {
        data = c.tensor.data;
        rank = Rank;
        entry = 0;
        for (int axis = 0; axis < Rank; ++axis) {
          extents[axis] = c.tensor.extents[axis];
          strides[axis] = c.tensor.strides[axis];
          if (extents[axis] != 1)
            entry = entry * extents[axis] + simt::lane<std::int64_t>(at[axis]);
        }
      }
      return Score(simt::lane<float>(value), simt::lane<float>(mine ? 1.0f : 0.0f));
    }
  }
};

}  // namespace ATTN_TARGET
}  // namespace attn
