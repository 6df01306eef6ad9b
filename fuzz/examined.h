#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "fuzz/examination.h"
#include "fuzz/functors.h"
#include "fuzz/random.h"

/// What the examinations of mods and of masks share.
namespace attn::fuzz {

/// The functors of a case in a problem of other lengths.
class Examined {
 public:
  /// Makes the tables of the case for these lengths.
  /// @throws std::invalid_argument if they cannot be made or do not fit a type of the user's
  Examined(const Case& c, const Sizes& of)
      : sizes(of), store_(c.tables, of, c.seed), functors_(functors_of(c, store_.tables())) {}
  const Functors& functors() const { return *functors_; }  ///< of the case, on these tables
  /// The same, to be asked one pair at a time.
  const Probe& probe() const { return functors_->probe(); }

  const Sizes sizes;  ///< the lengths, those of the case replaced

 private:
  TableStore store_;
  std::unique_ptr<Functors> functors_;
};

/// The lengths, those that are fixed put in.
inline Sizes with_fixed(Sizes sizes, const FixedLengths& fixed) {
  const auto keep = [](int& length, int given) { length = given > 0 ? given : length; };
  keep(sizes.b, fixed.b), keep(sizes.hq, fixed.hq), keep(sizes.hkv, fixed.hkv);
  keep(sizes.sq, fixed.sq), keep(sizes.skv, fixed.skv);
  if (sizes.hq % sizes.hkv != 0) (fixed.hq > 0 ? sizes.hkv : sizes.hq) = fixed.hq + fixed.hkv;
  return sizes;
}

/// Lengths that pairs are looked at in: Sq below, at and above Skv.
inline std::vector<Sizes> examined_sizes(const FixedLengths& fixed) {
  std::vector<Sizes> all{{2, 4, 2, 33, 65, 0, 0}, {1, 4, 4, 48, 48, 0, 0}, {2, 2, 1, 70, 20, 0, 0}};
  for (Sizes& sizes : all) sizes = with_fixed(sizes, fixed);
  return all;
}

/// Every table of the case has few entries in a problem of these lengths.
inline bool tables_fit(const Case& c, const Sizes& sizes) {
  constexpr double most = 1 << 24;
  return std::all_of(c.tables.begin(), c.tables.end(), [&](const TableSpec& t) {
    double entries = 1;
    for (const std::int64_t extent : extents_of(t, sizes)) entries *= static_cast<double>(extent);
    return entries <= most;
  });
}

/// The largest problem that a case may be, or the largest whose tables are not too large.
inline Sizes largest_examined(const Case& c, const FixedLengths& fixed) {
  int length = 1 << 20;
  Sizes sizes = with_fixed({8, 64, 64, length, length, 0, 0}, fixed);
  while (length > 64 && !tables_fit(c, sizes)) {
    length /= 2;
    sizes = with_fixed({8, 64, 64, length, length, 0, 0}, fixed);
  }
  return sizes;
}

/// The corners of a problem, and `count` pairs drawn from it.
inline std::vector<Pair> pairs_of(const Sizes& s, int count, std::uint64_t seed) {
  std::vector<Pair> pairs;
  for (int corner = 0; corner < 16; ++corner)
    pairs.push_back({corner & 1 ? s.b - 1 : 0, corner & 2 ? s.hq - 1 : 0, corner & 4 ? s.sq - 1 : 0,
                     corner & 8 ? s.skv - 1 : 0});
  for (int n = 0; n < count; ++n) {
    const auto below = [&](int axis, int extent) {
      return int_of(hash_of(seed, n, axis), 0, extent - 1);
    };
    pairs.push_back({below(0, s.b), below(1, s.hq), below(2, s.sq), below(3, s.skv)});
  }
  return pairs;
}

/// A box of at most 4 x 4 pairs of one head.
inline PairBox box_at(const Sizes& s, const Pair& at, std::uint64_t hash) {
  PairBox box{at, at};
  box.last.q = std::min(s.sq - 1, at.q + static_cast<int>(hash % 4));
  box.last.kv = std::min(s.skv - 1, at.kv + static_cast<int>(hash / 4 % 4));
  return box;
}

/// Where a fault shows: "b0 h1 q63 kv5 of Sq64 Skv65".
inline std::string name_of(const Pair& p, const Sizes& s) {
  return fmt::format("b{} h{} q{} kv{} of Sq{} Skv{}", p.b, p.h, p.q, p.kv, s.sq, s.skv);
}
/// The same of a box, with first and last of q and kv: "q0..3".
inline std::string name_of(const PairBox& x, const Sizes& s) {
  return fmt::format("b{} h{} q{}..{} kv{}..{} of Sq{} Skv{}", x.first.b, x.first.h, x.first.q,
                     x.last.q, x.first.kv, x.last.kv, s.sq, s.skv);
}

/// Faults by their kind: the first of each is told.
class Faults {
 public:
  /// Notes a fault, unless one of its kind was.
  void add(const std::string& kind, const std::string& what) {
    if (std::find(kinds_.begin(), kinds_.end(), kind) != kinds_.end()) return;
    kinds_.push_back(kind);
    lines.push_back(fmt::format("{}: {}", kind, what));
  }
  /// What `ask` throws is a fault, too; nothing then.
  template <class Ask>
  auto tried(const char* kind, const std::string& where, Ask ask)
      -> std::optional<decltype(ask())> {
    try {
      return ask();
    } catch (const std::invalid_argument& refusal) {
      add(kind, fmt::format("{}, at {}", refusal.what(), where));
      return std::nullopt;
    }
  }
  std::vector<std::string> lines;  ///< "kind: what", in the order they came

 private:
  std::vector<std::string> kinds_;
};

}  // namespace attn::fuzz
