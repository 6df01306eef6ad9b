// One thread block on a CPU engine: its fibers and their scheduler, barriers, shared memory,
// asynchronous copies, and the calls into the checker. Both engines are built on it.
//
// A *strand* is what a fiber runs: a warp on the warp engine, a thread on the thread engine.
#pragma once
#include <bit>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "optimized/simt/cpu_fibers.h"
#include "optimized/simt/cpu_global.h"
#include "optimized/simt/cpu_inline.h"
#include "optimized/simt/cpu_location.h"
#include "optimized/simt/cpu_shadow.h"
#include "optimized/simt/fault.h"
#include "optimized/simt/launch.h"

namespace attn::simt::cpu {

/// What all blocks of a launch have in common.
struct LaunchPlan {
  Grid grid;
  int threads = 0;
  std::size_t smem_bytes = 0;
  int lanes_per_strand = 32;  ///< 32: warp engine, 1: thread engine
  LaunchOptions options;
  std::function<void()> body;  ///< what each strand runs
  std::uint32_t id = 0;
  LocationTable locations;
};

/// The operations that the lanes of a warp do together on the thread engine.
enum class Collective {
  block_sync,
  named_sync,
  named_arrive,
  warp_sync,
  exchange,
  vote,
  ldmatrix,
  ldmatrix_trans,
  mma,
  mma_tf32,
  uniform
};
const char* name(Collective kind);

/// A block of threads while it runs: its shared memory, its barriers, its fibers.
class Block {
 public:
  static constexpr int kBarriers = 16;

  // -- identity
  int x = 0, y = 0, z = 0;
  Grid grid;
  int threads = 0, warps = 0;
  int strand = 0;  ///< the one that runs
  bool checking = true;
  char* smem() { return smem_.get(); }
  std::size_t smem_bytes() const { return smem_bytes_; }
  LocId at(Loc loc) { return locations_.id(loc); }

  Block();
  ~Block();
  /// Prepares for the blocks of a launch; stacks and shadow memory are kept where they fit.
  void configure(LaunchPlan& plan);
  /// Runs the block of this number. Throws what the checker found or what the kernel threw.
  void run(int number);

  // -- scheduling
  ATTN_FORCE_INLINE void make_ready(int s) { ready_[s >> 5] |= 1u << (s & 31); }
  void make_warp_ready(int warp);
  /// Lets other strands run until something makes this one ready again.
  void wait();
  /// Lets another strand go first if the schedule is random; this one stays ready.
  void yield();

  // -- barriers; `warp` arrives as a whole. Returns true when the barrier is complete.
  bool arrive(int id, int expected_threads, int warp, bool waits, Loc loc);
  ATTN_FORCE_INLINE void sync_warp(int warp) {
    if (checking) end_segment(warp);
  }

  // -- the rendezvous of the lanes of a warp (thread engine)
  /// The lanes of a warp that have come to one collective.
  struct Meeting {
    std::uint32_t arrived = 0;
    Collective kind{};
    Loc loc;
  };
  /// The running lane joins; true for the last of the 32, which performs the operation for all.
  bool meet(int warp, int lane, Collective kind, Loc loc);
  /// Operands and results of the collective under way, by lane.
  struct Exchange {
    std::uint32_t in[8][32], out[4][32];
    float accumulator[4][32];
    std::uint64_t wide_in[32], wide_out[32];
  };
  Exchange& exchange(int warp) { return exchange_[static_cast<std::size_t>(warp)]; }

  // -- shared memory
  template <int Bytes>
  ATTN_FORCE_INLINE void check_shared_read(Who who, std::uint32_t address) {
    check_range<Bytes>(who, address);
    if (checking && !shadow_.read<Bytes>(who, address)) [[unlikely]]
      shared_fault(who, address, Bytes, false);
  }
  template <int Bytes>
  ATTN_FORCE_INLINE void check_shared_write(Who who, std::uint32_t address,
                                            SharedShadow::State state = SharedShadow::kWritten) {
    check_range<Bytes>(who, address);
    if (checking && !shadow_.write<Bytes>(who, address, state)) [[unlikely]]
      shared_fault(who, address, Bytes, true);
  }

  // -- global memory
  /// The allocation that `base` points into; null if there is none, or nothing is checked.
  ATTN_FORCE_INLINE Allocation* allocation(const void* base) {
    if (!checking) return nullptr;
    for (Allocation* a : recent_)
      if (a && a->holds(base)) return a;
    return find_allocation(base);
  }
  /// Checks the access of `Bytes` bytes at `p`, which must lie in the allocation `a`.
  template <int Bytes>
  ATTN_FORCE_INLINE void check_global(Who who, GlobalUse use, Allocation* a, const void* p) {
    if (!checking) return;
    const auto address = reinterpret_cast<std::uintptr_t>(p);
    if (a && address % Bytes == 0 && use == GlobalUse::read) [[likely]] {
      const auto offset = address - reinterpret_cast<std::uintptr_t>(a->base());
      if (a->plain_input<Bytes>(static_cast<std::int64_t>(offset))) [[likely]]
        return;
    }
    check_global_slowly(who, use, a, p, Bytes);
  }

  // -- asynchronous copies, in the order of each strand
  template <int Bytes>
  ATTN_FORCE_INLINE void issue_copy(Who who, std::uint32_t to, Allocation* source, const char* from,
                                    int valid_bytes) {
    if (valid_bytes == Bytes)
      check_global<Bytes>(who, GlobalUse::read, source, from);
    else if (valid_bytes > 0)
      check_copy_source(who, source, from, valid_bytes, Bytes);
    check_shared_write<Bytes>(who, to, SharedShadow::kInFlight);
    Copies& c = copies_[static_cast<std::size_t>(strand)];
    c.queue.push_back(
        {from, to, who, static_cast<std::uint8_t>(Bytes), static_cast<std::uint8_t>(valid_bytes)});
    if (!lazy_copies_) move_bytes<Bytes>(c.queue.back());
  }
  void commit_copies();
  /// Waits until at most `groups` of the strand's youngest committed groups are in flight.
  void wait_copies(int groups);

  /// Throws a CheckerFault whose text is the kind, then `text`, then the block.
  [[noreturn]] ATTN_COLD void fault(FaultKind kind, Loc loc, const std::string& text);
  Loc location(LocId id) const { return locations_.table()[id]; }

 private:
  struct Barrier {
    int expected = 0, arrived = 0;  // threads
    std::vector<int> waiting, arrived_warps;
    std::uint32_t clock[kMaxWarps] = {};
    Loc loc;
  };
  struct Copy {
    const char* from;
    std::uint32_t to;
    Who who;
    std::uint8_t bytes, valid_bytes;
  };
  struct Copies {
    std::vector<Copy> queue;          // in flight, oldest first
    std::vector<std::size_t> groups;  // the end in `queue` of each committed group
  };
  struct Cancelled {};  // thrown through a fiber whose block has failed

  template <int Bytes>
  ATTN_FORCE_INLINE void check_range(Who who, std::uint32_t address) {
    if (std::size_t{address} + Bytes > smem_bytes_ || address % Bytes != 0) [[unlikely]]
      range_fault(who, address, Bytes);
  }
  void begin(int number);
  void switch_strand(int next);
  void end_segment(int warp);
  int next_strand();
  std::uint64_t random();
  static void fiber_entry(void* block);
  void run_strand();
  void cancel_others();

  ATTN_COLD Allocation* find_allocation(const void* base);
  void check_copy_source(Who who, Allocation* a, const char* from, int valid, int bytes);
  void check_global_slowly(Who who, GlobalUse use, Allocation* a, const void* p, int bytes);
  template <int Bytes>
  ATTN_FORCE_INLINE void move_bytes(const Copy& c) {
    char* to = smem_.get() + c.to;
    if (c.valid_bytes == Bytes) {
      std::memcpy(to, c.from, Bytes);
    } else {
      std::memset(to, 0, Bytes);
      if (c.valid_bytes > 0) std::memcpy(to, c.from, c.valid_bytes);
    }
  }
  template <int Bytes>
  void land(const Copy& c) {
    if (lazy_copies_) move_bytes<Bytes>(c);
    if (checking) shadow_.land<Bytes>(c.who, c.to);
  }

  [[noreturn]] ATTN_COLD void range_fault(Who who, std::uint32_t address, int bytes);
  [[noreturn]] ATTN_COLD void shared_fault(Who who, std::uint32_t address, int bytes, bool write);
  [[noreturn]] ATTN_COLD void global_address_fault(Who who, const Allocation* a, const void* p,
                                                   int bytes);
  [[noreturn]] ATTN_COLD void global_fault(Who who, GlobalUse use, const Allocation& a, int bytes,
                                           const Allocation::Finding& finding);
  [[noreturn]] ATTN_COLD void deadlock();
  std::string who_is(int warp, int lane, bool with_lane) const;

  LaunchPlan* plan_ = nullptr;
  int number_ = 0;
  bool lazy_copies_ = true;
  LocationCache locations_;

  Fibers fibers_;
  int strands_ = 0, lanes_per_strand_ = 0, finished_ = 0;
  std::vector<std::uint32_t> ready_;     // one bit a strand
  std::vector<std::uint8_t> in_kernel_;  // strands that have started this block and not finished
  bool cancelling_ = false;
  std::exception_ptr failure_;
  std::uint64_t random_state_ = 0;

  Barrier barriers_[kBarriers];
  std::vector<Meeting> meetings_;
  std::vector<Exchange> exchange_;
  std::vector<Copies> copies_;

  struct FreeSmem {
    void operator()(char* p) const;
  };
  std::unique_ptr<char[], FreeSmem> smem_;
  std::size_t smem_bytes_ = 0, smem_capacity_ = 0;
  SharedShadow shadow_;
  unsigned shadow_generation_ = 0;

  static constexpr int kRecent = 8;
  Allocation* recent_[kRecent] = {};
  unsigned next_recent_ = 0;
};

/// The block that this operating-system thread is running.
inline constinit thread_local Block* self = nullptr;

/// Runs a kernel over its grid. Throws std::invalid_argument for a shape that no GPU takes,
/// CheckerFault for a fault, and whatever the kernel threw.
void run_grid(Grid grid, int threads, std::size_t smem_bytes, const LaunchOptions& options,
              int lanes_per_strand, std::function<void()> body);

}  // namespace attn::simt::cpu
