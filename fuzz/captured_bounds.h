#pragma once

#include <string>
#include <vector>

#include "fuzz/score_bounds.h"

namespace attn::fuzz {

/// The gradient of one captured tensor with bounds, row-major over its extents.
struct BoundedVector {
  std::vector<double> value, bound;  ///< one number an entry, 0 where no attended pair reads it
  std::string name;                  ///< of the tensor, for reports
};

/// What one pair adds to the gradient of an entry that its mod reads.
struct Contribution {
  double value;        ///< dT * (d mod / d entry)
  double error;        ///< of this pair alone
  double delta_shift;  ///< signed: what storing O moves it by, through delta
};

/// Sums of contributions, one for each entry of each captured tensor. A kernel adds them as whole
/// multiples of a power of two that is at most 2^-61 of (the largest of them) * (their number),
/// each rounded up to a power of two, so that no order of additions shows; then it rounds to fp32.
class CapturedBounds {
 public:
  /// @throws std::invalid_argument if entries of one tensor share memory.
  explicit CapturedBounds(const std::vector<CapturedTensor>& tensors);
  bool empty() const { return tensors_.empty(); }  ///< true if the mod reads no floating tensor
  /// Adds `c` to the entry that `read` names.
  void add(const CapturedSlope& read, const Contribution& c);
  /// Any value is right, NaN where `nan`.
  void spoil(const CapturedSlope& read, bool nan);
  std::vector<BoundedVector> result() const;  ///< of all tensors, in the order they were given

 private:
  struct Entry {
    double value = 0, error = 0, shift = 0, largest = 0, count = 0;
    bool nan = false;
  };
  struct Sums {
    CapturedTensor tensor;
    std::int64_t lowest;     ///< the offset that place[0] is for
    std::vector<int> place;  ///< of an offset: the entry, row-major; -1 between entries
    std::vector<Entry> entries;
  };
  Entry& at(const CapturedSlope& read);
  std::vector<Sums> tensors_;
};

}  // namespace attn::fuzz
