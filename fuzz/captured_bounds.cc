#include "fuzz/captured_bounds.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "reference/problem.h"

namespace attn::fuzz {
namespace {

/// Half of what a kernel counts in, for `count` numbers of at most `largest`.
double half_step(double largest, double count) {
  if (largest == 0) return 0;
  const double shift = std::ceil(std::log2(largest)) + std::ceil(std::log2(count)) - 62;
  return std::exp2(shift);
}

}  // namespace

CapturedBounds::CapturedBounds(const std::vector<CapturedTensor>& tensors) {
  for (const CapturedTensor& tensor : tensors) {
    if (shares_memory_with_itself(tensor.extents, tensor.strides))
      throw std::invalid_argument(std::string(tensor.name) +
                                  ": entries that share memory, expected an address for each");
    std::int64_t lowest = 0, highest = 0;
    for (std::size_t axis = 0; axis < tensor.extents.size(); ++axis) {
      const std::int64_t reach =
          std::max<std::int64_t>(tensor.extents[axis] - 1, 0) * tensor.strides[axis];
      (reach < 0 ? lowest : highest) += reach;
    }
    Sums sums{tensor, lowest, std::vector<int>(highest - lowest + 1, -1), {}};
    const auto enter = [&](const auto& self, std::size_t axis, std::int64_t offset) -> void {
      if (axis == tensor.extents.size()) {
        sums.place[offset - lowest] = static_cast<int>(sums.entries.size());
        sums.entries.emplace_back();
        return;
      }
      for (std::int64_t i = 0; i < tensor.extents[axis]; ++i)
        self(self, axis + 1, offset + i * tensor.strides[axis]);
    };
    enter(enter, 0, 0);
    tensors_.push_back(std::move(sums));
  }
}

CapturedBounds::Entry& CapturedBounds::at(const CapturedSlope& read) {
  for (Sums& sums : tensors_) {
    const CapturedTensor& t = sums.tensor;
    if (t.data == read.data &&
        std::equal(t.extents.begin(), t.extents.end(), read.extents.begin()) &&
        std::equal(t.strides.begin(), t.strides.end(), read.strides.begin()))
      return sums.entries[sums.place[read.offset - sums.lowest]];
  }
  throw std::invalid_argument(
      "score mod: reads a captured tensor at some pairs only, expected the same reads at all");
}

void CapturedBounds::add(const CapturedSlope& read, const Contribution& c) {
  Entry& entry = at(read);
  entry.value += c.value;
  entry.error += c.error;
  entry.shift += c.delta_shift;
  entry.largest = std::max(entry.largest, std::abs(c.value) + c.error + std::abs(c.delta_shift));
  ++entry.count;
}

void CapturedBounds::spoil(const CapturedSlope& read, bool nan) {
  Entry& entry = at(read);
  entry.nan |= nan;
  entry.error = unbounded;
}

std::vector<BoundedVector> CapturedBounds::result() const {
  std::vector<BoundedVector> all;
  for (const Sums& sums : tensors_) {
    BoundedVector v;
    v.name = sums.tensor.name;
    for (const Entry& entry : sums.entries) {
      const double inner = entry.error + std::abs(entry.shift) +
                           entry.count * half_step(entry.largest, std::max(entry.count, 1.0));
      v.value.push_back(entry.nan ? std::numeric_limits<double>::quiet_NaN() : entry.value);
      v.bound.push_back(entry.nan              ? 0
                        : std::isfinite(inner) ? stored_bound(DType::f32, entry.value, inner)
                                               : unbounded);
    }
    all.push_back(std::move(v));
  }
  return all;
}

}  // namespace attn::fuzz
