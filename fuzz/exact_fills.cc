#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "fuzz/fill_context.h"

namespace attn::fuzz {
namespace {

/// Fills for which the right answer is known to the last bit, where the mod and the mask allow it.
/// The oracle takes that up only where it can prove it.
class ExactFiller {
 public:
  explicit ExactFiller(const FillContext& f) : f_(f) {}

  /// Key j carries +-32 bits of its code, twice; row i the code of one key that it attends. The
  /// match is cancelled to 0 by a constant channel, every other code lies 4096 |scale| or more
  /// below, and a last channel undoes what the mod does to a score of 0. `sharing` neighbouring
  /// keys have one code: they tie, and differ in channels that Q does not see.
  void codes(int sharing) {
    constexpr int bits = 8, used = 2 * bits;
    constexpr double size = 32;
    begin();
    if (c().d < used + 2) return;  // nothing is proposed, nothing will be proved
    const auto code = [&](int key, int bit) {
      return key / sharing >> (bit % bits) & 1 ? size : -size;
    };
    for (const Sequence& s : in().sequences)
      for (int h = 0; h < c().hkv; ++h)
        for (int j = 0; j < s.keys.count; ++j) {
          for (int bit = 0; bit < used; ++bit) in().k(s.b, h, j, bit) = code(j, bit);
          in().k(s.b, h, j, used) = size;
          in().k(s.b, h, j, used + 1) = 1;
        }
    const double direction = in().scale < 0 ? -1 : 1;
    for (const Sequence& s : in().sequences)
      for (int h = 0; h < c().hq; ++h) {
        const std::vector<int> keys = order(s, h);
        for (int i = 0; i < s.queries.count; ++i)
          for (int attempt = 0; attempt < s.keys.count; ++attempt) {
            const int j = keys[(i + attempt) % s.keys.count];
            if (!f_.attends(s.b, h, i, j)) continue;
            const double undo = -f_.mod_at_zero(s.b, h, i, j) / in().scale;
            if (!(std::abs(undo) <= largest_filled)) continue;  // masked by the mod, or too much
            for (int bit = 0; bit < used; ++bit) in().q(s.b, h, i, bit) = direction * code(j, bit);
            in().q(s.b, h, i, used) = -direction * size * used;
            in().q(s.b, h, i, used + 1) = undo;
            break;
          }
      }
  }

  /// Keys have random ranks below 256; row i scores +-128 (rank - rank of its best attended key),
  /// so that masked keys score up to 32 640 above the winner's 0.
  void ranks() {
    begin();
    if (c().d < 3 || in().scale == 0) return;
    for (const Sequence& s : in().sequences) {
      std::vector<std::vector<int>> rank;  // [Hkv][keys]
      for (int h = 0; h < c().hkv; ++h) {
        rank.push_back(order(s, h));
        for (int j = 0; j < s.keys.count; ++j) {
          in().k(s.b, h, j, 0) = rank[h][j] / 16;
          in().k(s.b, h, j, 1) = rank[h][j] % 16;
          in().k(s.b, h, j, 2) = 16;
        }
      }
      for (int h = 0; h < c().hq; ++h)
        for (int i = 0; i < s.queries.count; ++i) seek_best(s, h, i, rank[h / (c().hq / c().hkv)]);
    }
  }

  /// Every attended key scores 0.
  void count() { begin(); }

  /// q k = -t with t from 0 to 7; with scale log 2 every weight is 2^-t.
  void powers() {
    begin();
    f_.set(in().q, [](int, int, int, int d) { return d == 0 ? -1.0 : 0.0; });
    f_.set(in().k, [this](int b, int h, int s, int d) {
      const std::uint64_t x = f_.hash(Stream::k, b, h, s, d);
      return d == 0 ? int_of(x, 0, 7) : int_of(x, -3, 3);
    });
  }

 private:
  const Case& c() const { return f_.c; }
  PassInputs& in() const { return f_.in; }

  /// Q = 0, K small whole numbers, V whole numbers that tell the key and the head.
  void begin() {
    f_.set(in().q, [](int, int, int, int) { return 0.0; });
    f_.set(in().k, f_.ints(Stream::k, -3, 3));
    f_.set(in().v, [this](int b, int h, int s, int d) {
      if (d == 0) return static_cast<double>(s % 256);
      if (d == 1) return static_cast<double>(1 + h + 8 * f_.key_batch(b));
      return static_cast<double>(int_of(f_.hash(Stream::v, b, h, s, d), -8, 8));
    });
  }

  /// The keys of one head in a random order.
  std::vector<int> order(const Sequence& s, int h) const {
    std::vector<int> keys(s.keys.count);
    std::iota(keys.begin(), keys.end(), 0);
    for (int j = s.keys.count; j-- > 1;)
      std::swap(keys[j], keys[int_of(f_.hash(Stream::order, f_.key_batch(s.b), h, j, 0), 0, j)]);
    return keys;
  }

  void seek_best(const Sequence& s, int h, int i, const std::vector<int>& ranks) {
    const int sign = f_.hash(Stream::choice, s.b, h, i, 0) % 2 ? 1 : -1;
    int best = -1;
    for (int j = 0; j < s.keys.count; ++j)
      if (f_.attends(s.b, h, i, j) && (best < 0 || sign * ranks[j] > sign * ranks[best])) best = j;
    if (best < 0) return;
    const double gain = sign * 128 / in().scale;
    in().q(s.b, h, i, 0) = 16 * gain;
    in().q(s.b, h, i, 1) = gain;
    in().q(s.b, h, i, 2) = -gain * ranks[best] / 16;
  }

  const FillContext& f_;
};

}  // namespace

void fill_exact(const FillContext& f) {
  ExactFiller filler(f);
  switch (f.c.fill) {
    case Fill::exact_code:
      return filler.codes(1);
    case Fill::exact_pairs:
      return filler.codes(2);
    case Fill::exact_rank:
      return filler.ranks();
    case Fill::exact_count:
      return filler.count();
    case Fill::exact_powers:
      return filler.powers();
    default:
      return;
  }
}

}  // namespace attn::fuzz
