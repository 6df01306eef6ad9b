#pragma once

#include <map>
#include <utility>

#include "fuzz/backward_bounds.h"
#include "fuzz/simulated_flash.h"

/// The backward pass beside simulated_flash.h, written from the paper (T. Dao, FlashAttention-2,
/// 2023, Algorithm 2): probabilities are formed again from the LSE, dS is formed one pair at a
/// time.
namespace attn::fuzz {

/// What a simulated backward pass may do wrong, one thing at a time.
enum class BackwardFault {
  none,
  no_delta,
  half_delta,  ///< the second half of the channels left out
  wrong_kv_head,
  no_derivative,
  missing_query_block,  ///< dK, dV without the first 16 rows of each head
  drop_tail_key,
  scale_one_percent,
  unscaled_dk,
  no_dropout_in_dp,
  no_d_lse,
  one_element,
  captured_row,  ///< the first row of each head adds nothing to captured entries
};
/// With `none`, which is 0.
inline constexpr int backward_fault_count = static_cast<int>(BackwardFault::captured_row) + 1;

/// The freedoms that one simulated kernel takes, and its fault.
struct BackwardSimulation {
  bool round_p = true, round_ds = true;       ///< to the storage type
  bool base_2 = false;                        ///< exp2 of t log2 e - LSE log2 e
  bool tensor_core = false;                   ///< sums in groups of 16, truncated
  bool reverse = false;                       ///< sums from the last row or key on
  bool exact_o = false;                       ///< delta from O in fp32
  double noise = 0;                           ///< relative, of each exponential
  bool tf32 = false;                          ///< operands of products keep 11 bits
  BackwardFault fault = BackwardFault::none;  ///< none: right by the contract
};

/// One of the ways that the contract leaves a kernel of this storage type.
inline BackwardSimulation drawn_backward_variant(const Case& c, std::uint64_t n) {
  const std::uint64_t x = hash_of(c.seed, n, 0xbac);
  BackwardSimulation how;
  const bool low = c.dtype != DType::f32;
  how.round_p = low && (x & 3) != 0;
  how.round_ds = low && (x >> 2 & 3) != 0;
  how.base_2 = x >> 4 & 1;
  how.tensor_core = low && (x >> 5 & 1);
  how.reverse = x >> 6 & 1;
  how.exact_o = (x >> 7 & 3) == 0;
  how.noise = x >> 9 & 1 ? 0x1p-22 : 0;
  return how;
}

/// What it writes, numbers of the storage type; captured entries and the sink are fp32.
struct SimulatedGradients {
  Tensor<double, 4> dq, dk, dv;  ///< as PassInputs has q, k and v
  /// By tensor and offset of the entry in it.
  std::map<std::pair<const void*, std::int64_t>, double> captured;
  std::vector<double> d_sink;  ///< [Hq]
};

/// One simulated backward pass; all that it is given must outlive it.
class SimulatedBackward {
 public:
  /// `exact_o`: O before it was stored.
  SimulatedBackward(const PassInputs& in, const StoredForwardResult& given,
                    const Tensor<double, 4>& exact_o, const TreeMod& mod, const TreeMask& mask,
                    DType storage, const BackwardSimulation& how)
      : in_(in),
        given_(given),
        exact_o_(exact_o),
        mod_(mod),
        mask_(mask),
        storage_(storage),
        how_(how),
        arithmetic_(how.tensor_core, how.tf32),
        d_(static_cast<int>(in.q.extents()[3])),
        dv_(static_cast<int>(in.v.extents()[3])) {}

  /// Once.
  SimulatedGradients run() {
    SimulatedGradients out{Tensor<double, 4>(in_.q.extents()),
                           Tensor<double, 4>(in_.k.extents()),
                           Tensor<double, 4>(in_.v.extents()),
                           {},
                           std::vector<double>(in_.sizes.hq)};
    std::vector<float> sinks(in_.sizes.hq);
    const int group = in_.sizes.hkv > 0 ? in_.sizes.hq / in_.sizes.hkv : 1;
    for (const Sequence& s : in_.sequences)
      for (int hkv = 0; hkv < in_.sizes.hkv; ++hkv) {
        Rows dk(s.keys.count, std::vector<float>(d_)), dv(s.keys.count, std::vector<float>(dv_));
        for (int h = hkv * group; h < (hkv + 1) * group; ++h) {
          const int read = how_.fault == BackwardFault::wrong_kv_head ? h % in_.sizes.hkv : hkv;
          one_head(s, h, read, out, dk, dv, sinks[h]);
        }
        for (int j = 0; j < s.keys.count; ++j) {
          for (int d = 0; d < d_; ++d)
            out.dk(s.b, hkv, j, d) = rounded_to(
                storage_, how_.fault == BackwardFault::unscaled_dk ? dk[j][d] : dk[j][d] * scale());
          for (int d = 0; d < dv_; ++d) out.dv(s.b, hkv, j, d) = rounded_to(storage_, dv[j][d]);
        }
      }
    out.d_sink.assign(sinks.begin(), sinks.end());
    for (auto& [entry, sum] : out.captured) sum = static_cast<float>(sum);
    if (how_.fault == BackwardFault::one_element && !out.dk.values().empty())
      largest_of(out.dk.values()) *= 1.03;
    return out;
  }

 private:
  using Rows = std::vector<std::vector<float>>;
  using Env = BasicDualEnv<float>;

  float scale() const { return static_cast<float>(in_.scale); }
  /// exp(t - lse)
  float probability(float t, float lse) {
    if (t == -infinity || lse == -infinity) return 0;
    constexpr float log2e = 1.4426950408889634f;
    const float p = how_.base_2 ? std::exp2(t * log2e - lse * log2e) : std::exp(t - lse);
    if (how_.noise == 0 || t == lse) return p;
    return static_cast<float>(p * (1 + how_.noise * (2 * uniform_of(hash_of(23, drawn_++)) - 1)));
  }
  template <class A, class B>
  float dot(float sum, int count, A a, B b) const {
    if (!how_.reverse) return arithmetic_.dot(sum, count, a, b);
    const auto back = [count](auto f) { return [count, f](int n) { return f(count - 1 - n); }; };
    return arithmetic_.dot(sum, count, back(a), back(b));
  }

  float delta(const Sequence& s, int h, int i) const {
    const Tensor<double, 4>& o = how_.exact_o ? exact_o_ : given_.o;
    const int channels = how_.fault == BackwardFault::half_delta ? (dv_ + 1) / 2 : dv_;
    float sum = 0;
    for (int d = 0; d < channels; ++d)
      sum += static_cast<float>(in_.d_o(s.b, h, i, d)) * static_cast<float>(o(s.b, h, i, d));
    return how_.fault == BackwardFault::no_delta ? 0 : sum;
  }

  void one_head(const Sequence& s, int h, int hkv, SimulatedGradients& out, Rows& dk, Rows& dv,
                float& d_sink) {
    const int rows = s.queries.count, keys = s.keys.count;
    Rows p(rows, std::vector<float>(keys)), ds = p;
    factors_ = dropout_of(in_, s, h);
    for (int i = 0; i < rows; ++i) {
      const float lse = static_cast<float>(given_.lse(s.b, h, i));
      const float incoming = how_.fault == BackwardFault::no_d_lse || in_.d_lse.values().empty()
                                 ? 0
                                 : static_cast<float>(in_.d_lse(s.b, h, i));
      const float rest = delta(s, h, i) - incoming;
      if (!in_.sink.empty() && in_.sink[h] != -infinity)
        d_sink += probability(in_.sink[h], lse) * -rest;
      for (int j = 0; j < keys; ++j) one_pair(s, h, hkv, i, j, lse, rest, p[i][j], ds[i][j], out);
      for (int d = 0; d < d_; ++d)
        out.dq(s.b, h, i, d) =
            rounded_to(storage_, dot(
                                     0, keys, [&](int j) { return ds[i][j]; },
                                     [&](int j) { return in_.k(s.b, hkv, j, d); }) *
                                     scale());
    }
    const int first = how_.fault == BackwardFault::missing_query_block ? std::min(16, rows) : 0;
    const auto row = [&](const Tensor<double, 4>& x, int d) {
      return [&x, &s, h, d, first](int i) { return x(s.b, h, first + i, d); };
    };
    for (int j = 0; j < keys; ++j) {
      const auto column = [&](const Rows& x) {
        return [&x, j, first](int i) { return x[first + i][j]; };
      };
      for (int d = 0; d < d_; ++d)
        dk[j][d] = dot(dk[j][d], rows - first, column(ds), row(in_.q, d));
      for (int d = 0; d < dv_; ++d)
        dv[j][d] = dot(dv[j][d], rows - first, column(p), row(in_.d_o, d));
    }
  }

  void one_pair(const Sequence& s, int h, int hkv, int i, int j, float lse, float rest, float& p,
                float& ds, SimulatedGradients& out) {
    if (how_.fault == BackwardFault::drop_tail_key && j == s.keys.count - 1) return;
    FloatEnv plain{s.sizes};
    using I = Index<FloatEnv>;
    const int q = i + s.sizes.q_offset;
    if (!call_mask(mask_, I{s.b, &plain}, I{h, &plain}, I{q, &plain}, I{j, &plain})) return;
    float raw = dot(
                    0, d_, [&](int d) { return in_.q(s.b, h, i, d); },
                    [&](int d) { return in_.k(s.b, hkv, j, d); }) *
                scale();
    if (how_.fault == BackwardFault::scale_one_percent) raw *= 1.01f;
    const float dp = dot(
        0, dv_, [&](int d) { return in_.d_o(s.b, h, i, d); },
        [&](int d) { return in_.v(s.b, hkv, j, d); });
    const float factor = static_cast<float>(factors_(i, j));
    Env env{s.sizes};
    const Dual<float> t = modified(env, s, h, q, j, Dual<float>(raw, 1.0f));
    if (t.v == -infinity) return;
    const float weight = probability(t.v, lse);
    const float dt =
        weight * ((how_.fault == BackwardFault::no_dropout_in_dp ? dp : dp * factor) - rest);
    p = weight * factor;
    ds = dt == 0 ? 0 : dt * (how_.fault == BackwardFault::no_derivative ? 1 : t.d);
    if (how_.round_p) p = static_cast<float>(rounded_to(storage_, p));
    if (how_.round_ds) ds = static_cast<float>(rounded_to(storage_, ds));
    const int reads = env.reads;
    for (int r = 0; r < reads; ++r) {
      env.seeded = r;
      const float slope = modified(env, s, h, q, j, Dual<float>(raw)).d;
      const float g = dt == 0 ? 0 : dt * slope;
      const bool wrong = how_.fault == BackwardFault::captured_row && i == 0;
      out.captured[{env.seeded_data, env.seeded_offset}] += wrong ? 0 : g;
    }
  }
  Dual<float> modified(Env& env, const Sequence& s, int h, int q, int j, Dual<float> raw) const {
    using I = Index<Env>;
    env.reads = 0;
    return call_mod(mod_, raw, I{s.b, &env}, I{h, &env}, I{q, &env}, I{j, &env});
  }

  const PassInputs& in_;
  const StoredForwardResult& given_;
  const Tensor<double, 4>& exact_o_;
  const TreeMod& mod_;
  const TreeMask& mask_;
  DType storage_;
  BackwardSimulation how_;
  SimulatedArithmetic arithmetic_;
  int d_, dv_;
  reference::Matrix factors_;
  std::uint64_t drawn_ = 0;
};

}  // namespace attn::fuzz
