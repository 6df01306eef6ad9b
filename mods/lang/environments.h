#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "mods/lang/captured.h"
#include "mods/lang/dual.h"
#include "mods/lang/index.h"
#include "mods/lang/range.h"
#include "mods/lang/range_tables.h"
#include "mods/lang/rounded.h"

/// The host environments: what an `Index<Env>` may be bound to on the CPU.
namespace attn {

/// The exact environment of the reference: fp64 scores, 32-bit indices, every read checked.
struct ExactEnv {
  using Int = int;       ///< what an index holds
  using Score = double;  ///< what a score is
  Sizes sizes;           ///< as functors ask for them
  /// An index as a score.
  double to_score(int i) const { return i; }
  template <int Rank, class T>
  auto read(const Captured<Rank, T>& c, const int (&at)[Rank]) const {  /// throws outside of it
    const T& entry = c.tensor.data[checked_offset(c, at)];
    if constexpr (is_floating_storage<T>)
      return stored_score<double>(entry);
    else
      return entry;
  }
  /// Scalar functors run as they are.
  template <class F, class... A>
  static auto each(F f, const A&... a) {
    return f(a...);
  }
};

/// One captured tensor, its element type erased.
struct CapturedTensor {
  const void* data = nullptr;                  ///< the first element, at indices 0
  DType dtype = DType::f32;                    ///< of floating tensors
  std::size_t element_bytes = 0;               ///< 1 a condition, 4 an index
  std::vector<std::int64_t> extents, strides;  ///< one an axis; strides in elements
  const char* name = "";                       ///< for messages
};

/// Differentiates a mod: to the score when the score is seeded, or to the `seeded`-th captured
/// entry that the mod reads (counting from 0; -1: none). `reads` counts the floating reads of one
/// call. `Number` is `double` in the reference and `Rounded` in the oracle.
template <class Number>
struct BasicDualEnv {
  using Int = int;                    ///< what an index holds
  using Score = Dual<Number>;         ///< what a score is
  Sizes sizes;                        ///< as functors ask for them
  int seeded = -1;                    ///< the read whose entry has derivative 1
  int reads = 0;                      ///< so far; set it to 0 before a call
  const void* seeded_data = nullptr;  ///< the tensor of the seeded read,
  std::array<std::int64_t, 4> seeded_extents{}, seeded_strides{};  ///< its shape, zeros after that
  std::int64_t seeded_offset = 0;                                  ///< and the entry's offset in it
  /// An index as a score: its derivative is 0.
  Score to_score(int i) const { return Score(Number(i)); }
  template <int Rank, class T>
  auto read(const Captured<Rank, T>& c, const int (&at)[Rank]) {  /// throws outside of it
    const std::int64_t offset = checked_offset(c, at);
    if constexpr (is_floating_storage<T>) {
      const bool mine = reads++ == seeded;
      if (mine) {
        seeded_data = c.tensor.data;
        seeded_extents = seeded_strides = {};
        std::copy_n(c.tensor.extents.begin(), Rank, seeded_extents.begin());
        std::copy_n(c.tensor.strides.begin(), Rank, seeded_strides.begin());
        seeded_offset = offset;
      }
      return Score(Number(stored_score<double>(c.tensor.data[offset])), Number(mine ? 1 : 0));
    } else {
      return c.tensor.data[offset];
    }
  }
};
/// The environment of the reference's backward pass.
using DualEnv = BasicDualEnv<double>;

/// Bounds the rounding of a mod: the score comes in with an error and leaves with one.
struct RoundedEnv {
  using Int = int;        ///< what an index holds
  using Score = Rounded;  ///< what a score is
  Sizes sizes;            ///< as functors ask for them
  /// An index as a score, which fp32 may hold rounded.
  Rounded to_score(int i) const { return Rounded(static_cast<double>(i)); }
  template <int Rank, class T>
  auto read(const Captured<Rank, T>& c, const int (&at)[Rank]) const {  /// throws outside of it
    const T& entry = c.tensor.data[checked_offset(c, at)];
    if constexpr (is_floating_storage<T>)
      return Rounded(stored_score<double>(entry));
    else
      return entry;
  }
};

/// Asks about whole boxes of indices at once. A captured read answers with the least and greatest
/// entry of the part that the indices may reach.
struct RangeEnv {
  using Int = Range<std::int64_t>;  ///< what an index holds
  using Score = Range<double>;      ///< what a score is
  Sizes sizes;                      ///< as functors ask for them
  /// Where many boxes are asked about: captured entries are then looked at once, not each time.
  RangeTables* tables = nullptr;
  /// Set by a read that may reach an index outside the tensor. Such indices are left out of the
  /// answer: reading one is an error that the element-wise run reports.
  bool may_read_outside = false;
  /// An index as a score.
  Score to_score(const Int& i) const {
    return Score(static_cast<double>(i.low), static_cast<double>(i.high));
  }
  template <int Rank, class T>
  auto read(const Captured<Rank, T>& c, const Int (&at)[Rank]) {  /// the least and the greatest
    std::int64_t first[Rank], last[Rank];
    bool none = false, one = true;
    std::int64_t offset = 0;
    for (int axis = 0; axis < Rank; ++axis) {
      const std::int64_t extent = c.tensor.extents[axis];
      first[axis] = last[axis] = 0;
      if (extent == 1) continue;
      first[axis] = std::max<std::int64_t>(at[axis].low, 0);
      last[axis] = std::min<std::int64_t>(at[axis].high, extent - 1);
      may_read_outside |= first[axis] != at[axis].low || last[axis] != at[axis].high;
      none |= first[axis] > last[axis];
      one &= first[axis] == last[axis];
      offset += first[axis] * c.tensor.strides[axis];
    }
    Extremes<T> seen;
    if (one)
      seen.add(c.tensor.data[offset]);
    else if (!none)
      seen = tables ? tables->box(c.tensor, first, last) : extremes_of_box(c.tensor, first, last);
    return answer(seen);
  }
  /// A plain mask runs on single elements only: of a larger box nothing is known.
  template <class F, class... A>
  requires std::same_as<bool, std::invoke_result_t<F, std::conditional_t<true, int, A>...>>
  static Maybe each(F f, const A&... a) {
    if ((Int(a).single() && ...)) return f(static_cast<int>(Int(a).low)...);
    return {true, true};
  }

 private:
  template <class T>
  static auto answer(const Extremes<T>& seen) {
    if constexpr (std::is_same_v<T, bool>)
      return seen.none() ? Maybe(true, true) : Maybe(seen.high, !seen.low);
    else if constexpr (std::is_same_v<T, std::int32_t>)
      return seen.none() ? Int(Extremes<T>::least, Extremes<T>::greatest)
                         : Int(seen.low, seen.high);
    else
      return seen.none() ? Score(-infinity, infinity) : Score(seen.low, seen.high);
  }
};

/// Reads nothing and lists the captured tensors that a mod or mask reads, in order of first read.
/// Functors do not branch on values, so one call meets every read.
struct TraceEnv {
  using Int = int;                      ///< what an index holds
  using Score = double;                 ///< what a score is
  Sizes sizes;                          ///< as functors ask for them
  std::vector<CapturedTensor> tensors;  ///< floating: these have a gradient
  std::vector<CapturedTensor> tables;   ///< of indices and conditions
  /// An index as a score.
  double to_score(int i) const { return i; }
  template <int Rank, class T>
  auto read(const Captured<Rank, T>& c, const int (&)[Rank]) {  /// notes the tensor; gives 0, or 1
    auto& list = is_floating_storage<T> ? tensors : tables;
    const CapturedTensor tensor{c.tensor.data,
                                dtype_of<T>,
                                sizeof(T),
                                {c.tensor.extents.begin(), c.tensor.extents.end()},
                                {c.tensor.strides.begin(), c.tensor.strides.end()},
                                c.name};
    // Two views of one memory are two tensors: each has a gradient of its own shape.
    const bool known = std::any_of(list.begin(), list.end(), [&](const CapturedTensor& t) {
      return t.data == tensor.data && t.extents == tensor.extents && t.strides == tensor.strides;
    });
    if (!known) list.push_back(tensor);
    if constexpr (is_floating_storage<T>)
      return 0.0;
    else
      return T(1);  // which may stand as a divisor
  }
};

}  // namespace attn
