#include "fuzz/campaign.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "fuzz/case_sequences.h"
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

namespace {

using Add = std::function<void(const char* dimension, const std::string& region)>;

void count_shape(const Add& add, const Case& c) {
  const TileSize tile = tile_of(c);
  add("tile", c.small_tile ? "small" : "production");
  add("spans", c.sq > tile.q && c.skv > tile.kv ? "two query and two key tiles" : "fewer tiles");
  add("queries", bucket(c.sq));
  add("keys", bucket(c.skv));
  add("lengths", c.sq == c.skv ? "Sq = Skv" : c.sq < c.skv ? "Sq < Skv" : "Sq > Skv");
  add("heads", c.hq == c.hkv ? "MHA" : c.hkv == 1 ? "MQA" : "GQA");
  if (c.hkv > 0) add("group", std::to_string(c.hq / c.hkv));
  add("head size", c.d == c.dv ? (c.d % 8 ? "D = Dv, odd" : "D = Dv, multiple of 8") : "D != Dv");
  if (std::max(c.d, c.dv) > 128) add("head size", "beyond 128");
}

/// What only some implementations have.
void count_kind(const Add& add, const Case& c) {
  const Implementation& row = implementation_named(c.implementation);
  if (row.sequences != Sequences::dense) {
    const bool zero_queries = std::count(c.query_lengths.begin(), c.query_lengths.end(), 0) > 0,
               zero_keys = std::count(c.key_lengths.begin(), c.key_lengths.end(), 0) > 0;
    add("sequences", bucket(c.b));
    if (zero_queries) add("sequences", "some without queries");
    if (zero_keys) add("sequences", "some without keys");
  }
  if (has_cache(row)) add("splits", c.splits ? std::to_string(c.splits) : "chosen");
  if (row.sequences == Sequences::paged) add("page", std::to_string(c.page_size));
  if (c.blocks) {
    const TileSize tile = tile_of(c);
    const bool whole = c.blocks->q % tile.q == 0 && c.blocks->kv % tile.kv == 0;
    add("blocks", whole ? "whole tiles" : "not whole tiles");
  }
  if (row.pass == Pass::backward) add("dLSE", c.d_lse ? "given" : "none");
  if (row.pass == Pass::forward) add("row max", c.row_max ? "wanted" : "not wanted");
  add("sink", c.sink ? "given" : "none");
  add("dropout", c.dropout != 0 ? std::to_string(c.dropout).substr(0, 3) : "none");
}

void count_expressions(const Add& add, const Case& c) {
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
}

}  // namespace

std::vector<PlantedFaultInfo> hunted_faults() {
  std::vector<PlantedFaultInfo> faults;
  std::copy_if(planted_faults.begin(), planted_faults.end(), std::back_inserter(faults),
               [](const PlantedFaultInfo& f) { return f.fault != PlantedFault::M32; });
  return faults;
}

void count(Coverage& coverage, const Case& c, const Verdict& verdict) {
  const Add add = [&](const char* dimension, const std::string& region) {
    ++coverage[dimension][region];
  };
  add("implementation", c.implementation);
  add("fill", name_of(c.fill));
  add("layout", name_of(c.layout));
  add("dtype", name_of(c.dtype));
  add("scale", !c.scale       ? "default"
               : *c.scale > 0 ? "positive"
               : *c.scale < 0 ? "negative"
                              : "zero");
  count_shape(add, c);
  count_kind(add, c);
  count_expressions(add, c);
  const RowCounts& rows = verdict.rows;
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
      if (v.outcome == Outcome::refused) note_refusal(result, c, v.reason);
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
