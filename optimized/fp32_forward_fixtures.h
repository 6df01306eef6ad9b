#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "mods/alibi.h"
#include "optimized/attention_arguments.h"
#include "optimized/fp32_forward_launch.h"
#include "optimized/tf32_forward_launch.h"

/// What the tests of fp32_forward and tf32_forward share.
namespace attn {
inline namespace ATTN_TARGET {
namespace fp32_forward_test {

inline constexpr double unit = 0x1p-24;  // the unit roundoff of fp32
inline const float nan = std::numeric_limits<float>::quiet_NaN();

inline std::optional<std::string> refusal(const Problem& p) {
  if (p.dtype != DType::f32) return std::string("dtype: ") + name_of(p.dtype);
  if (std::max(p.d, p.dv) > 256) return "head size: " + std::to_string(std::max(p.d, p.dv));
  return std::nullopt;
}
/// A row of the table as far as the checks need it.
inline const Implementation row = [] {
  Implementation row;
  row.name = "row";
  row.refusal = refusal;
  return row;
}();

struct Fma {
  static constexpr double product_rounding = 0;
  static constexpr float stored(float x) { return x; }
  template <class Mask>
  static void run(const AttentionArguments& call, const Alibi& mod, const Mask& mask) {
    fp32_forward(call, row, mod, mask);
  }
};
struct Tf32 {
  static constexpr double product_rounding = 0x1p-11;
  static constexpr float stored(float x) {  // to nearest, ties away: 11 significant bits
    return std::bit_cast<float>((std::bit_cast<std::uint32_t>(x) + 0x1000u) & 0xffffe000u);
  }
  template <class Mask>
  static void run(const AttentionArguments& call, const Alibi& mod, const Mask& mask) {
    tf32_forward(call, row, mod, mask);
  }
};

/// A plain function of four numbers, one of several, so that this file compiles few kernels.
struct ChosenMask {
  enum { full, window, parity } which = full;
  bool operator()(int, int, int q, int kv) const {
    if (which == window) return kv <= q && kv >= q - 2;
    return which == full || kv % 2 == q % 2;
  }
};

/// Inputs of zeros, a slope of zero for each head, outputs that hold a NaN.
struct Inputs {
  int b, hq, hkv, sq, skv, d, dv;
  Tensor<float, 4> q, k, v, o;
  Tensor<float, 3> lse, row_max;
  Tensor<float, 1> slope, sink;
  AttentionOptions options;
  ChosenMask mask;

  Inputs(int b, int hq, int hkv, int sq, int skv, int d, int dv)
      : b(b),
        hq(hq),
        hkv(hkv),
        sq(sq),
        skv(skv),
        d(d),
        dv(dv),
        q({b, hq, sq, d}),
        k({b, hkv, skv, d}),
        v({b, hkv, skv, dv}),
        o({b, hq, sq, dv}),
        lse({b, hq, sq}),
        row_max({b, hq, sq}),
        slope({hq}),
        sink({hq}) {
    for (float& x : o.values()) x = nan;
    for (float& x : lse.values()) x = nan;
    for (float& x : row_max.values()) x = nan;
  }
  /// V tells head, key and channel, in numbers that all of fp32 is needed for.
  void mark_values() {
    for (int ib = 0; ib < b; ++ib)
      for (int h = 0; h < hkv; ++h)
        for (int j = 0; j < skv; ++j)
          for (int c = 0; c < dv; ++c) v(ib, h, j, c) = marker(ib, h, j, c);
  }
  static float marker(int b, int h, int j, int c) {
    return static_cast<float>(1000 * b + 100 * h + j) + static_cast<float>(c) / 1024 + 0x1p-12f;
  }
  void give_sink() { options.sink = std::as_const(sink).view(); }
  AttentionArguments call() {
    AttentionArguments call =
        forward_arguments<float>(q.view(), k.view(), v.view(), o.view(), lse.view());
    call.row_max = describe("row_max", row_max.view());
    call.options = options;
    return call;
  }
  template <class Kernel>
  void run() {
    Kernel::run(call(), alibi(slope), mask);
  }
};

/// One row by the formulas of attention in fp64, and how far fp32 may be from it where scores are
/// exact: Q, K and V are small whole numbers, the scale a power of two, slopes are whole.
struct ExpectedRow {
  std::vector<double> o, o_bound;
  double lse = 0, lse_bound = 0, row_max = -infinity, row_max_bound = 0;

  ExpectedRow(const Inputs& x, int b, int h, int i, double product_rounding)
      : o(x.dv), o_bound(x.dv) {
    const int hkv = h / (x.hq / x.hkv);
    const double sink = x.options.sink ? x.sink(h) : -infinity;
    double largest = x.options.sink ? std::abs(sink) : 0;  // of all scores
    std::vector<double> t(x.skv, -infinity);
    const double scale = x.options.scale.value_or(1 / std::sqrt(x.d));
    for (int j = 0; j < x.skv; ++j) {
      if (!x.mask(b, h, i, j)) continue;
      double dot = 0;
      for (int c = 0; c < x.d; ++c) dot += double{x.q(b, h, i, c)} * x.k(b, hkv, j, c);
      t[j] = scale * dot + x.slope(h) * (j - i);
      row_max = std::max(row_max, t[j]);
      largest = std::max(largest, std::abs(t[j]));
    }
    const double m = std::max(row_max, sink);
    double sum = std::exp(sink - m);
    for (const double score : t) sum += std::exp(score - m);
    lse = m + std::log(sum);

    // A weight 2^(x - m): x = t log2(e) in two roundings, a difference, an exponential; and in each
    // later tile a factor of the same kind.
    const double tiles = x.skv / 16 + 2, keys = x.skv + 1;
    const double step = 0x1p-22 + 2 * largest * unit, weight = step + 4 * largest * unit;
    const double weights = weight + tiles * (step + unit), sums = (keys + tiles) * unit;
    row_max_bound = 3 * std::abs(row_max) * unit;
    lse_bound = std::expm1(weights + sums) +
                (4 * std::abs(lse) + 2 * std::abs(std::log2(sum)) + std::abs(m)) * unit;
    const double relative = std::expm1(2 * (weights + sums) + product_rounding + 8 * unit);
    for (int j = 0; j < x.skv; ++j) {
      const double p = std::exp(t[j] - lse) * dropout_factor(x.options.dropout, b, h, i, j);
      for (int c = 0; c < x.dv; ++c) {
        o[c] += p * x.v(b, hkv, j, c);
        o_bound[c] += relative * p * std::abs(x.v(b, hkv, j, c));
      }
    }
  }
  static double dropout_factor(const Dropout& dropout, int b, int h, int i, int j) {
    const auto u = [](int n) { return static_cast<std::uint32_t>(n); };
    const PhiloxWords random = philox4x32({{u(j / 4), u(i), u(h), u(b)}}, dropout.seed);
    return random.word[j % 4] >= std::ldexp(dropout.p, 32) ? 1 / (1 - dropout.p) : 0;
  }
};

}  // namespace fp32_forward_test
}  // namespace ATTN_TARGET
}  // namespace attn
