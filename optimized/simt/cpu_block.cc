#include "optimized/simt/cpu_block.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace attn::simt::cpu {
namespace {

// Unoptimised and sanitized code keeps every temporary of a kernel on the stack.
#if defined(__SANITIZE_ADDRESS__) || !defined(__OPTIMIZE__)
constexpr std::size_t kWarpStack = 8u << 20, kThreadStack = 512u << 10;
#else
constexpr std::size_t kWarpStack = 2u << 20, kThreadStack = 256u << 10;
#endif
constexpr std::align_val_t kSmemAlignment{1024};

}  // namespace

void Block::FreeSmem::operator()(char* p) const { operator delete[](p, kSmemAlignment); }

Block::Block() = default;
Block::~Block() = default;

void Block::configure(LaunchPlan& plan) {
  plan_ = &plan;
  grid = plan.grid;
  checking = plan.options.check;
  lazy_copies_ = plan.options.lazy_copies;
  locations_.reset(&plan.locations);
  std::fill(std::begin(recent_), std::end(recent_), nullptr);
  if (threads != plan.threads || lanes_per_strand_ != plan.lanes_per_strand) {
    threads = 0;  // until all of the following has succeeded
    lanes_per_strand_ = plan.lanes_per_strand;
    warps = plan.threads / 32;
    strands_ = plan.threads / lanes_per_strand_;
    fibers_.create(strands_, lanes_per_strand_ == 32 ? kWarpStack : kThreadStack, fiber_entry,
                   this);
    ready_.assign(static_cast<std::size_t>(strands_ + 31) / 32, 0);
    in_kernel_.assign(static_cast<std::size_t>(strands_), 0);
    meetings_.assign(static_cast<std::size_t>(warps), {});
    exchange_.resize(static_cast<std::size_t>(warps));
    copies_.assign(static_cast<std::size_t>(strands_), {});
    threads = plan.threads;
  }
  smem_bytes_ = plan.smem_bytes;
  if (smem_bytes_ > smem_capacity_ || !smem_) {
    smem_.reset();
    smem_.reset(new (kSmemAlignment) char[smem_bytes_ + 16]);
    smem_capacity_ = smem_bytes_;
  }
  shadow_.resize(smem_bytes_, warps);
}

void Block::begin(int number) {
  number_ = number;
  x = number % grid.x;
  y = number / grid.x % grid.y;
  z = number / grid.x / grid.y;
  finished_ = 0;
  strand = 0;
  cancelling_ = false;
  failure_ = nullptr;
  random_state_ = 0;
  if (plan_->options.schedule_seed != 0)
    random_state_ =
        (plan_->options.schedule_seed + static_cast<std::uint64_t>(number)) * 0x9e3779b97f4a7c15u |
        1u;
  for (Barrier& b : barriers_) b.arrived = 0;
  for (Meeting& m : meetings_) m.arrived = 0;
  for (Copies& c : copies_) {
    c.queue.clear();
    c.groups.clear();
  }
  for (int s = 0; s < strands_; ++s) make_ready(s);
  if (random_state_ != 0) strand = next_strand();
  if (checking) {
    // Unwritten shared memory holds NaN, so that a kernel that gets away unchecked still shows it.
    std::memset(smem_.get(), 0xff, smem_bytes_);
    shadow_.begin_block();
  }
}

void Block::run(int number) {
  begin(number);
  Block* const outer = self;
  self = this;
  fibers_.switch_to(Fibers::kOutside, strand);
  if (failure_) cancel_others();
  self = outer;
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void Block::fiber_entry(void* block) {
  for (;;) static_cast<Block*>(block)->run_strand();
}

// One strand through one block. Every strand comes back to the loop of fiber_entry, so its stack is
// used again for the next block.
void Block::run_strand() {
  const int me = strand;
  in_kernel_[static_cast<std::size_t>(me)] = 1;
  try {
    plan_->body();
  } catch (const Cancelled&) {
  } catch (...) {
    failure_ = std::current_exception();
  }
  in_kernel_[static_cast<std::size_t>(me)] = 0;
  ready_[static_cast<std::size_t>(me >> 5)] &= ~(1u << (me & 31));
  ++finished_;
  int next = Fibers::kOutside;
  if (!failure_ && !cancelling_ && finished_ < strands_) {
    next = next_strand();
    if (next < 0) {
      try {
        deadlock();
      } catch (...) {
        failure_ = std::current_exception();
      }
      next = Fibers::kOutside;
    }
  }
  if (next != Fibers::kOutside) strand = next;
  fibers_.switch_to(me, next);
}

// After a failure: unwinds the strands that are in the middle of the kernel.
void Block::cancel_others() {
  cancelling_ = true;
  for (int s = 0; s < strands_; ++s)
    if (in_kernel_[static_cast<std::size_t>(s)]) {
      strand = s;
      fibers_.switch_to(Fibers::kOutside, s);
    }
  std::fill(ready_.begin(), ready_.end(), 0u);
}

void Block::make_warp_ready(int warp) {
  if (lanes_per_strand_ == 32)
    make_ready(warp);
  else
    ready_[static_cast<std::size_t>(warp)] = ~0u;
}

void Block::wait() {
  const int me = strand;
  ready_[static_cast<std::size_t>(me >> 5)] &= ~(1u << (me & 31));
  const int next = next_strand();
  if (next < 0) deadlock();
  switch_strand(next);
}

void Block::yield() {
  if (random_state_ != 0) switch_strand(next_strand());
}

void Block::switch_strand(int next) {
  const int me = strand;
  if (next == me) return;
  strand = next;
  fibers_.switch_to(me, next);
  if (cancelling_) throw Cancelled{};
}

std::uint64_t Block::random() {  // xorshift64 (Marsaglia 2003)
  random_state_ ^= random_state_ << 13;
  random_state_ ^= random_state_ >> 7;
  random_state_ ^= random_state_ << 17;
  return random_state_;
}

// The next ready strand after this one, or, with a schedule seed, any of them; -1 if there is none.
int Block::next_strand() {
  const int words = static_cast<int>(ready_.size());
  const auto first_from = [&](int word, int bit) {
    const std::uint32_t later = ready_[static_cast<std::size_t>(word)] & (~0u << bit);
    if (later) return word * 32 + std::countr_zero(later);
    for (int i = 1; i <= words; ++i) {
      const int w = (word + i) % words;
      if (const std::uint32_t m = ready_[static_cast<std::size_t>(w)])
        return w * 32 + std::countr_zero(m);
    }
    return -1;
  };
  if (random_state_ != 0) {
    const std::uint64_t r = random();
    return first_from(static_cast<int>((r >> 8) % static_cast<unsigned>(words)),
                      static_cast<int>(r & 31));
  }
  return (strand & 31) == 31 ? first_from((strand >> 5) + 1 < words ? (strand >> 5) + 1 : 0, 0)
                             : first_from(strand >> 5, (strand & 31) + 1);
}

void Block::end_segment(int warp) {
  shadow_.end_segment(warp);
  if (shadow_.generation() != shadow_generation_) {
    shadow_generation_ = shadow_.generation();
    for (Barrier& b : barriers_) std::fill(std::begin(b.clock), std::end(b.clock), 0u);
  }
}

bool Block::arrive(int id, int expected_threads, int warp, bool waits, Loc loc) {
  if (id < 0 || id >= kBarriers || expected_threads % 32 != 0 || expected_threads <= 0 ||
      expected_threads > threads)
    fault(FaultKind::barrier_misuse, loc,
          "barrier " + std::to_string(id) + " for " + std::to_string(expected_threads) +
              " threads; expected an id of 0..15 and a multiple of 32 up to " +
              std::to_string(threads));
  Barrier& b = barriers_[id];
  if (b.arrived == 0) {
    b.expected = expected_threads;
    b.waiting.clear();
    b.arrived_warps.clear();
    std::fill(std::begin(b.clock), std::end(b.clock), 0u);
    b.loc = loc;
  }
  if (b.expected != expected_threads)
    fault(FaultKind::barrier_misuse, loc,
          "barrier " + std::to_string(id) + " entered for " + std::to_string(expected_threads) +
              " threads, at " + to_string(b.loc) + " for " + std::to_string(b.expected));
  if (checking) {
    shadow_.publish(warp, b.clock);
    end_segment(warp);
  }
  b.arrived += 32;
  b.arrived_warps.push_back(warp);
  if (waits) b.waiting.push_back(warp);
  if (b.arrived < b.expected) return false;
  b.arrived = 0;
  for (const int w : b.waiting) {
    if (checking) shadow_.receive(w, b.clock);
    make_warp_ready(w);
  }
  if (waits) yield();
  return true;
}

bool Block::meet(int warp, int lane, Collective kind, Loc loc) {
  Meeting& m = meetings_[static_cast<std::size_t>(warp)];
  if (m.arrived == 0) {
    m.kind = kind;
    m.loc = loc;
  } else if (m.kind != kind || m.loc != loc) {
    fault(FaultKind::divergent_collective, loc,
          "warp " + std::to_string(warp) + " lane " + std::to_string(lane) + " is in " +
              name(kind) + " at " + to_string(loc) + ", while " +
              std::to_string(std::popcount(m.arrived)) + " lanes wait in " + name(m.kind) + " at " +
              to_string(m.loc));
  }
  m.arrived |= 1u << lane;
  if (m.arrived != ~0u) return false;
  m.arrived = 0;
  return true;
}

void Block::commit_copies() {
  Copies& c = copies_[static_cast<std::size_t>(strand)];
  c.groups.push_back(c.queue.size());
}

void Block::wait_copies(int groups) {
  Copies& c = copies_[static_cast<std::size_t>(strand)];
  const auto done = static_cast<std::ptrdiff_t>(c.groups.size()) - groups;
  if (done <= 0) return;
  const std::size_t end = c.groups[static_cast<std::size_t>(done - 1)];
  for (std::size_t i = 0; i < end; ++i) {
    const Copy& copy = c.queue[i];
    switch (copy.bytes) {
      case 4:
        land<4>(copy);
        break;
      case 8:
        land<8>(copy);
        break;
      case 16:
        land<16>(copy);
        break;
    }
  }
  c.queue.erase(c.queue.begin(), c.queue.begin() + static_cast<std::ptrdiff_t>(end));
  c.groups.erase(c.groups.begin(), c.groups.begin() + done);
  for (std::size_t& g : c.groups) g -= end;
}

}  // namespace attn::simt::cpu
