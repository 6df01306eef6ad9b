#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace attn::fuzz {

/// Calls `on_timeout` in a thread of its own, unless it is destroyed within `seconds`.
class Watchdog {
 public:
  /// The time begins now.
  Watchdog(double seconds, std::function<void()> on_timeout)
      : thread_([this, seconds, on_timeout = std::move(on_timeout)] {
          std::unique_lock lock(lock_);
          if (!stop_.wait_for(lock, std::chrono::duration<double>(seconds),
                              [this] { return stopped_; }))
            on_timeout();
        }) {}
  ~Watchdog() {
    {
      const std::lock_guard guard(lock_);
      stopped_ = true;
    }
    stop_.notify_all();
    thread_.join();
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  std::mutex lock_;
  std::condition_variable stop_;
  bool stopped_ = false;
  std::thread thread_;  // the last member: it uses the others
};

}  // namespace attn::fuzz
