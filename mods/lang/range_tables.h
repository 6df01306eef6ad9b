#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <type_traits>
#include <vector>

#include "mods/lang/captured.h"
#include "mods/lang/tensor.h"

/// How a captured tensor answers for a whole box of indices: by its least and greatest entry.
namespace attn {

/// The least and greatest of some entries of type T; of none, `low` is above `high`. A NaN among
/// them makes it everything, -inf to inf.
template <class T>
struct Extremes {
  static constexpr bool real = is_floating_storage<T>;  ///< else an index or a condition
  using Value = std::conditional_t<                     ///< half and bfloat16 as float
      std::is_same_v<T, double>, double,
      std::conditional_t<real, float, std::conditional_t<std::is_same_v<T, bool>, bool, T>>>;
  static constexpr Value least =  ///< below every entry
      real ? -std::numeric_limits<Value>::infinity() : std::numeric_limits<Value>::lowest();
  static constexpr Value greatest =  ///< above every entry
      real ? std::numeric_limits<Value>::infinity() : std::numeric_limits<Value>::max();

  Value low = greatest;  ///< of the entries so far
  Value high = least;    ///< of the entries so far

  bool none() const { return low > high; }  ///< no entry was added
  void add(const T& entry) {                /// one entry
    if constexpr (real) {
      const Value x = stored_score<Value>(entry);
      add(std::isnan(x) ? Extremes{least, greatest} : Extremes{x, x});
    } else {
      add(Extremes{entry, entry});
    }
  }
  void add(const Extremes& other) {  /// all entries of another
    low = std::min(low, other.low);
    high = std::max(high, other.high);
  }
  /// `count` entries, `stride` elements apart.
  void add(const T* entry, std::int64_t stride, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) add(entry[i * stride]);
  }
};

/// The entries from `first[axis]` to `last[axis]` of each axis, both included: looks at each one.
template <class T, int Rank>
Extremes<T> extremes_of_box(const TensorView<const T, Rank>& tensor,
                            const std::int64_t (&first)[Rank], const std::int64_t (&last)[Rank]) {
  Extremes<T> seen;
  std::int64_t at[Rank];
  std::copy_n(first, Rank, at);
  for (bool more = true; more;) {  // `at` runs through all axes but the last like an odometer
    std::int64_t offset = 0;
    for (int axis = 0; axis < Rank; ++axis) offset += at[axis] * tensor.strides[axis];
    seen.add(tensor.data + offset, tensor.strides[Rank - 1], last[Rank - 1] - first[Rank - 1] + 1);
    more = false;
    for (int axis = Rank - 2; axis >= 0 && !more; --axis) {
      more = at[axis] < last[axis];
      at[axis] = more ? at[axis] + 1 : first[axis];
    }
  }
  return seen;
}

/// Extremes of a line of entries, kept for chunks of 32 and, as a binary tree, for runs of chunks:
/// one pass to build, 1/8 of the line's memory, and a question costs a logarithm.
template <class T>
class ExtremesTree {
 public:
  static constexpr std::int64_t chunk = 32;  ///< entries of a leaf

  ExtremesTree() = default;
  ExtremesTree(const T* data, std::int64_t stride, std::int64_t count)
      : data_(data),
        stride_(stride),
        count_(count),
        chunks_((count + chunk - 1) / chunk),
        nodes_(static_cast<std::size_t>(2 * chunks_)) {
    for (std::int64_t c = 0; c < chunks_; ++c)  // leaf c is node chunks_ + c
      node(chunks_ + c).add(data + c * chunk * stride, stride, std::min(chunk, count - c * chunk));
    for (std::int64_t n = chunks_ - 1; n >= 1; --n) {  // node n stands above 2n and 2n + 1
      node(n) = node(2 * n);
      node(n).add(node(2 * n + 1));
    }
  }
  bool built() const { return data_ != nullptr; }  ///< false of the default one, which has no line

  /// Entries first to last, both included.
  void add_to(Extremes<T>& seen, std::int64_t first, std::int64_t last) const {
    std::int64_t from = (first + chunk - 1) / chunk;
    std::int64_t to = last + 1 == count_ ? chunks_ : (last + 1) / chunk;  // one past the end
    if (from >= to) return seen.add(data_ + first * stride_, stride_, last - first + 1);
    seen.add(data_ + first * stride_, stride_, from * chunk - first);
    seen.add(data_ + to * chunk * stride_, stride_, last + 1 - to * chunk);
    for (from += chunks_, to += chunks_; from < to; from /= 2, to /= 2) {
      if (from % 2 == 1) seen.add(node(from++));
      if (to % 2 == 1) seen.add(node(--to));
    }
  }

 private:
  Extremes<T>& node(std::int64_t n) { return nodes_[static_cast<std::size_t>(n)]; }
  const Extremes<T>& node(std::int64_t n) const { return nodes_[static_cast<std::size_t>(n)]; }

  const T* data_ = nullptr;
  std::int64_t stride_ = 0, count_ = 0, chunks_ = 0;
  std::vector<Extremes<T>> nodes_;
};

/// Answers for boxes of captured tensors without looking at each entry again. Trees are built along
/// the longest axis of a tensor, a line when it is first asked about. Entries must not change while
/// this lives; not for use by several threads at once.
class RangeTables {
 public:
  /// As `extremes_of_box`.
  template <class T, int Rank>
  Extremes<T> box(const TensorView<const T, Rank>& tensor, const std::int64_t (&first)[Rank],
                  const std::int64_t (&last)[Rank]) {
    return lines_of(tensor).box(first, last);
  }

 private:
  /// Its address stands for an element type and a rank.
  template <class T, int Rank>
  static constexpr char kind = 0;

  struct Lines {
    const void* data;
    const char* kind;

    Lines(const void* at, const char* of) : data(at), kind(of) {}
    virtual ~Lines() = default;
  };
  template <class T, int Rank>
  struct LinesOf : Lines {
    TensorView<const T, Rank> tensor;

    explicit LinesOf(const TensorView<const T, Rank>& view)
        : Lines(view.data, &RangeTables::kind<T, Rank>),
          tensor(view),
          along_(longest_axis(view.extents)),
          trees_(static_cast<std::size_t>(view.size() / view.extents[along_])) {
      std::int64_t step = 1;
      for (int axis = Rank - 1; axis >= 0; --axis) {
        number_step_[axis] = axis == along_ ? 0 : step;
        if (axis != along_) step *= view.extents[axis];
      }
    }

    Extremes<T> box(const std::int64_t (&first)[Rank], const std::int64_t (&last)[Rank]) {
      bool one_line = true;
      for (int axis = 0; axis < Rank; ++axis)
        one_line &= axis == along_ || first[axis] == last[axis];
      if (one_line) return of_line(first, first[along_], last[along_]);
      Extremes<T> seen;
      std::int64_t at[Rank];
      std::copy_n(first, Rank, at);
      for (bool more = true; more;) {  // `at` runs through the other axes like an odometer
        seen.add(of_line(at, first[along_], last[along_]));
        more = false;
        for (int axis = Rank - 1; axis >= 0 && !more; --axis) {
          if (axis == along_) continue;
          more = at[axis] < last[axis];
          at[axis] = more ? at[axis] + 1 : first[axis];
        }
      }
      return seen;
    }

   private:
    /// Neighbouring boxes share their sides, so that most questions come again soon.
    struct Answer {
      std::int64_t line = -1, first = 0, last = 0;
      Extremes<T> extremes;
    };

    /// The line through `at`, from `first` to `last`.
    const Extremes<T>& of_line(const std::int64_t (&at)[Rank], std::int64_t first,
                               std::int64_t last) {
      std::int64_t line = 0;
      for (int axis = 0; axis < Rank; ++axis) line += at[axis] * number_step_[axis];
      const auto mixed = static_cast<std::uint64_t>(line + 31 * first + 17 * last);
      Answer& a = recent_[mixed * 0x9e3779b97f4a7c15u >> 56];  // Fibonacci hashing to 8 bits
      if (a.line == line && a.first == first && a.last == last) return a.extremes;
      ExtremesTree<T>& tree = trees_[static_cast<std::size_t>(line)];
      if (!tree.built()) {
        const T* start = tensor.data;
        for (int axis = 0; axis < Rank; ++axis)
          if (axis != along_) start += at[axis] * tensor.strides[axis];
        tree = ExtremesTree<T>(start, tensor.strides[along_], tensor.extents[along_]);
      }
      a = {line, first, last, {}};
      tree.add_to(a.extremes, first, last);
      return a.extremes;
    }

    int along_;                           // the axis of the trees
    std::int64_t number_step_[Rank];      // lines are numbered by their other indices, row-major
    std::vector<ExtremesTree<T>> trees_;  // one a line
    std::array<Answer, 256> recent_;
  };

  /// Of equal ones the last, which lies densest in memory.
  template <std::size_t Rank>
  static int longest_axis(const std::array<std::int64_t, Rank>& extents) {
    int longest = 0;
    for (int axis = 1; axis < static_cast<int>(Rank); ++axis)
      if (extents[axis] >= extents[longest]) longest = axis;
    return longest;
  }

  template <class T, int Rank>
  LinesOf<T, Rank>& lines_of(const TensorView<const T, Rank>& tensor) {
    for (const auto& known : tensors_) {
      if (known->data != tensor.data || known->kind != &kind<T, Rank>) continue;
      auto& lines = static_cast<LinesOf<T, Rank>&>(*known);
      bool same = true;
      for (int axis = 0; axis < Rank; ++axis)
        same = same && lines.tensor.extents[axis] == tensor.extents[axis] &&
               lines.tensor.strides[axis] == tensor.strides[axis];
      if (same) return lines;
    }
    tensors_.push_back(std::make_unique<LinesOf<T, Rank>>(tensor));
    return static_cast<LinesOf<T, Rank>&>(*tensors_.back());
  }

  std::vector<std::unique_ptr<Lines>> tensors_;
};

}  // namespace attn
