#include "optimized/simt/cpu_shadow.h"

#include <algorithm>

namespace attn::simt::cpu {

void SharedShadow::resize(std::size_t bytes, int warps) {
  // What is left in the arrays from other shapes is older than any block to come: no need to clear.
  cells_ = (bytes / 2 + 8) & ~std::size_t{7};
  warps_ = warps;
  if (state_.size() < cells_) {
    state_.resize(cells_);
    writes_.resize(cells_);
    writes_at_.resize(cells_);
  }
  if (reads_.size() < cells_ * static_cast<std::size_t>(warps)) reads_.resize(cells_ * warps);
}

void SharedShadow::begin_block() {
  std::fill_n(state_.begin(), cells_, kUnwritten);
  std::uint32_t past = *std::max_element(segment_, segment_ + kMaxWarps);
  if (past > kLastSegment / 2) {
    std::fill(writes_.begin(), writes_.end(), 0);
    std::fill(reads_.begin(), reads_.end(), 0);
    past = 0;
  }
  for (int w = 0; w < kMaxWarps; ++w) {
    segment_[w] = past + 1;
    for (int u = 0; u < kMaxWarps; ++u) visible_[w][u] = past;
  }
}

void SharedShadow::forget() {
  std::fill(writes_.begin(), writes_.end(), 0);
  std::fill(reads_.begin(), reads_.end(), 0);
  for (int w = 0; w < kMaxWarps; ++w) {
    segment_[w] = 1;
    for (int u = 0; u < kMaxWarps; ++u) visible_[w][u] = 0;
  }
  ++generation_;
}

bool SharedShadow::each_write_before(const std::uint32_t* writes, int n, Who who) const {
  return std::all_of(writes, writes + n, [&](std::uint32_t w) { return write_before(w, who); });
}

bool SharedShadow::each_read_before(const std::uint32_t* reads, int n, int reader, Who who) const {
  return std::all_of(reads, reads + n,
                     [&](std::uint32_t r) { return read_before(r, reader, who); });
}

int SharedShadow::unordered_reader(std::size_t cell, Who who) const {
  for (int u = 0; u < warps_; ++u)
    if (!read_before(*reads_of(cell, u), u, who)) return u;
  return -1;
}

Who SharedShadow::last_read(std::size_t cell, int warp) const {
  const std::uint32_t r = *reads_of(cell, warp);
  const int lane = r & kSeveral ? kAllLanes : static_cast<int>((r & kLaneMask) >> kLocBits);
  return {warp, lane, r & ((1u << kLocBits) - 1)};
}

}  // namespace attn::simt::cpu
