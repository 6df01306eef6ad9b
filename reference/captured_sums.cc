#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "reference/backward.h"

namespace attn::reference {

CapturedSums::CapturedSums(std::vector<CapturedTensor> tensors) {
  for (CapturedTensor& tensor : tensors) {
    if (shares_memory_with_itself(tensor.extents, tensor.strides))
      throw std::invalid_argument(std::string(tensor.name) +
                                  ": entries that share memory, expected an address for each to "
                                  "give it a gradient (an axis of extent 1 broadcasts)");
    std::int64_t lowest = 0, highest = 0;
    for (std::size_t axis = 0; axis < tensor.extents.size(); ++axis) {
      const std::int64_t reach =
          std::max<std::int64_t>(tensor.extents[axis] - 1, 0) * tensor.strides[axis];
      (reach < 0 ? lowest : highest) += reach;
    }
    sums_.push_back({std::move(tensor), lowest, std::vector<double>(highest - lowest + 1)});
  }
}

void CapturedSums::add(const DualEnv& env, double x) {
  const auto same = [](const std::vector<std::int64_t>& a, const std::array<std::int64_t, 4>& b) {
    return std::equal(a.begin(), a.end(), b.begin());
  };
  const auto found = std::find_if(sums_.begin(), sums_.end(), [&](const Sums& sums) {
    const CapturedTensor& t = sums.tensor;
    return t.data == env.seeded_data && same(t.extents, env.seeded_extents) &&
           same(t.strides, env.seeded_strides);
  });
  if (found == sums_.end())
    throw std::invalid_argument(
        "score mod: reads a captured tensor at some pairs only, expected the same reads at all");
  found->values[env.seeded_offset - found->lowest] += x;
}

std::vector<CapturedGradient> CapturedSums::gradients() const {
  std::vector<CapturedGradient> dense;
  for (const Sums& from : sums_) {
    CapturedGradient gradient{from.tensor, {}};
    const auto gather = [&](const auto& self, std::size_t axis, std::int64_t offset) -> void {
      if (axis == from.tensor.extents.size())
        return gradient.values.push_back(from.values[offset - from.lowest]);
      for (std::int64_t i = 0; i < from.tensor.extents[axis]; ++i)
        self(self, axis + 1, offset + i * from.tensor.strides[axis]);
    };
    gather(gather, 0, 0);
    dense.push_back(std::move(gradient));
  }
  return dense;
}

}  // namespace attn::reference
