#include "fuzz/campaign.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "fuzz/random.h"

namespace attn::fuzz {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Ran {
  rc::Shrinkable<Case> drawn;
  Case value;
  Verdict verdict;
};

/// RapidCheck keeps what a generator draws from in globals: one thread draws at a time.
std::mutex drawing;

/// Runs cases first .. first + count - 1 on several threads.
std::vector<std::optional<Ran>> run_batch(const CampaignOptions& o, std::uint64_t first,
                                          std::uint64_t count) {
  std::vector<std::optional<Ran>> ran(count);
  std::atomic<std::uint64_t> next{0};
  std::exception_ptr error;
  std::mutex lock;
  const auto work = [&] {
    try {
      for (std::uint64_t i; (i = next++) < count;) {
        std::unique_lock turn(drawing);
        rc::Shrinkable<Case> drawn = drawn_case(o.fixed, o.seed, first + i);
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

std::string bucket(int n) {
  for (const int limit : {0, 1, 16, 32, 64, 128})
    if (n <= limit) return "<=" + std::to_string(limit);
  return ">128";
}

}  // namespace

rc::Shrinkable<Case> drawn_case(const Fixed& fixed, std::uint64_t seed, std::uint64_t index) {
  constexpr int size = 100;  // RapidCheck's largest usual size; our generators do not look at it
  return cases(fixed)(rc::Random(hash_of(seed, index)), size);
}

void count(Coverage& coverage, const Case& c, const Verdict& verdict) {
  const auto add = [&](const char* dimension, const std::string& region) {
    ++coverage[dimension][region];
  };
  const int tile_q = c.small_tile ? 64 : 128, tile_kv = c.small_tile ? 32 : 64;
  add("fill", name_of(c.fill));
  add("layout", name_of(c.layout));
  add("dtype", name_of(c.dtype));
  add("tile", c.small_tile ? "small" : "production");
  add("spans", c.sq > tile_q && c.skv > tile_kv ? "two query and two key tiles" : "fewer tiles");
  add("queries", bucket(c.sq));
  add("keys", bucket(c.skv));
  add("lengths", c.sq == c.skv ? "Sq = Skv" : c.sq < c.skv ? "Sq < Skv" : "Sq > Skv");
  add("heads", c.hq == c.hkv ? "MHA" : c.hkv == 1 ? "MQA" : "GQA");
  add("head size", c.d == c.dv ? (c.d % 8 ? "D = Dv, odd" : "D = Dv, multiple of 8") : "D != Dv");
  add("scale", !c.scale       ? "default"
               : *c.scale > 0 ? "positive"
               : *c.scale < 0 ? "negative"
                              : "zero");
  add("mod size", c.mod->size == 1 ? "score" : c.mod->size <= 8 ? "small" : "large");
  add("mask size", c.mask->size == 1 ? "constant" : c.mask->size <= 8 ? "small" : "large");
  std::vector<bool> seen(op_count);
  const std::function<void(const Node&)> visit = [&](const Node& n) {
    if (!seen[static_cast<int>(n.op)]) add("operation", syntax_of(n.op).name);
    seen[static_cast<int>(n.op)] = true;
    for (const Expression& arg : n.args) visit(*arg);
  };
  visit(*c.mod);
  visit(*c.mask);
  for (const TableSpec& t : c.tables) add("table rank", std::to_string(t.dims.size()));
  const ForwardBounds::Rows& rows = verdict.rows;
  if (rows.empty > 0) add("rows", "some empty");
  if (rows.one_hot > 0) add("rows", "some proved one-hot");
  if (rows.counted > 0) add("rows", "some proved uniform");
  if (rows.powers > 0) add("rows", "some of powers of two");
  if (rows.general > 0) add("rows", "some general");
}

Case shrink(const rc::Shrinkable<Case>& failing, const RunOptions& options, Verdict& verdict,
            double most_seconds) {
  const Clock::time_point start = Clock::now();
  rc::Shrinkable<Case> best = failing;
  for (bool progress = true; progress;) {
    progress = false;
    auto candidates = best.shrinks();
    while (auto candidate = candidates.next()) {
      if (seconds_since(start) > most_seconds) return best.value();
      Verdict v = run_case(candidate->value(), options);
      if (!is_failure(v.outcome)) continue;
      best = std::move(*candidate);
      verdict = std::move(v);
      progress = true;
      break;
    }
  }
  return best.value();
}

CampaignResult run_campaign(const CampaignOptions& o,
                            const std::function<void(const CampaignResult&)>& progress) {
  constexpr std::uint64_t batch = 64;
  const Clock::time_point start = Clock::now();
  CampaignResult result;
  double reported = 0;
  while ((o.cases == 0 || result.cases < o.cases) &&
         (o.seconds == 0 || result.seconds < o.seconds)) {
    const std::uint64_t first = result.cases;
    const std::uint64_t size = o.cases == 0 ? batch : std::min(batch, o.cases - first);
    const std::vector<std::optional<Ran>> ran = run_batch(o, first, size);
    for (std::uint64_t i = 0; i < size; ++i) {
      const Verdict& v = ran[i]->verdict;
      const Case& c = ran[i]->value;
      ++result.cases;
      ++result.outcomes[v.outcome];
      count(result.coverage, c, v);
      if (v.outcome == Outcome::refused && result.refused.empty()) {
        result.refused = v.reason;
        result.refused_case = to_text(c);
      }
      if (is_failure(v.outcome)) {
        Failure failure{first + i, c, {}, v};
        failure.shrunk = shrink(ran[i]->drawn, o.run, failure.verdict, o.shrink_seconds);
        result.failure = std::move(failure);
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
