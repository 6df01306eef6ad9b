#include "fuzz/campaign.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
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

/// Runs the shard's cases first .. first + count - 1 on several threads. Fewer of them when time
/// is up: those from some case on are missing.
std::vector<std::optional<Ran>> run_batch(const CampaignOptions& o, std::uint64_t first,
                                          std::uint64_t count, Clock::time_point start) {
  const auto time_is_up = [&] { return o.seconds > 0 && seconds_since(start) > o.seconds; };
  std::vector<std::optional<Ran>> ran(count);
  std::atomic<std::uint64_t> next{0};
  std::exception_ptr error;
  std::mutex lock;
  const auto work = [&] {
    try {
      for (std::uint64_t i; (next == 0 || !time_is_up()) && (i = next++) < count;) {
        std::unique_lock turn(drawing);
        rc::Shrinkable<Case> drawn = drawn_case(o.fixed, o.seed, number_of(o.shard, first + i));
        Case value = drawn.value();
        turn.unlock();
        Verdict verdict = run_case(value, o.run);
        ran[i] = Ran{std::move(drawn), std::move(value), std::move(verdict)};
      }
    } catch (...) {
      const std::lock_guard guard(lock);
      error = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  for (int t = 1; t < o.jobs; ++t) threads.emplace_back(work);
  work();
  for (std::thread& t : threads) t.join();
  if (error) std::rethrow_exception(error);
  return ran;
}

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

/// The failure of a case of this number, shrunk.
static Failure shrunk_failure(const CampaignOptions& o, std::uint64_t index, const Ran& ran) {
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

/// Keeps the first refusal, but one of plain tensors before any other: with tables and lengths of
/// the user's those of caches and packed sequences may not fit.
static void note_refusal(CampaignResult& result, const Case& c, const std::string& reason) {
  const bool plain = implementation_named(c.implementation).sequences == Sequences::dense;
  if (!result.refused.empty() && (result.refused_is_plain || !plain)) return;
  result.refused = reason;
  result.refused_case = to_text(c);
  result.refused_is_plain = plain;
}

CampaignResult run_campaign(const CampaignOptions& o,
                            const std::function<void(const CampaignResult&)>& progress) {
  constexpr std::uint64_t batch = 64;
  const Clock::time_point start = Clock::now();
  CampaignResult result;
  double reported = 0;
  const std::uint64_t own = cases_of(o.shard, o.cases);
  while ((o.cases == 0 || result.cases < own) && (o.seconds == 0 || result.seconds < o.seconds)) {
    const std::uint64_t first = result.cases;
    const std::uint64_t size = o.cases == 0 ? batch : std::min(batch, own - first);
    const std::vector<std::optional<Ran>> ran = run_batch(o, first, size, start);
    for (std::uint64_t i = 0; i < size && ran[i]; ++i) {
      const Verdict& v = ran[i]->verdict;
      const Case& c = ran[i]->value;
      ++result.cases;
      ++result.outcomes[v.outcome];
      count(result.coverage, c, v);
      if (v.outcome == Outcome::refused) note_refusal(result, c, v.reason);
      if (is_failure(v.outcome)) {
        result.failure = shrunk_failure(o, number_of(o.shard, first + i), *ran[i]);
        result.seconds = seconds_since(start);
        return result;
      }
    }
    result.seconds = seconds_since(start);
    if (progress && result.seconds - reported > 0.5) {
      reported = result.seconds;
      progress(result);
    }
  }
  return result;
}

}  // namespace attn::fuzz
