// The slow half of the checker: global accesses that need their history, and the wording of faults.
#include <cstdio>

#include "optimized/simt/cpu_block.h"

namespace attn::simt {

const char* name(FaultKind kind) {
  switch (kind) {
    case FaultKind::data_race:
      return "data race";
    case FaultKind::out_of_bounds:
      return "out of bounds";
    case FaultKind::misaligned:
      return "misaligned";
    case FaultKind::uninitialised_read:
      return "uninitialised";
    case FaultKind::copy_in_flight:
      return "copy in flight";
    case FaultKind::read_only_write:
      return "read-only";
    case FaultKind::divergent_collective:
      return "divergence";
    case FaultKind::deadlock:
      return "deadlock";
    case FaultKind::barrier_misuse:
      return "barrier misuse";
  }
  return "?";
}

namespace cpu {
namespace {

std::string hex(std::int64_t offset) {
  char text[32];
  std::snprintf(text, sizeof text, "%c0x%llx", offset < 0 ? '-' : '+',
                static_cast<unsigned long long>(offset < 0 ? -offset : offset));
  return text;
}

std::string coordinates(int x, int y, int z) {
  return "(" + std::to_string(x) + "," + std::to_string(y) + "," + std::to_string(z) + ")";
}

std::string shared_at(std::size_t byte) {
  return "shared memory " + hex(static_cast<std::int64_t>(byte)) + "   ";
}

}  // namespace

const char* name(Collective kind) {
  switch (kind) {
    case Collective::block_sync:
      return "block_sync";
    case Collective::named_sync:
      return "named_sync";
    case Collective::named_arrive:
      return "named_arrive";
    case Collective::warp_sync:
      return "warp_sync";
    case Collective::exchange:
      return "a shuffle";
    case Collective::vote:
      return "a vote";
    case Collective::ldmatrix:
      return "ldmatrix_x4";
    case Collective::ldmatrix_trans:
      return "ldmatrix_x4_trans";
    case Collective::mma:
      return "mma_m16n8k16";
    case Collective::mma_tf32:
      return "mma_m16n8k8_tf32";
    case Collective::uniform:
      return "uniform";
  }
  return "?";
}

void Block::fault(FaultKind kind, Loc loc, const std::string& text) {
  char head[24];
  std::snprintf(head, sizeof head, "%-12s ", name(kind));
  const std::string place = to_string(loc);
  throw CheckerFault(kind, place.substr(0, place.rfind(':')), loc.line, {x, y, z},
                     head + text + "; block " + coordinates(x, y, z));
}

std::string Block::who_is(int warp, int lane, bool with_lane) const {
  std::string s = "warp " + std::to_string(warp);
  if (with_lane) s += lane == kAllLanes ? " (several lanes)" : " lane " + std::to_string(lane);
  return s;
}

void Block::range_fault(Who who, std::uint32_t address, int bytes) {
  const std::string access = std::to_string(bytes) + "-byte access by " +
                             who_is(who.warp, who.lane, true) + " at " +
                             to_string(location(who.at));
  if (std::size_t{address} + static_cast<std::size_t>(bytes) > smem_bytes_)
    fault(
        FaultKind::out_of_bounds, location(who.at),
        shared_at(address) + access + ", the block has " + std::to_string(smem_bytes_) + " bytes");
  fault(FaultKind::misaligned, location(who.at),
        shared_at(address) + access + ", expected a multiple of " + std::to_string(bytes));
}

// Finds the cell for which SharedShadow refused the access, and says why.
void Block::shared_fault(Who who, std::uint32_t address, int bytes, bool write) {
  const Loc here = location(who.at);
  const std::string verb = write ? "written by " : "read by ";
  for (std::size_t cell = address / 2; cell < (address + static_cast<unsigned>(bytes)) / 2;
       ++cell) {
    const auto last = shadow_.last_write(cell);
    const bool lanes = last.warp == who.warp;
    const std::string missing = lanes ? ", no warp_sync between" : ", no barrier between";
    const std::string me = verb + who_is(who.warp, who.lane, lanes) + " at " + to_string(here);
    if (shadow_.state(cell) == SharedShadow::kInFlight)
      fault(FaultKind::copy_in_flight, here,
            shared_at(cell * 2) + "target of a copy issued by " +
                who_is(last.warp, last.lane, lanes) + " at " + to_string(location(last.at)) + ", " +
                me + " before the copy was waited for");
    if (!write && shadow_.state(cell) == SharedShadow::kUnwritten)
      fault(FaultKind::uninitialised_read, here,
            shared_at(cell * 2) + me + ", never written in this block");
    if (!shadow_.write_ordered(cell, who))
      fault(FaultKind::data_race, here,
            shared_at(cell * 2) + "written by " + who_is(last.warp, last.lane, lanes) + " at " +
                to_string(location(last.at)) + ", " + me + missing);
    const int reader = write ? shadow_.unordered_reader(cell, who) : -1;
    if (reader < 0) continue;
    const Who read = shadow_.last_read(cell, reader);
    const bool same_warp = reader == who.warp;
    fault(FaultKind::data_race, here,
          shared_at(cell * 2) + "read by " + who_is(reader, read.lane, same_warp) + " at " +
              to_string(location(read.at)) + ", written by " +
              who_is(who.warp, who.lane, same_warp) + " at " + to_string(here) +
              (same_warp ? ", no warp_sync between" : ", no barrier between"));
  }
  fault(FaultKind::data_race, here, shared_at(address) + "(internal: no offending cell)");
}

Allocation* Block::find_allocation(const void* base) {
  Allocation* a = GlobalMemory::instance().find(base);
  if (a) recent_[next_recent_++ % kRecent] = a;
  return a;
}

// The bytes of a copy's source that are read; its address must be aligned to the whole copy.
void Block::check_copy_source(Who who, Allocation* a, const char* from, int valid, int bytes) {
  if (!checking) return;
  if (reinterpret_cast<std::uintptr_t>(from) % static_cast<unsigned>(bytes) != 0 || !a)
    return check_global_slowly(who, GlobalUse::read, a, from, bytes);
  const auto finding = a->access(GlobalUse::read, from - a->base(), static_cast<std::size_t>(valid),
                                 plan_->id, static_cast<std::uint32_t>(number_), who.at);
  if (finding.verdict != Allocation::Verdict::ok)
    global_fault(who, GlobalUse::read, *a, valid, finding);
}

void Block::check_global_slowly(Who who, GlobalUse use, Allocation* a, const void* p, int bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(p);
  if (!a || address % static_cast<unsigned>(bytes) != 0) global_address_fault(who, a, p, bytes);
  const auto finding = a->access(
      use, static_cast<std::int64_t>(address - reinterpret_cast<std::uintptr_t>(a->base())),
      static_cast<std::size_t>(bytes), plan_->id, static_cast<std::uint32_t>(number_), who.at);
  if (finding.verdict != Allocation::Verdict::ok) global_fault(who, use, *a, bytes, finding);
}

void Block::global_address_fault(Who who, const Allocation* a, const void* p, int bytes) {
  const Loc here = location(who.at);
  const std::string access = std::to_string(bytes) + "-byte access by " +
                             who_is(who.warp, who.lane, true) + " at " + to_string(here);
  if (!a)
    fault(FaultKind::out_of_bounds, here,
          "global memory   " + access + " through a pointer into no registered memory");
  const auto offset =
      reinterpret_cast<std::intptr_t>(p) - reinterpret_cast<std::intptr_t>(a->base());
  fault(FaultKind::misaligned, here,
        "global memory " + hex(offset) + "   " + access +
            ", expected an address that is a multiple of " + std::to_string(bytes));
}

void Block::global_fault(Who who, GlobalUse use, const Allocation& a, int bytes,
                         const Allocation::Finding& finding) {
  using Verdict = Allocation::Verdict;
  static constexpr const char* kVerb[] = {"read", "written", "updated atomically"};
  const Loc here = location(who.at);
  const std::string place =
      "global memory " + hex(finding.at) + " of " + std::to_string(a.bytes()) + " bytes   ";
  const std::string me = std::string(kVerb[static_cast<int>(use)]) + " by " +
                         who_is(who.warp, who.lane, true) + " at " + to_string(here) + " (" +
                         std::to_string(bytes) + " bytes)";
  switch (finding.verdict) {
    case Verdict::ok:
    case Verdict::out_of_bounds:
      fault(FaultKind::out_of_bounds, here, place + me + ", outside the buffer");
    case Verdict::guard:
      fault(FaultKind::out_of_bounds, here,
            place + me + ", which is padding or a guard zone and not addressable");
    case Verdict::uninitialised:
      fault(FaultKind::uninitialised_read, here, place + me + ", never written");
    case Verdict::read_only:
      fault(FaultKind::read_only_write, here, place + me + ", registered as an input");
    case Verdict::race:
      break;
  }
  const ElementHistory& h = finding.history;
  const std::uint32_t writer = h.writer & ElementHistory::kMany;
  const auto me_plus_one = static_cast<std::uint32_t>(number_) + 1;
  const bool by_write = writer != 0 && writer != me_plus_one &&
                        !(use == GlobalUse::atomic && (h.writer & ElementHistory::kAtomic));
  const std::uint32_t other = by_write ? writer : h.reader;
  std::string block = "several blocks";
  if (other != ElementHistory::kMany) {
    const int n = static_cast<int>(other) - 1;
    block = "block " + coordinates(n % grid.x, n / grid.x % grid.y, n / grid.x / grid.y);
  }
  const char* verb = !by_write ? "read" : h.writer & ElementHistory::kAtomic ? kVerb[2] : kVerb[1];
  fault(FaultKind::data_race, here,
        place + verb + " by " + block + " at " +
            to_string(location(by_write ? h.write_at : h.read_at)) + ", " + me +
            ", nothing orders the blocks of a launch");
}

void Block::deadlock() {
  std::string text;
  FaultKind kind = FaultKind::deadlock;
  Loc where;
  const auto list = [](const std::vector<int>& warps_listed) {
    std::string s;
    for (const int w : warps_listed) s += (s.empty() ? "" : ",") + std::to_string(w);
    return s;
  };
  for (int id = 0; id < kBarriers; ++id) {
    const Barrier& b = barriers_[id];
    if (b.arrived == 0) continue;
    text += "barrier " + std::to_string(id) + " at " + to_string(b.loc) + " has " +
            std::to_string(b.arrived) + " of " + std::to_string(b.expected) + " threads (warps " +
            list(b.arrived_warps) + "), ";
    where = b.loc;
  }
  for (int w = 0; w < warps; ++w) {
    const Meeting& m = meetings_[static_cast<std::size_t>(w)];
    if (m.arrived == 0) continue;
    kind = FaultKind::divergent_collective;
    text += std::to_string(std::popcount(m.arrived)) + " lanes of warp " + std::to_string(w) +
            " wait in " + name(m.kind) + " at " + to_string(m.loc) + ", ";
    where = m.loc;
  }
  const char* strand_name = lanes_per_strand_ == 32 ? " warps" : " threads";
  fault(kind, where,
        text + std::to_string(finished_) + " of " + std::to_string(strands_) + strand_name +
            " have left the kernel");
}

}  // namespace cpu
}  // namespace attn::simt
