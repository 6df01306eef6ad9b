#include "fuzz/inputs.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "fuzz/case_sequences.h"

namespace attn::fuzz {
namespace {

/// Fills Q, K and V of one case by its regime, in fp64.
class Filler {
 public:
  explicit Filler(const FillContext& f) : f_(f) {}

  void run() {
    all_normal();
    switch (c().fill) {
      case Fill::gaussian:
        return;
      case Fill::large:
        return f_.scale_by(in().q, f_.choice() % 2 ? 8 : 24);
      case Fill::ties:
        return f_.choice() % 2 ? f_.scale_by(in().q, f_.choice() % 3 ? 1e-3 : 0.03) : near_keys();
      case Fill::cancelling:
        return cancelling_pairs();
      case Fill::very_negative:
        return far_scores(-1);
      case Fill::very_positive:
        return far_scores(1);
      case Fill::large_products:
        return large_products();
      case Fill::outlier:
        return outlier_channel();
      case Fill::denormal:
        return denormal();
      case Fill::rising:
        return rising();
      case Fill::small_ints:
        return small_ints();
      case Fill::marker_v:
        return marker_v();
      case Fill::offsets:
        return offsets();
      case Fill::capped:
        return f_.set(in().q,
                      [this](int b, int h, int s, int d) { return capped_query(b, h, s, d); });
      case Fill::nan_keys:
        return nan_keys();
      default:
        return fill_exact(f_);
    }
  }

 private:
  const Case& c() const { return f_.c; }
  PassInputs& in() const { return f_.in; }

  void all_normal() {
    f_.set(in().q, f_.normal(Stream::q));
    f_.set(in().k, f_.normal(Stream::k));
    f_.set(in().v, f_.normal(Stream::v));
  }
  void near_keys() {  // every key is the first one, plus a hundredth of noise
    f_.set(in().k, [this](int b, int h, int s, int d) {
      const double first = normal_of(f_.hash(Stream::k, b, h, 0, d));
      return first * (s == 0 ? 1 : 1 + 0.01 * normal_of(f_.hash(Stream::k, b, h, s, d)));
    });
  }
  void cancelling_pairs() {
    f_.set(in().k, [this](int b, int h, int s, int d) {
      return normal_of(f_.hash(Stream::k, b, h, s & ~1, d));
    });
    f_.set(in().v, [this](int b, int h, int s, int d) {
      return (s & 1 ? -1 : 1) * normal_of(f_.hash(Stream::v, b, h, s & ~1, d));
    });
  }
  /// Whole numbers, so that scores of this size are still exact where the scale is a power of two.
  void far_scores(int sign) {
    static constexpr double sizes[] = {2e4, 1e5, 4e5};
    const int channels = std::min(c().d, 8);
    const double target = sizes[f_.choice() % 3] / std::max(std::abs(in().scale), 1e-3);
    const double base = std::min(std::round(target / (64.0 * channels)), largest_filled);
    const double direction = sign * (in().scale < 0 ? -1 : 1);
    f_.set(in().q, [&](int b, int h, int s, int d) {
      return d < channels ? 64.0 : int_of(f_.hash(Stream::q, b, h, s, d), -3, 3);
    });
    f_.set(in().k, [&](int b, int h, int s, int d) {
      return d < channels ? direction * base : int_of(f_.hash(Stream::k, b, h, s, d), -3, 3);
    });
  }
  /// Raw products far beyond 65504. Some rows turn the sign, so that scores spread.
  void large_products() {
    const double size = std::ceil(std::sqrt(2e5 / c().d));
    f_.set(in().q, [&](int b, int h, int s, int d) {
      return (s % 3 == 2 ? -1 : 1) * (size + int_of(f_.hash(Stream::q, b, h, s, d), 0, 3));
    });
    f_.set(in().k, [&](int b, int h, int s, int d) {
      return size + int_of(f_.hash(Stream::k, b, h, s, d), 0, 1);
    });
  }
  void outlier_channel() {
    const int channel = static_cast<int>(f_.choice() % c().d);
    f_.set(in().q, [&](int b, int h, int s, int d) {
      return normal_of(f_.hash(Stream::q, b, h, s, d)) * (d == channel ? 30 : 1);
    });
    f_.set(in().k, [&](int b, int h, int s, int d) {
      return normal_of(f_.hash(Stream::k, b, h, s, d)) * (d == channel ? 30 : 1);
    });
  }
  void denormal() {
    const bool fp16 = c().dtype == DType::f16;
    f_.scale_by(in().q, fp16 ? 0x1p-12 : 0x1p-60);
    f_.scale_by(in().k, fp16 ? 1 : 0x1p-20);
    f_.scale_by(in().v, fp16 ? 0x1p-17 : 0x1p-124);
  }
  void rising() {
    const double step = 1.0 / std::max(std::abs(in().scale), 1e-3) * (in().scale < 0 ? -1 : 1) / 4;
    f_.set(in().q, [&](int b, int h, int s, int d) {
      return d == 0 ? 1 : normal_of(f_.hash(Stream::q, b, h, s, d)) / 4;
    });
    f_.set(in().k, [&](int b, int h, int s, int d) {
      return d == 0 ? std::clamp(step * s, -largest_filled, largest_filled)
                    : normal_of(f_.hash(Stream::k, b, h, s, d));
    });
  }
  void small_ints() {
    const auto sparse = [this](Stream stream) {
      return [this, stream](int b, int h, int s, int d) {
        const std::uint64_t x = f_.hash(stream, b, h, s, d);
        return x % 5 ? 0.0 : int_of(x >> 8, -2, 2);
      };
    };
    f_.set(in().q, sparse(Stream::q));
    f_.set(in().k, sparse(Stream::k));
    f_.set(in().v, sparse(Stream::v));
  }
  void marker_v() {
    const bool one_hot = f_.choice() % 2;
    f_.set(in().v, [&](int b, int h, int s, int d) {
      if (one_hot) return s % std::max(1, c().dv) == d ? 1.0 : 0.0;
      return std::abs(normal_of(f_.hash(Stream::v, b, h, s, d))) + 0.5;
    });
  }
  void offsets() {
    const double k = f_.choice() % 2 ? 4 : 0, v = f_.choice() % 3 ? 8 : 50;
    for (double& value : in().k.values()) value += k;
    for (double& value : in().v.values()) value += v;
  }

  /// Scores of 4, 400 or 4000 standard deviations, by row: with a cap of 30 the first are spread,
  /// the last all at the cap.
  double capped_query(int b, int h, int s, int d) const {
    static constexpr double sizes[] = {4, 400, 4000};
    const double size = sizes[f_.hash(Stream::choice, b, h, s, 0) % 3];
    const double sum = std::max(std::abs(in().scale), 1e-3) * std::sqrt(static_cast<double>(c().d));
    return std::clamp(size / sum, 1.0, largest_filled / 4) *
           normal_of(f_.hash(Stream::q, b, h, s, d));
  }

  /// One key in eight has a NaN in one channel of K. (One in V may reach every row of its tile.)
  void nan_keys() {
    f_.set(in().k, [this](int b, int h, int s, int d) {
      const std::uint64_t x = f_.hash(Stream::choice, f_.key_batch(b), h, s, 0);
      const bool here = x % 8 == 0 && static_cast<int>(x >> 8 & 0xffff) % c().d == d;
      return here ? std::numeric_limits<double>::quiet_NaN()
                  : normal_of(f_.hash(Stream::k, b, h, s, d));
    });
  }

  const FillContext& f_;
};

}  // namespace

PassInputs make_inputs(const Case& c, const PairQuestions& ask) {
  PassInputs in;
  in.sizes = c.sizes();
  in.scale = c.scale.value_or(1 / std::sqrt(static_cast<double>(c.d)));
  in.sequences = logical_sequences(c);
  in.q = Tensor<double, 4>({c.b, c.hq, c.sq, c.d});
  in.k = Tensor<double, 4>({c.b, c.hkv, c.skv, c.d});
  in.v = Tensor<double, 4>({c.b, c.hkv, c.skv, c.dv});
  const FillContext context{c, ask, in};
  Filler(context).run();
  if (c.sink) fill_sink(context);
  if (c.dropout != 0) in.dropout = {c.dropout, hash_of(c.seed, static_cast<int>(Stream::dropout))};
  if (implementation_named(c.implementation).pass == Pass::backward) fill_output_gradients(context);
  for (Tensor<double, 4>* x : {&in.q, &in.k, &in.v, &in.d_o})
    for (double& value : x->values()) value = rounded_to(c.dtype, value);
  return in;
}

}  // namespace attn::fuzz
