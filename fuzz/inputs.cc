#include "fuzz/inputs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "fuzz/random.h"

namespace attn::fuzz {
namespace {

constexpr double largest = 0x1p15;  // of what a fill computes: finite in every storage type

enum Stream : int { stream_q, stream_k, stream_v, stream_choice, stream_order };

/// Fills the three tensors of one case, in fp64; `finish` rounds them to the storage type.
class Filler {
 public:
  Filler(const Case& c, const TreeMod& mod, const TreeMask& mask) : c_(c), mod_(mod), mask_(mask) {
    const std::int64_t b = c.b, hq = c.hq, hkv = c.hkv, sq = c.sq, skv = c.skv;
    in_.sizes = c.sizes();
    in_.scale = c.scale.value_or(1 / std::sqrt(static_cast<double>(c.d)));
    in_.q = Tensor<double, 4>({b, hq, sq, c.d});
    in_.k = Tensor<double, 4>({b, hkv, skv, c.d});
    in_.v = Tensor<double, 4>({b, hkv, skv, c.dv});
  }

  ForwardInputs run() {
    all_normal();
    switch (c_.fill) {
      case Fill::gaussian:
        break;
      case Fill::large:
        scale_by(in_.q, choice() % 2 ? 8 : 24);
        break;
      case Fill::ties:
        choice() % 2 ? scale_by(in_.q, choice() % 3 ? 1e-3 : 0.03) : near_keys();
        break;
      case Fill::cancelling:
        cancelling_pairs();
        break;
      case Fill::very_negative:
        far_scores(-1);
        break;
      case Fill::very_positive:
        far_scores(1);
        break;
      case Fill::large_products:
        large_products();
        break;
      case Fill::outlier:
        outlier_channel();
        break;
      case Fill::denormal:
        denormal();
        break;
      case Fill::rising:
        rising();
        break;
      case Fill::small_ints:
        small_ints();
        break;
      case Fill::marker_v:
        marker_v();
        break;
      case Fill::offsets:
        offsets();
        break;
      case Fill::nan_keys:
        nan_keys();
        break;
      case Fill::exact_code:
        exact_code();
        break;
      case Fill::exact_rank:
        exact_rank();
        break;
      case Fill::exact_count:
        exact_count();
        break;
      case Fill::exact_powers:
        exact_powers();
        break;
    }
    for (Tensor<double, 4>* x : {&in_.q, &in_.k, &in_.v})
      for (double& value : x->values()) value = rounded_to(c_.dtype, value);
    return std::move(in_);
  }

 private:
  std::uint64_t hash(int stream, int b, int h, int s, int d) const {
    // with one K and V for the whole batch, batch 0 speaks for all
    if (c_.layout == Layout::shared_kv && (stream == stream_k || stream == stream_v)) b = 0;
    return hash_of(c_.seed, stream, b, h, s, d);
  }
  /// A choice that holds for the whole case.
  std::uint64_t choice() const { return hash_of(c_.seed, stream_choice); }

  /// Sets every element of `x` to value(b, h, s, d).
  template <class F>
  static void set(Tensor<double, 4>& x, F value) {
    const auto e = x.extents();
    double* at = x.values().data();
    for (int b = 0; b < e[0]; ++b)
      for (int h = 0; h < e[1]; ++h)
        for (int s = 0; s < e[2]; ++s)
          for (int d = 0; d < e[3]; ++d) *at++ = value(b, h, s, d);
  }
  static void scale_by(Tensor<double, 4>& x, double factor) {
    for (double& value : x.values()) value *= factor;
  }
  auto normal(int stream) const {
    return
        [this, stream](int b, int h, int s, int d) { return normal_of(hash(stream, b, h, s, d)); };
  }
  auto ints(int stream, int low, int high) const {
    return [=, this](int b, int h, int s, int d) {
      return static_cast<double>(int_of(hash(stream, b, h, s, d), low, high));
    };
  }

  void all_normal() {
    set(in_.q, normal(stream_q));
    set(in_.k, normal(stream_k));
    set(in_.v, normal(stream_v));
  }
  void near_keys() {  // every key is the first one, plus a hundredth of noise
    set(in_.k, [this](int b, int h, int s, int d) {
      const double first = normal_of(hash(stream_k, b, h, 0, d));
      return first * (s == 0 ? 1 : 1 + 0.01 * normal_of(hash(stream_k, b, h, s, d)));
    });
  }
  void cancelling_pairs() {
    set(in_.k,
        [this](int b, int h, int s, int d) { return normal_of(hash(stream_k, b, h, s & ~1, d)); });
    set(in_.v, [this](int b, int h, int s, int d) {
      return (s & 1 ? -1 : 1) * normal_of(hash(stream_v, b, h, s & ~1, d));
    });
  }
  /// Whole numbers, so that scores of this size are still exact where the scale is a power of two.
  void far_scores(int sign) {
    static constexpr double sizes[] = {2e4, 1e5, 4e5};
    const int channels = std::min(c_.d, 8);
    const double target = sizes[choice() % 3] / std::max(std::abs(in_.scale), 1e-3);
    const double base = std::min(std::round(target / (64.0 * channels)), largest);
    const double direction = sign * (in_.scale < 0 ? -1 : 1);
    set(in_.q, [&](int b, int h, int s, int d) {
      return d < channels ? 64.0 : int_of(hash(stream_q, b, h, s, d), -3, 3);
    });
    set(in_.k, [&](int b, int h, int s, int d) {
      return d < channels ? direction * base : int_of(hash(stream_k, b, h, s, d), -3, 3);
    });
  }
  /// Raw products far beyond 65504. Some rows turn the sign, so that scores spread.
  void large_products() {
    const double size = std::ceil(std::sqrt(2e5 / c_.d));
    set(in_.q, [&](int b, int h, int s, int d) {
      return (s % 3 == 2 ? -1 : 1) * (size + int_of(hash(stream_q, b, h, s, d), 0, 3));
    });
    set(in_.k, [&](int b, int h, int s, int d) {
      return size + int_of(hash(stream_k, b, h, s, d), 0, 1);
    });
  }
  void outlier_channel() {
    const int channel = static_cast<int>(choice() % c_.d);
    set(in_.q, [&](int b, int h, int s, int d) {
      return normal_of(hash(stream_q, b, h, s, d)) * (d == channel ? 30 : 1);
    });
    set(in_.k, [&](int b, int h, int s, int d) {
      return normal_of(hash(stream_k, b, h, s, d)) * (d == channel ? 30 : 1);
    });
  }
  void denormal() {
    const bool fp16 = c_.dtype == DType::f16;
    scale_by(in_.q, fp16 ? 0x1p-12 : 0x1p-60);
    scale_by(in_.k, fp16 ? 1 : 0x1p-20);
    scale_by(in_.v, fp16 ? 0x1p-17 : 0x1p-124);
  }
  void rising() {
    const double step = 1.0 / std::max(std::abs(in_.scale), 1e-3) * (in_.scale < 0 ? -1 : 1) / 4;
    set(in_.q, [&](int b, int h, int s, int d) {
      return d == 0 ? 1 : normal_of(hash(stream_q, b, h, s, d)) / 4;
    });
    set(in_.k, [&](int b, int h, int s, int d) {
      return d == 0 ? std::clamp(step * s, -largest, largest)
                    : normal_of(hash(stream_k, b, h, s, d));
    });
  }
  void small_ints() {
    const auto sparse = [this](int stream) {
      return [this, stream](int b, int h, int s, int d) {
        const std::uint64_t x = hash(stream, b, h, s, d);
        return x % 5 ? 0.0 : int_of(x >> 8, -2, 2);
      };
    };
    set(in_.q, sparse(stream_q));
    set(in_.k, sparse(stream_k));
    set(in_.v, sparse(stream_v));
  }
  void marker_v() {
    const bool one_hot = choice() % 2;
    set(in_.v, [&](int b, int h, int s, int d) {
      if (one_hot) return s % std::max(1, c_.dv) == d ? 1.0 : 0.0;
      return std::abs(normal_of(hash(stream_v, b, h, s, d))) + 0.5;
    });
  }
  void offsets() {
    const double k = choice() % 2 ? 4 : 0, v = choice() % 3 ? 8 : 50;
    for (double& value : in_.k.values()) value += k;
    for (double& value : in_.v.values()) value += v;
  }

  /// One key in eight has a NaN in one channel of K. (One in V may reach every row of its tile.)
  void nan_keys() {
    set(in_.k, [this](int b, int h, int s, int d) {
      const std::uint64_t x = hash(stream_choice, c_.layout == Layout::shared_kv ? 0 : b, h, s, 0);
      const bool here = x % 8 == 0 && static_cast<int>(x >> 8 & 0xffff) % c_.d == d;
      return here ? std::numeric_limits<double>::quiet_NaN()
                  : normal_of(hash(stream_k, b, h, s, d));
    });
  }

  /// V of the exact fills: whole numbers that tell the key and the head.
  void index_v() {
    set(in_.v, [this](int b, int h, int s, int d) {
      if (d == 0) return static_cast<double>(s % 256);
      if (d == 1) return static_cast<double>(1 + h + (c_.layout == Layout::shared_kv ? 0 : 8 * b));
      return static_cast<double>(int_of(hash(stream_v, b, h, s, d), -8, 8));
    });
  }
  bool attends(int b, int h, int i, int j) const {
    ExactEnv env{in_.sizes};
    using I = Index<ExactEnv>;
    return mask_(I{b, &env}, I{h, &env}, I{i, &env}, I{j, &env});
  }
  double mod_at_zero(int b, int h, int i, int j) const {
    ExactEnv env{in_.sizes};
    using I = Index<ExactEnv>;
    return mod_(0.0, I{b, &env}, I{h, &env}, I{i, &env}, I{j, &env});
  }
  /// The keys of one head in a random order.
  std::vector<int> order(int b, int h) const {
    std::vector<int> keys(c_.skv);
    std::iota(keys.begin(), keys.end(), 0);
    const int key_batch = c_.layout == Layout::shared_kv ? 0 : b;
    for (int j = c_.skv; j-- > 1;)
      std::swap(keys[j], keys[int_of(hash_of(c_.seed, stream_order, key_batch, h, j), 0, j)]);
    return keys;
  }

  /// Key j carries +-32 bits of its index, twice; row i the code of one key that it attends. The
  /// match is cancelled to 0 by a constant channel, every other key lies 4096 |scale| or more
  /// below, and a last channel undoes what the mod does to a score of 0.
  void exact_code() {
    constexpr int bits = 8, used = 2 * bits;
    constexpr double size = 32;
    index_v();
    set(in_.k, ints(stream_k, -3, 3));
    set(in_.q, [](int, int, int, int) { return 0.0; });
    if (c_.d < used + 2 || c_.skv == 0) return;  // nothing is proposed, nothing will be proved
    const auto code = [](int key, int bit) { return key >> (bit % bits) & 1 ? size : -size; };
    for (int b = 0; b < c_.b; ++b)
      for (int h = 0; h < c_.hkv; ++h)
        for (int j = 0; j < c_.skv; ++j) {
          for (int bit = 0; bit < used; ++bit) in_.k(b, h, j, bit) = code(j, bit);
          in_.k(b, h, j, used) = size;
          in_.k(b, h, j, used + 1) = 1;
        }
    const double direction = in_.scale < 0 ? -1 : 1;
    for (int b = 0; b < c_.b; ++b)
      for (int h = 0; h < c_.hq; ++h) {
        const std::vector<int> keys = order(b, h);
        for (int i = 0; i < c_.sq; ++i)
          for (int attempt = 0; attempt < c_.skv; ++attempt) {
            const int j = keys[(i + attempt) % c_.skv];
            if (!attends(b, h, i, j)) continue;
            const double undo = -mod_at_zero(b, h, i, j) / in_.scale;
            if (!(std::abs(undo) <= largest)) continue;  // the mod masks it, or adds too much
            for (int bit = 0; bit < used; ++bit) in_.q(b, h, i, bit) = direction * code(j, bit);
            in_.q(b, h, i, used) = -direction * size * used;
            in_.q(b, h, i, used + 1) = undo;
            break;
          }
      }
  }
  /// Keys have random ranks below 256; row i scores +-128 (rank - rank of its best attended key),
  /// so that masked keys score up to 32 640 above the winner's 0.
  void exact_rank() {
    index_v();
    set(in_.k, ints(stream_k, -3, 3));
    set(in_.q, [](int, int, int, int) { return 0.0; });
    if (c_.d < 3 || c_.skv == 0 || in_.scale == 0) return;
    for (int b = 0; b < c_.b; ++b) {
      std::vector<std::vector<int>> rank;  // [Hkv][Skv]
      for (int h = 0; h < c_.hkv; ++h) {
        rank.push_back(order(b, h));
        for (int j = 0; j < c_.skv; ++j) {
          in_.k(b, h, j, 0) = rank[h][j] / 16;
          in_.k(b, h, j, 1) = rank[h][j] % 16;
          in_.k(b, h, j, 2) = 16;
        }
      }
      for (int h = 0; h < c_.hq; ++h)
        for (int i = 0; i < c_.sq; ++i) {
          const std::vector<int>& ranks = rank[h / (c_.hq / c_.hkv)];
          const int sign = hash_of(c_.seed, stream_choice, b, h, i) % 2 ? 1 : -1;
          int best = -1;
          for (int j = 0; j < c_.skv; ++j)
            if (attends(b, h, i, j) && (best < 0 || sign * ranks[j] > sign * ranks[best])) best = j;
          if (best < 0) continue;
          const double gain = sign * 128 / in_.scale;
          in_.q(b, h, i, 0) = 16 * gain;
          in_.q(b, h, i, 1) = gain;
          in_.q(b, h, i, 2) = -gain * ranks[best] / 16;
        }
    }
  }
  void exact_count() {
    index_v();
    set(in_.k, ints(stream_k, -3, 3));
    set(in_.q, [](int, int, int, int) { return 0.0; });
  }
  /// q k = -t with t from 0 to 7; with scale log 2 every weight is 2^-t.
  void exact_powers() {
    index_v();
    set(in_.q, [](int, int, int, int d) { return d == 0 ? -1.0 : 0.0; });
    set(in_.k, [this](int b, int h, int s, int d) {
      const std::uint64_t x = hash(stream_k, b, h, s, d);
      return d == 0 ? int_of(x, 0, 7) : int_of(x, -3, 3);
    });
  }

  const Case& c_;
  const TreeMod& mod_;
  const TreeMask& mask_;
  ForwardInputs in_;
};

}  // namespace

double rounded_to(DType t, double x) {
  switch (t) {
    case DType::f64:
      return x;
    case DType::f32:
      return static_cast<float>(x);
    case DType::f16:
      return to_float(from_float<half>(static_cast<float>(x)));
    case DType::bf16:
      return to_float(from_float<bfloat16>(static_cast<float>(x)));
  }
  return x;
}

ForwardInputs make_inputs(const Case& c, const TreeMod& mod, const TreeMask& mask) {
  return Filler(c, mod, mask).run();
}

}  // namespace attn::fuzz
