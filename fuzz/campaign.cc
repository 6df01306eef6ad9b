#include "fuzz/campaign.h"

#include <algorithm>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "fuzz/clock.h"
#include "fuzz/random.h"

namespace attn::fuzz {
namespace {

struct Ran {
  rc::Shrinkable<Case> drawn;
  Case value;
  Verdict verdict;
};

/// The number in the campaign of case `i` of a shard.
std::uint64_t number_of(const Shard& shard, std::uint64_t i) {
  return shard.index + i * shard.count;
}

/// RapidCheck keeps what a generator draws from in globals: one thread draws at a time.
std::mutex drawing;

/// Keeps the first refusal, but one of plain tensors before any other: with tables and lengths of
/// the user's those of caches and packed sequences may not fit.
void note_refusal(CampaignResult& result, const Case& c, const std::string& reason) {
  const bool plain = implementation_named(c.implementation).sequences == Sequences::dense;
  if (!result.refused.empty() && (result.refused_is_plain || !plain)) return;
  result.refused = reason;
  result.refused_case = to_text(c);
  result.refused_is_plain = plain;
}

/// The failure of a case of this number, shrunk.
Failure shrunk_failure(const CampaignOptions& o, std::uint64_t index, const Ran& ran) {
  Failure failure{index, ran.value, {}, ran.verdict};
  const auto fails = [&](const Case& smaller) {
    Verdict v = run_case(smaller, o.run);
    if (!is_failure(v.outcome)) return false;
    failure.verdict = std::move(v);
    return true;
  };
  failure.shrunk = shrink(ran.drawn, fails, o.shrink_seconds);
  return failure;
}

/// Threads take one case after another, and none waits for the others. Cases are counted in their
/// order, up to the first that fails, so that the result does not depend on the threads.
class Campaign {
 public:
  Campaign(const CampaignOptions& options,
           const std::function<void(const CampaignResult&)>& progress)
      : o_(options), progress_(progress), cases_(cases_of(o_.shard, o_.cases)) {}

  CampaignResult run() {
    std::vector<std::thread> threads;
    for (int t = 1; t < o_.jobs; ++t) threads.emplace_back([this] { work(); });
    work();
    for (std::thread& t : threads) t.join();
    if (error_) std::rethrow_exception(error_);
    if (failing_)
      result_.failure = shrunk_failure(o_, number_of(o_.shard, result_.cases - 1), *failing_);
    result_.seconds = seconds_since(start_);
    return std::move(result_);
  }

 private:
  void work() {
    std::unique_lock guard(lock_);
    while (!is_over()) {
      const std::uint64_t i = taken_++;
      guard.unlock();
      std::optional<Ran> ran;
      std::exception_ptr error;
      try {
        ran = run_number(i);
      } catch (...) {
        error = std::current_exception();
      }
      guard.lock();
      if (error)
        error_ = error;
      else
        count_in_order(i, std::move(*ran));
    }
  }

  /// At least one case is run, whatever the time.
  bool is_over() const {
    return error_ || failing_ || (o_.cases != 0 && taken_ == cases_) ||
           (taken_ > 0 && o_.seconds > 0 && seconds_since(start_) > o_.seconds);
  }

  Ran run_number(std::uint64_t i) const {
    std::unique_lock turn(drawing);
    rc::Shrinkable<Case> drawn = drawn_case(o_.fixed, o_.seed, number_of(o_.shard, i));
    Case value = drawn.value();
    turn.unlock();
    Verdict verdict = run_case(value, o_.run);
    return {std::move(drawn), std::move(value), std::move(verdict)};
  }

  void count_in_order(std::uint64_t i, Ran ran) {
    early_.emplace(i, std::move(ran));
    while (!failing_ && !early_.empty() && early_.begin()->first == result_.cases) {
      count(early_.begin()->second);
      early_.erase(early_.begin());
    }
    result_.seconds = seconds_since(start_);
    if (progress_ && !failing_ && result_.seconds - reported_ > 0.5) {
      reported_ = result_.seconds;
      progress_(result_);
    }
  }

  void count(Ran& ran) {
    ++result_.cases;
    ++result_.outcomes[ran.verdict.outcome];
    fuzz::count(result_.coverage, ran.value, ran.verdict);
    if (ran.verdict.outcome == Outcome::refused)
      note_refusal(result_, ran.value, ran.verdict.reason);
    if (is_failure(ran.verdict.outcome)) failing_ = std::move(ran);
  }

  const CampaignOptions& o_;
  const std::function<void(const CampaignResult&)>& progress_;
  const std::uint64_t cases_;
  const Clock::time_point start_ = Clock::now();
  std::mutex lock_;  // of all that follows
  std::uint64_t taken_ = 0;
  std::map<std::uint64_t, Ran> early_;  // have run, while one before them has not
  std::optional<Ran> failing_;
  std::exception_ptr error_;
  CampaignResult result_;
  double reported_ = 0;
};

}  // namespace

std::uint64_t cases_of(const Shard& shard, std::uint64_t cases) {
  return cases <= shard.index ? 0 : (cases - shard.index - 1) / shard.count + 1;
}

std::string report(const Failure& f) {
  return report(f.shrunk, f.verdict) + "shrunk from  '" + to_text(f.original) + "'\n";
}

rc::Shrinkable<Case> drawn_case(const Fixed& fixed, std::uint64_t seed, std::uint64_t index) {
  constexpr int size = 100;  // RapidCheck's largest usual size; our generators do not look at it
  return cases(fixed)(rc::Random(hash_of(seed, index)), size);
}

std::vector<PlantedFaultInfo> hunted_faults() {
  std::vector<PlantedFaultInfo> faults;
  std::copy_if(planted_faults.begin(), planted_faults.end(), std::back_inserter(faults),
               [](const PlantedFaultInfo& f) { return f.fault != PlantedFault::M32; });
  return faults;
}

Case shrink(const rc::Shrinkable<Case>& failing, const std::function<bool(const Case&)>& fails,
            double most_seconds) {
  const Clock::time_point start = Clock::now();
  rc::Shrinkable<Case> best = failing;
  for (bool progress = true; progress;) {
    progress = false;
    auto candidates = best.shrinks();
    while (auto candidate = candidates.next()) {
      if (seconds_since(start) > most_seconds) return best.value();
      if (!fails(candidate->value())) continue;
      best = std::move(*candidate);
      progress = true;
      break;
    }
  }
  return best.value();
}

CampaignResult run_campaign(const CampaignOptions& o,
                            const std::function<void(const CampaignResult&)>& progress) {
  return Campaign(o, progress).run();
}

}  // namespace attn::fuzz
