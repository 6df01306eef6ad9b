// The checker finds what it says it finds, names the place, and leaves clean kernels alone. After
// every fault a clean kernel is launched, to see that nothing of the failed launch is left.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "optimized/simt/checker_kernels.h"
#include "optimized/simt/fault.h"
#include "optimized/simt/memory.h"
#include "optimized/simt/simt.h"

namespace attn {
namespace {

using planted::Plant;
using planted::Use;
using simt::Access;
using simt::CheckerFault;
using simt::DeviceBuffer;
using simt::FaultKind;
using simt::Grid;
using simt::LaunchOptions;

constexpr int kChunks = 300;  // two full tiles and a tail

template <Plant P>
bool pipeline_is_right(const LaunchOptions& options) {
  DeviceBuffer<std::uint32_t> in(kChunks * 4, Access::input), out(128);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<std::uint32_t>(i * i + 1);
  simt::launch({}, 128, 2 * planted::kBuffer, options, planted::pipeline<P>,
               static_cast<const std::uint32_t*>(in.data()), out.data(), kChunks);
  for (int t = 0; t < 128; ++t) {
    std::uint32_t sum = 0;
    for (int chunk = 127 - t; chunk < kChunks; chunk += 128)
      for (int i = 0; i < 4; ++i) sum += in[chunk * 4 + i];
    if (out[t] != sum) return false;
  }
  return true;
}

/// The fault that `run` throws, if any; then a clean kernel must run.
template <class F>
std::optional<CheckerFault> fault_of(F&& run) {
  std::optional<CheckerFault> found;
  try {
    run();
  } catch (const CheckerFault& fault) {
    found = fault;
  }
  EXPECT_TRUE(pipeline_is_right<Plant::none>({}));
  return found;
}
#define EXPECT_FAULT(expected_kind, text, run)                                            \
  do {                                                                                    \
    const auto fault = fault_of([&] { run; });                                            \
    ASSERT_TRUE(fault) << "no fault";                                                     \
    EXPECT_EQ(fault->kind(), FaultKind::expected_kind) << fault->what();                  \
    EXPECT_NE(std::string(fault->what()).find(text), std::string::npos) << fault->what(); \
    EXPECT_EQ(fault->file(), "checker_kernels.h") << fault->what();                       \
    EXPECT_GT(fault->line(), 0);                                                          \
  } while (false)
#define EXPECT_CLEAN(run)                                \
  do {                                                   \
    const auto fault = fault_of([&] { run; });           \
    EXPECT_FALSE(fault) << (fault ? fault->what() : ""); \
  } while (false)

template <class F>
void for_each_schedule(F&& f) {
  for (const bool lazy : {false, true})
    for (std::uint64_t seed = 0; seed < 8; ++seed)
      f(LaunchOptions{.lazy_copies = lazy, .schedule_seed = seed});
}

// Which kind shows first depends on which warp runs first; that there is a fault does not.
template <Plant P>
void expect_pipeline_fault(const std::set<FaultKind>& kinds) {
  for_each_schedule([&](const LaunchOptions& options) {
    const auto fault = fault_of([&] { pipeline_is_right<P>(options); });
    ASSERT_TRUE(fault) << "seed " << options.schedule_seed;
    EXPECT_TRUE(kinds.contains(fault->kind())) << fault->what();
  });
}

TEST(Checker, CleanPipelineUnderEverySchedule) {
  for_each_schedule(
      [](const LaunchOptions& options) { EXPECT_TRUE(pipeline_is_right<Plant::none>(options)); });
}
TEST(Checker, WithoutCheckingResultsAreTheSame) {
  EXPECT_TRUE(pipeline_is_right<Plant::none>({.check = false}));
  EXPECT_TRUE(pipeline_is_right<Plant::none>({.lazy_copies = false, .check = false}));
}
TEST(Checker, RemovedBarrierBeforeRead) {
  expect_pipeline_fault<Plant::no_barrier_before_read>(
      {FaultKind::data_race, FaultKind::copy_in_flight, FaultKind::uninitialised_read});
}
TEST(Checker, RemovedBarrierAfterRead) {
  expect_pipeline_fault<Plant::no_barrier_after_read>(
      {FaultKind::data_race, FaultKind::copy_in_flight});
}
TEST(Checker, OneWarpSkipsTheBarrier) {
  expect_pipeline_fault<Plant::one_warp_skips>({FaultKind::data_race, FaultKind::copy_in_flight,
                                                FaultKind::uninitialised_read,
                                                FaultKind::deadlock});
}
TEST(Checker, ReadPastTheTail) {
  expect_pipeline_fault<Plant::past_tail>({FaultKind::out_of_bounds});
}
TEST(Checker, TailNotZeroFilled) {
  // The third tile stands where the first one stood: stale data, unless it is the first itself.
  const auto run = [] {
    DeviceBuffer<std::uint32_t> in(40, Access::input), out(128);
    simt::launch({}, 128, 2 * planted::kBuffer, {}, planted::pipeline<Plant::tail_not_filled>,
                 static_cast<const std::uint32_t*>(in.data()), out.data(), 10);
  };
  EXPECT_FAULT(uninitialised_read, "never written in this block", run());
}
TEST(Checker, ReadBeforeWait) {
  expect_pipeline_fault<Plant::no_wait>({FaultKind::copy_in_flight});
}
TEST(Checker, WaitOneTooLax) {
  expect_pipeline_fault<Plant::lax_wait>({FaultKind::copy_in_flight});
}
TEST(Checker, WriteIntoTheLiveBuffer) {
  expect_pipeline_fault<Plant::live_buffer>({FaultKind::data_race, FaultKind::copy_in_flight});
}

TEST(Checker, RaceBetweenWarpsInBothOrders) {
  std::set<int> lines;
  for (std::uint64_t seed = 0; seed < 16; ++seed) {
    DeviceBuffer<int> out(1);
    const auto fault = fault_of([&] {
      simt::launch({1, 1, 1}, 64, 256, {.schedule_seed = seed}, planted::unordered_warps<false>,
                   out.data());
    });
    ASSERT_TRUE(fault);
    EXPECT_EQ(fault->kind(), FaultKind::data_race);
    const std::string place = " at checker_kernels.h:";
    const std::string write = "written by warp 0" + place + std::to_string(planted::kRaceWrite);
    const std::string read = "read by warp 1" + place + std::to_string(planted::kRaceRead);
    const std::string head = "data race    shared memory +0x0   ";
    const std::string tail = ", no barrier between; block (0,0,0)";
    const bool write_first = fault->line() == planted::kRaceRead;
    EXPECT_EQ(fault->what(),
              head + (write_first ? write + ", " + read : read + ", " + write) + tail);
    lines.insert(fault->line());
  }
  EXPECT_EQ(lines, (std::set<int>{planted::kRaceWrite, planted::kRaceRead}));
  DeviceBuffer<int> out(1);
  EXPECT_CLEAN(simt::launch({}, 64, 256, {}, planted::unordered_warps<true>, out.data()));
  EXPECT_EQ(out[0], 2);
}

TEST(Checker, MissingWarpSync) {
  DeviceBuffer<int> out(32);
  EXPECT_FAULT(data_race, "no warp_sync between",
               simt::launch({}, 32, 128, {}, planted::unordered_lanes<false>, out.data()));
  EXPECT_CLEAN(simt::launch({}, 32, 128, {}, planted::unordered_lanes<true>, out.data()));
  EXPECT_EQ(out[3], 4);
}
TEST(Checker, EveryReaderOfAWordCounts) {
  DeviceBuffer<int> out(32);
  for (std::uint64_t seed = 0; seed < 8; ++seed)
    EXPECT_FAULT(data_race, "no warp_sync between",
                 simt::launch({}, 32, 128, {.schedule_seed = seed},
                              planted::two_reads_then_write<false>, out.data()));
  EXPECT_CLEAN(simt::launch({}, 32, 128, {}, planted::two_reads_then_write<true>, out.data()));
}
/// Whichever lane writes: the engine need not look at every reader, and must miss none.
template <bool Quads, bool Before>
void expect_race_of_many_readers() {
  for (int writer = 0; writer < 32; ++writer) {
    DeviceBuffer<int> out(32);
    EXPECT_FAULT(
        data_race, "no warp_sync between",
        simt::launch({1, 1, 1}, 32, 256, {}, planted::word_of_many_readers<Quads, Before, false>,
                     out.data(), writer));
    EXPECT_CLEAN(simt::launch({1, 1, 1}, 32, 256, {},
                              planted::word_of_many_readers<Quads, Before, true>, out.data(),
                              writer));
  }
}
TEST(Checker, OneOfManyReadersHasWritten) {
  expect_race_of_many_readers<false, true>();
  expect_race_of_many_readers<true, true>();
}
TEST(Checker, OneOfManyReadersWrites) {
  expect_race_of_many_readers<false, false>();
  expect_race_of_many_readers<true, false>();
}
TEST(Checker, LdmatrixReadsForAllLanes) {
  DeviceBuffer<int> out(32);
  EXPECT_FAULT(data_race, "read by warp 0 (several lanes)",
               simt::launch({}, 32, 512, {}, planted::overwrite_after_ldmatrix<false>, out.data()));
  EXPECT_CLEAN(simt::launch({}, 32, 512, {}, planted::overwrite_after_ldmatrix<true>, out.data()));
}

TEST(Checker, BarrierThatNeverCompletes) {
  DeviceBuffer<int> out(1);
  EXPECT_FAULT(deadlock, "barrier 0 at",
               simt::launch({}, 64, 0, {}, planted::missing_warp<false>, out.data()));
  EXPECT_FAULT(deadlock, "barrier 3 at",
               simt::launch({}, 64, 0, {}, planted::missing_warp<true>, out.data()));
}
TEST(Checker, BarrierMisuse) {
  DeviceBuffer<int> out(1);
  EXPECT_FAULT(barrier_misuse, "barrier 1 entered for 32 threads",
               simt::launch({}, 64, 0, {}, planted::barrier_counts_differ, out.data()));
  EXPECT_FAULT(barrier_misuse, "for 16 threads",
               simt::launch({}, 32, 0, {}, planted::barrier_of_half_a_warp, out.data()));
}

TEST(Checker, SharedMemoryAccess) {
  DeviceBuffer<int> out(32);
  EXPECT_FAULT(
      out_of_bounds, "shared memory +0x80   4-byte access by warp 0 lane 31",
      simt::launch({}, 32, 128, {.check = false}, planted::shared_out_of_bounds, out.data()));
  EXPECT_FAULT(misaligned, "expected a multiple of 8",
               simt::launch({}, 32, 512, {}, planted::shared_misaligned, out.data()));
  EXPECT_FAULT(uninitialised_read, "shared memory +0x0",
               simt::launch({}, 32, 512, {}, planted::shared_uninitialised, out.data()));
}
TEST(Checker, LongRunsAreNotMistakenForRaces) {
  DeviceBuffer<int> out(64);
  const int rounds = 140000;  // more than twice the segments that the shadow memory can number
  EXPECT_CLEAN(simt::launch({}, 64, 256, {}, planted::long_run, out.data(), rounds));
  for (int t = 0; t < 64; ++t) EXPECT_EQ(out[t], rounds / 1000);
}

template <Use First, Use Second>
std::optional<CheckerFault> two_blocks(int workers = 1) {
  DeviceBuffer<int> data(3, Access::in_out);
  data[0] = 0;
  return fault_of([&] {
    simt::launch({2}, 32, 0, {.workers = workers}, planted::two_blocks<First, Second>, data.data());
  });
}
TEST(Checker, BlocksOfALaunchAreNotOrdered) {
  const auto race = [](const std::optional<CheckerFault>& fault, const std::string& text) {
    ASSERT_TRUE(fault) << text;
    EXPECT_EQ(fault->kind(), FaultKind::data_race) << fault->what();
    EXPECT_NE(std::string(fault->what()).find(text), std::string::npos) << fault->what();
  };
  race(two_blocks<Use::write, Use::write>(), "written by block (0,0,0)");
  race(two_blocks<Use::write, Use::read>(), "written by block (0,0,0)");
  race(two_blocks<Use::read, Use::write>(), "read by block (0,0,0)");
  race(two_blocks<Use::add, Use::write>(), "updated atomically by block (0,0,0)");
  race(two_blocks<Use::write, Use::add>(), "written by block (0,0,0)");
  race(two_blocks<Use::add, Use::read>(), "updated atomically by block (0,0,0)");
  race(two_blocks<Use::read, Use::add>(), "read by block (0,0,0)");
  race(two_blocks<Use::write, Use::write>(2), "written by block (");
  EXPECT_FALSE((two_blocks<Use::read, Use::read>()));
  EXPECT_FALSE((two_blocks<Use::add, Use::add>()));
  EXPECT_FALSE((two_blocks<Use::none, Use::write>()));
}
TEST(Checker, LaunchesAndOneBlockAreOrdered) {
  DeviceBuffer<int> data(2);
  for (int i = 0; i < 2; ++i)
    EXPECT_CLEAN(simt::launch({}, 32, 0, {}, planted::one_block, data.data()));
  EXPECT_EQ(data[1], 2);
}

TEST(Checker, GlobalMemoryAccess) {
  DeviceBuffer<int> data(8, Access::input), out(4), unwritten(4);
  std::fill(data.begin(), data.end(), 1);
  data.mark(4, 1, Access::none);
  const int* in = data.data();
  const auto load = [&](const int* p, int offset) {
    simt::launch({}, 32, 0, {}, planted::load_at, p, offset, out.data());
  };
  EXPECT_CLEAN(load(in, 7));
  EXPECT_FAULT(out_of_bounds, "global memory +0x20 of 32 bytes", load(in, 8));
  EXPECT_FAULT(out_of_bounds, "global memory -0x4", load(in, -1));
  EXPECT_FAULT(out_of_bounds, "padding or a guard zone", load(in, 4));
  EXPECT_FAULT(out_of_bounds, "no registered memory", load(nullptr, 0));
  // A pointer into one buffer does not reach another, wherever that stands.
  EXPECT_FAULT(out_of_bounds, "outside the buffer", load(in, static_cast<int>(out.data() - in)));
  EXPECT_FAULT(uninitialised_read, "never written", load(unwritten.data(), 2));
  EXPECT_FAULT(read_only_write, "registered as an input",
               simt::launch({}, 32, 0, {}, planted::store_at, data.data(), 0));
  EXPECT_FAULT(misaligned, "expected an address that is a multiple of 16",
               simt::launch({}, 32, 0, {}, planted::load_wide, in, 1, out.data()));
  EXPECT_FAULT(misaligned, "expected an address that is a multiple of 16",
               simt::launch({}, 32, 512, {}, planted::copy_from, in, 2));
}
TEST(Checker, UniformMustBeUniform) {
  DeviceBuffer<int> out(1);
  EXPECT_FAULT(divergent_collective, "another value than lane 0",
               simt::launch({}, 32, 0, {}, planted::not_uniform, out.data()));
}

#if defined(ATTN_ENGINE_THREAD)
TEST(Checker, DivergentCollectives) {
  DeviceBuffer<int> out(64);
  EXPECT_FAULT(divergent_collective, "16 lanes wait in a shuffle",
               simt::launch({}, 64, 0, {}, planted::divergent_shuffle, out.data()));
  EXPECT_FAULT(divergent_collective, "16 lanes wait in mma_m16n8k8_tf32",
               simt::launch({}, 32, 0, {}, planted::divergent_mma_tf32, out.data()));
  EXPECT_FAULT(divergent_collective, "1 lanes of warp 0 wait in a shuffle",
               simt::launch({}, 32, 0, {}, planted::lonely_shuffle, out.data()));
  EXPECT_CLEAN(simt::launch({}, 64, 0, {}, planted::lane_branches, out.data()));
  EXPECT_EQ(out[2], 6);
}
#endif

struct Tracked {  // counts the copies of a functor that live in fibers
  static inline int alive = 0;
  Tracked() { ++alive; }
  Tracked(const Tracked&) { ++alive; }
  ~Tracked() { --alive; }
};
struct Throws {
  int at;
  Tracked tracked;
  int operator()(int t) const {
    if (t == at) throw std::range_error("thread " + std::to_string(t));
    return t;
  }
};
TEST(Checker, ExceptionOfAFunctorReachesTheCaller) {
  const int before = Tracked::alive;
  for (const int workers : {1, 2})
    for (const int at : {0, 70, 127}) {
      DeviceBuffer<int> out(128);
      std::string text;
      try {
        simt::launch({1}, 128, 0, {.workers = workers}, planted::apply_functor<Throws>,
                     Throws{at, {}}, out.data());
      } catch (const std::range_error& e) {
        text = e.what();
      }
      EXPECT_EQ(text, "thread " + std::to_string(at));
      EXPECT_EQ(Tracked::alive, before) << "a fiber was abandoned, not unwound";
      EXPECT_TRUE(pipeline_is_right<Plant::none>({}));
    }
  DeviceBuffer<int> out(128);
  simt::launch({1}, 128, 0, {}, planted::apply_functor<Throws>, Throws{-1, {}}, out.data());
  EXPECT_EQ(out[77], 77);
}

TEST(Launch, RefusesWhatNoGpuTakes) {
  const auto refused = [](Grid grid, int threads, std::size_t smem, const std::string& text) {
    try {
      simt::launch(grid, threads, smem, {}, [] {});
      FAIL() << text;
    } catch (const std::invalid_argument& e) {
      EXPECT_NE(std::string(e.what()).find(text), std::string::npos) << e.what();
    }
  };
  refused({0}, 32, 0, "grid.x is 0");
  refused({1, 65536}, 32, 0, "grid.y is 65536");
  refused({1, 1, 0}, 32, 0, "grid.z is 0");
  refused({}, 48, 0, "threads is 48");
  refused({}, 2048, 0, "threads is 2048");
  refused({}, 32, 1 << 20, "smem_bytes is 1048576");
  simt::launch({}, 1024, 227 * 1024, {}, [] {});
}

TEST(Launch, KeepsWorkersApart) {
  // Launches of many shapes on several workers, each with several blocks.
  for (int round = 0; round < 6; ++round)
    for (const int threads : {32, 64, 256}) {
      const int blocks = 7;
      DeviceBuffer<int> out(static_cast<std::size_t>(blocks * threads));
      const auto kernel = [p = out.data(), threads] {
        simt::stg(p, simt::thread_id() + simt::block_x() * threads, simt::block_x());
      };
      simt::launch({blocks}, threads, 64, {.workers = 1 + round % 3}, kernel);
      for (int i = 0; i < blocks * threads; ++i) ASSERT_EQ(out[i], i / threads);
    }
}

TEST(Launch, EnginesAreTold) {
#if defined(ATTN_ENGINE_WARP)
  EXPECT_STREQ(simt::engine_name(), "warp");
#else
  EXPECT_STREQ(simt::engine_name(), "thread");
#endif
}

}  // namespace
}  // namespace attn
