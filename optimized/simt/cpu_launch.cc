// Runs the blocks of a grid on worker threads, each of which keeps its block state between
// launches.
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>

#include "optimized/simt/cpu_block.h"

namespace attn::simt::cpu {
namespace {

constexpr int kMaxThreads = 1024, kMaxGridYZ = 65535;
constexpr std::size_t kMaxSmemBytes = 227 * 1024;  // of a block on sm_90

Block& local_block() {
  thread_local Block block;
  return block;
}

// Threads that sleep between launches. The thread that launches is one of the workers.
class WorkerPool {
 public:
  static WorkerPool& instance() {
    static WorkerPool pool;
    return pool;
  }
  ~WorkerPool() {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    for (std::thread& t : threads_) t.join();
  }

  /// Calls `work` on `workers` threads, this one included; returns when all are done.
  void run(int workers, const std::function<void()>& work) {
    if (workers <= 1) return work();
    std::lock_guard one_launch(launch_mutex_);
    std::unique_lock lock(mutex_);
    while (static_cast<int>(threads_.size()) < workers - 1)
      threads_.emplace_back([this] { loop(); });
    work_ = &work;
    to_start_ = running_ = workers - 1;
    lock.unlock();
    wake_.notify_all();
    work();
    lock.lock();
    done_.wait(lock, [&] { return running_ == 0; });
  }

 private:
  void loop() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return stop_ || to_start_ > 0; });
      if (stop_) return;
      --to_start_;
      const auto* work = work_;
      lock.unlock();
      (*work)();
      lock.lock();
      if (--running_ == 0) done_.notify_all();
    }
  }

  std::mutex launch_mutex_, mutex_;
  std::condition_variable wake_, done_;
  std::vector<std::thread> threads_;
  const std::function<void()>* work_ = nullptr;
  int to_start_ = 0, running_ = 0;
  bool stop_ = false;
};

void require(bool ok, const char* argument, std::int64_t value, const std::string& expected) {
  if (!ok)
    throw std::invalid_argument("launch: " + std::string(argument) + " is " +
                                std::to_string(value) + ", expected " + expected);
}

int validated_blocks(const Grid& grid, int threads, std::size_t smem_bytes,
                     const LaunchOptions& options) {
  require(grid.x >= 1, "grid.x", grid.x, "at least 1");
  require(grid.y >= 1 && grid.y <= kMaxGridYZ, "grid.y", grid.y, "1 to 65535");
  require(grid.z >= 1 && grid.z <= kMaxGridYZ, "grid.z", grid.z, "1 to 65535");
  require(threads >= 32 && threads <= kMaxThreads && threads % 32 == 0, "threads", threads,
          "a multiple of 32 from 32 to 1024");
  require(smem_bytes <= kMaxSmemBytes, "smem_bytes", static_cast<std::int64_t>(smem_bytes),
          "at most " + std::to_string(kMaxSmemBytes));
  require(options.workers >= 1, "options.workers", options.workers, "at least 1");
  const std::int64_t blocks = std::int64_t{grid.x} * grid.y * grid.z;
  require(blocks < (std::int64_t{1} << 30) && blocks / grid.x / grid.y == grid.z,
          "the number of blocks", blocks, "fewer than 2^30 on a CPU engine");
  return static_cast<int>(blocks);
}

std::vector<int> random_order(int blocks, std::uint64_t seed) {
  std::vector<int> order(static_cast<std::size_t>(blocks));
  std::iota(order.begin(), order.end(), 0);
  std::mt19937_64 random(seed);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  return order;
}

}  // namespace

void run_grid(Grid grid, int threads, std::size_t smem_bytes, const LaunchOptions& options,
              int lanes_per_strand, std::function<void()> body) {
  static std::atomic<std::uint32_t> launches{0};
  const int blocks = validated_blocks(grid, threads, smem_bytes, options);
  if (self) throw std::logic_error("launch: called from inside a kernel");
  LaunchPlan plan;
  plan.grid = grid;
  plan.threads = threads;
  plan.smem_bytes = smem_bytes;
  plan.lanes_per_strand = lanes_per_strand;
  plan.options = options;
  plan.body = std::move(body);
  plan.id = ++launches;

  std::vector<int> order;
  if (options.schedule_seed != 0) order = random_order(blocks, options.schedule_seed);
  std::atomic<int> next{0};
  std::mutex failure_mutex;
  std::exception_ptr failure;
  WorkerPool::instance().run(std::min(options.workers, blocks), [&] {
    try {
      Block& block = local_block();
      block.configure(plan);
      for (int i; (i = next.fetch_add(1)) < blocks;)
        block.run(order.empty() ? i : order[static_cast<std::size_t>(i)]);
    } catch (...) {
      next = blocks;
      std::lock_guard lock(failure_mutex);
      if (!failure) failure = std::current_exception();
    }
  });
  if (failure) std::rethrow_exception(failure);
}

}  // namespace attn::simt::cpu
