// Shadow of a block's shared memory: for each cell of two bytes whether it has been written, by
// whom and when, and when each warp last read it.
//
// Time. A warp's run is cut into segments by what orders memory: block and named barriers, and
// warp_sync. All 32 lanes are in one segment together, because each of these waits for all of them.
// `visible(w, u)` is the last segment of warp u that is ordered before what warp w does now.
//   An access of lane k of warp u in segment s comes before one of lane l of warp w exactly if
//   s <= visible(w, u), or it is the same thread (u = w and k = l), in program order.
// For reads it is enough to keep each warp's latest segment, and in it the lane or "several":
// whoever is ordered after that segment is ordered after all earlier ones.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "optimized/simt/cpu_inline.h"
#include "optimized/simt/cpu_location.h"
#include "optimized/simt/cpu_words.h"

namespace attn::simt::cpu {

inline constexpr int kMaxWarps = 32;

/// Who accesses memory, and where in the source.
struct Who {
  int warp;
  int lane;  ///< kAllLanes for an operation that the warp does as one, such as ldmatrix
  LocId at;
};
inline constexpr int kAllLanes = -1;

/// Who wrote and who read each byte of a block's shared memory, since which barrier.
class SharedShadow {
 public:
  enum State : std::uint8_t { kUnwritten = 0, kWritten = 1, kInFlight = 2 };
  /// The last write of a byte.
  struct Write {
    int warp, lane;
    LocId at;
  };

  /// Room for `bytes` of shared memory and `warps` warps.
  void resize(std::size_t bytes, int warps);
  /// A new block begins: nothing is written, and all that happened before is ordered.
  void begin_block();

  // -- time
  /// The segment of warp w ends. What it did is now covered by `publish`.
  ATTN_FORCE_INLINE void end_segment(int w) {
    visible_[w][w] = segment_[w];
    if (++segment_[w] > kLastSegment) [[unlikely]]
      forget();
  }
  /// `clock[u]` = the last segment of each warp u that is ordered before now, w's own included.
  void publish(int w, std::uint32_t* clock) const {
    for (int u = 0; u < warps_; ++u) clock[u] = std::max(clock[u], visible_[w][u]);
    clock[w] = std::max(clock[w], segment_[w]);
  }
  void receive(int w, const std::uint32_t* clock) {
    for (int u = 0; u < warps_; ++u)
      if (u != w) visible_[w][u] = std::max(visible_[w][u], clock[u]);
  }
  /// Incremented when history had to be dropped; clocks taken before are void.
  unsigned generation() const { return generation_; }

  // -- accesses; each returns false, and changes nothing that matters, if there is a fault
  template <int Bytes>
  ATTN_FORCE_INLINE bool read(Who who, std::uint32_t address) {
    constexpr int n = Bytes / 2;
    const std::size_t cell = address / 2;
    bool ok = word_of<n>(&state_[cell]) == repeated<n>(kWritten);
    ok &= writes_before<n>(&writes_[cell], who);
    note_read<n>(reads_of(cell, who.warp), who);
    return ok;
  }
  template <int Bytes>
  ATTN_FORCE_INLINE bool write(Who who, std::uint32_t address, State state) {
    constexpr int n = Bytes / 2;
    const std::size_t cell = address / 2;
    bool ok = (word_of<n>(&state_[cell]) & repeated<n>(kInFlight)) == 0;
    ok &= writes_before<n>(&writes_[cell], who);
    for (int u = 0; u < warps_; ++u) ok &= reads_before<n>(reads_of(cell, u), u, who);
    if (ok) [[likely]]
      set_written<n>(cell, who, state);
    return ok;
  }
  /// A copy issued earlier has landed: its bytes count as written by `who`, now.
  template <int Bytes>
  ATTN_FORCE_INLINE void land(Who who, std::uint32_t address) {
    set_written<Bytes / 2>(address / 2, who, kWritten);
  }

  // -- for the report of a fault, cell by cell
  State state(std::size_t cell) const { return static_cast<State>(state_[cell]); }
  Write last_write(std::size_t cell) const {
    const std::uint32_t w = writes_[cell];
    return {static_cast<int>(w >> 5 & 31), static_cast<int>(w & 31), writes_at_[cell]};
  }
  bool write_ordered(std::size_t cell, Who who) const { return write_before(writes_[cell], who); }
  /// The first warp whose last read of the cell is not ordered before `who`, or -1.
  int unordered_reader(std::size_t cell, Who who) const;
  Who last_read(std::size_t cell, int warp) const;

 private:
  // A write: segment 16 bits | unused 6 | warp 5 | lane 5.
  // A read:  segment 16 bits | several lanes 1 | lane 5 | location 10.
  static constexpr int kSegmentShift = 16;
  static constexpr std::uint32_t kLastSegment = 0xfffe;
  static constexpr std::uint32_t kSeveral = 1u << 15, kLaneMask = 31u << kLocBits;

  ATTN_FORCE_INLINE bool write_before(std::uint32_t w, Who who) const {
    const std::uint32_t u = w >> 5 & 31;
    return (w >> kSegmentShift) <= visible_[who.warp][u] ||
           (static_cast<int>(u) == who.warp && static_cast<int>(w & 31) == who.lane);
  }
  ATTN_FORCE_INLINE bool read_before(std::uint32_t r, int reader, Who who) const {
    return (r >> kSegmentShift) <= visible_[who.warp][reader] ||
           (reader == who.warp && !(r & kSeveral) &&
            static_cast<int>((r & kLaneMask) >> kLocBits) == who.lane);
  }
  // Neighbouring cells were mostly touched by one access: then one comparison does for all.
  template <int n>
  ATTN_FORCE_INLINE bool writes_before(const std::uint32_t* writes, Who who) const {
    return all_same<n>(writes) ? write_before(writes[0], who) : each_write_before(writes, n, who);
  }
  template <int n>
  ATTN_FORCE_INLINE bool reads_before(const std::uint32_t* reads, int reader, Who who) const {
    return all_same<n>(reads) ? read_before(reads[0], reader, who)
                              : each_read_before(reads, n, reader, who);
  }
  bool each_write_before(const std::uint32_t* writes, int n, Who who) const;
  bool each_read_before(const std::uint32_t* reads, int n, int reader, Who who) const;
  template <int n>
  ATTN_FORCE_INLINE void note_read(std::uint32_t* reads, Who who) {
    const std::uint32_t now = segment_[who.warp] << kSegmentShift | who.at;
    if (who.lane == kAllLanes) {
      for (int i = 0; i < n; ++i) reads[i] = now | kSeveral;
      return;
    }
    const std::uint32_t mine = now | static_cast<std::uint32_t>(who.lane) << kLocBits;
    for (int i = 0; i < n; ++i) {
      const std::uint32_t change = reads[i] ^ mine;
      const bool joined = (change >> kSegmentShift) == 0 && (change & (kSeveral | kLaneMask)) != 0;
      reads[i] = mine | (joined ? kSeveral : 0);
    }
  }
  template <int n>
  ATTN_FORCE_INLINE void set_written(std::size_t cell, Who who, State state) {
    const std::uint32_t now = segment_[who.warp] << kSegmentShift |
                              static_cast<std::uint32_t>(who.warp) << 5 |
                              static_cast<std::uint32_t>(who.lane);
    // One array after another: a store of a byte may be one to any pointer, as the compiler sees
    // it.
    std::fill_n(&writes_[cell], n, now);
    std::fill_n(&writes_at_[cell], n, static_cast<std::uint16_t>(who.at));
    std::memset(&state_[cell], state, n);
  }
  // Reads of 8 neighbouring cells by one warp are neighbours, and so are those of all warps.
  ATTN_FORCE_INLINE std::uint32_t* reads_of(std::size_t cell, int warp) {
    return &reads_[((cell >> 3) * warps_ + warp) * 8 + (cell & 7)];
  }
  const std::uint32_t* reads_of(std::size_t cell, int warp) const {
    return const_cast<SharedShadow*>(this)->reads_of(cell, warp);
  }
  /// 16 bits of segments are used up: drop the history. A race across this moment is not seen.
  void forget();

  std::size_t cells_ = 0;
  int warps_ = 0;
  unsigned generation_ = 0;
  std::uint32_t segment_[kMaxWarps] = {};
  std::uint32_t visible_[kMaxWarps][kMaxWarps] = {};
  std::vector<std::uint8_t> state_;
  std::vector<std::uint32_t> writes_, reads_;
  std::vector<std::uint16_t> writes_at_;
};

}  // namespace attn::simt::cpu
