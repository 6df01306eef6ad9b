#include "reference/sequences.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace attn {
namespace {

void require(bool ok, const std::string& message) {
  if (!ok) throw std::invalid_argument(message);
}

std::string entry(const char* name, std::size_t at, std::int64_t value) {
  return std::string(name) + ": entry " + std::to_string(at) + " is " + std::to_string(value);
}

void check_cumulative(const char* name, std::span<const std::int32_t> cu, int total) {
  require(!cu.empty(), std::string(name) + ": no entries, expected one more than sequences");
  require(cu.front() == 0, entry(name, 0, cu.front()) + ", expected 0");
  for (std::size_t n = 1; n < cu.size(); ++n)
    require(cu[n - 1] <= cu[n],
            entry(name, n, cu[n]) + ", expected at least " + std::to_string(cu[n - 1]));
  require(cu.back() == total, entry(name, cu.size() - 1, cu.back()) +
                                  ", expected the length of the packed axis, " +
                                  std::to_string(total));
}

}  // namespace

std::vector<Sequence> dense_sequences(const Problem& problem) {
  std::vector<Sequence> sequences;
  for (int b = 0; b < problem.b; ++b)
    sequences.push_back({b, problem.sizes(), {b, 0, problem.sq}, {b, 0, problem.skv}});
  return sequences;
}

std::vector<Sequence> packed_sequences(const Problem& problem, std::span<const std::int32_t> cu_q,
                                       std::span<const std::int32_t> cu_kv) {
  require(problem.b == 1,
          "q: " + std::to_string(problem.b) + " batch entries, expected packed sequences in 1");
  check_cumulative("cu_q", cu_q, problem.sq);
  check_cumulative("cu_kv", cu_kv, problem.skv);
  require(cu_kv.size() == cu_q.size(), "cu_kv: " + std::to_string(cu_kv.size()) +
                                           " entries, expected " + std::to_string(cu_q.size()) +
                                           " as in cu_q");
  std::vector<Sequence> sequences;
  const int count = static_cast<int>(cu_q.size()) - 1;
  for (int b = 0; b < count; ++b) {
    const RowRange queries{0, cu_q[b], cu_q[b + 1] - cu_q[b]};
    const RowRange keys{0, cu_kv[b], cu_kv[b + 1] - cu_kv[b]};
    const Sizes sizes{count,      problem.hq,    problem.hkv, queries.count,
                      keys.count, queries.first, keys.first};
    sequences.push_back({b, sizes, queries, keys});
  }
  return sequences;
}

std::vector<Sequence> cached_sequences(const Problem& problem,
                                       std::span<const std::int32_t> lengths) {
  require(lengths.size() == static_cast<std::size_t>(problem.b),
          "lengths: " + std::to_string(lengths.size()) + " entries, expected one a batch entry, " +
              std::to_string(problem.b));
  std::vector<Sequence> sequences;
  for (int b = 0; b < problem.b; ++b) {
    require(0 <= lengths[b] && lengths[b] <= problem.skv, entry("lengths", b, lengths[b]) +
                                                              ", expected 0 to the capacity " +
                                                              std::to_string(problem.skv));
    Sizes sizes = problem.sizes();
    sizes.skv = lengths[b];
    sizes.q_offset = lengths[b] - problem.sq;
    sequences.push_back({b, sizes, {b, 0, problem.sq}, {b, 0, lengths[b]}});
  }
  return sequences;
}

Sizes largest_sizes(std::span<const Sequence> sequences) {
  Sizes largest;
  for (const Sequence& sequence : sequences)
    for (int Sizes::*n : {&Sizes::b, &Sizes::hq, &Sizes::hkv, &Sizes::sq, &Sizes::skv})
      largest.*n = std::max(largest.*n, sequence.sizes.*n);
  return largest;
}

void check_page_table(TensorView<const std::int32_t, 2> page_table,
                      const std::vector<Sequence>& sequences, std::int64_t pages, int page_size) {
  for (const Sequence& sequence : sequences)
    for (int n = 0; n * std::int64_t{page_size} < sequence.keys.count; ++n) {
      const std::int32_t page = page_table(sequence.b, n);
      require(0 <= page && page < pages, "page_table: entry [" + std::to_string(sequence.b) + ", " +
                                             std::to_string(n) + "] is " + std::to_string(page) +
                                             ", expected 0 to " + std::to_string(pages - 1));
    }
}

}  // namespace attn
