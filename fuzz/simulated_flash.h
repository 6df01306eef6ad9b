#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "fuzz/case.h"
#include "fuzz/forward_bounds.h"
#include "fuzz/random.h"
#include "mods/lang/tree_functor.h"
#include "reference/dropout.h"

/// For the tests of the oracle: flash attention on the CPU in plain float code, written from the
/// paper (T. Dao, FlashAttention-2, 2023, Algorithm 1) and not from the kernel, with every freedom
/// that the contract gives and, on demand, one fault.
namespace attn::fuzz {

/// What a simulated forward pass may do wrong, one thing at a time.
enum class Fault {
  none,
  drop_tail_key,
  scale_one_percent,
  lse_base_2,
  no_rescale,
  wrong_kv_head,
  low_scores,
  one_element,
  no_sink,
  no_dropout
};
/// With `none`, which is 0.
inline constexpr int simulated_fault_count = static_cast<int>(Fault::no_dropout) + 1;

/// The freedoms that one simulated kernel takes, and its fault.
struct Simulation {
  int block = 32;             ///< keys a tile
  int parts = 1;              ///< runs of keys worked on apart and merged by their LSE
  bool round_p = true;        ///< P rounded to the storage type
  bool lazy = false;          ///< the maximum moves only when a weight would pass 2^8
  bool base_2 = false;        ///< exp2 of scores times log2 e
  bool tensor_core = false;   ///< sums in groups of 16, truncated
  double noise = 0;           ///< relative, of each exponential
  bool tf32 = false;          ///< operands of products keep 11 bits
  Fault fault = Fault::none;  ///< none: right by the contract
};

/// One of the ways that the contract leaves a kernel of this storage type.
inline Simulation drawn_variant(const Case& c, std::uint64_t n) {
  const std::uint64_t x = hash_of(c.seed, n, 0x51);
  constexpr int blocks[] = {16, 32, 64, 128};
  Simulation how;
  how.block = blocks[x & 3];
  how.parts = 1 + static_cast<int>((x >> 2) % 3);
  how.round_p = c.dtype != DType::f32 && (x >> 8 & 3) != 0;
  how.lazy = x >> 10 & 1;
  how.base_2 = x >> 11 & 1;
  how.tensor_core = c.dtype != DType::f32 && (x >> 12 & 1);
  how.noise = x >> 13 & 1 ? 0x1p-22 : 0;
  return how;
}

/// What it writes: O in numbers of the storage type, the rest fp32.
struct SimulatedOutputs {
  Tensor<double, 4> o, lse, row_max;  ///< [B, Hq, Sq, Dv], [B, Hq, Sq, 1] twice
};

/// Mods in fp32, one number at a time.
struct FloatEnv {
  using Int = int;                                               ///< what an index holds
  using Score = float;                                           ///< what a score is
  Sizes sizes;                                                   ///< as the functor asks for them
  float to_score(int i) const { return static_cast<float>(i); }  ///< an index as a score
  /// What a functor captures; floating entries become scores.
  template <int Rank, class T>
  auto read(const Captured<Rank, T>& c, const int (&at)[Rank]) const {
    const T& entry = c.tensor.data[checked_offset(c, at)];
    if constexpr (is_floating_storage<T>)
      return stored_score<float>(entry);
    else
      return entry;
  }
};

/// Sums and operands of products, as a simulated kernel has them.
class SimulatedArithmetic {
 public:
  /// Sums in fp32, or as tensor cores add; operands of fp32, or of TF32.
  SimulatedArithmetic(bool tensor_core, bool tf32) : tensor_core_(tensor_core) {
    if (tf32) operands_.input_rounding = 0x1p-11;
  }
  /// What a product reads of `x`.
  float operand(double x) const { return static_cast<float>(as_operand(operands_, x)); }
  /// sum of a(n) b(n), n < count, on top of `sum`.
  template <class A, class B>
  float dot(float sum, int count, A a, B b) const {
    if (!tensor_core_) {
      for (int n = 0; n < count; ++n) sum += operand(a(n)) * operand(b(n));
      return sum;
    }
    for (int first = 0; first < count; first += 16) {
      double group = sum;
      for (int n = first; n < std::min(count, first + 16); ++n)
        group += static_cast<double>(operand(a(n))) * operand(b(n));
      sum = truncated(group);
    }
    return sum;
  }

 private:
  /// Toward zero, as the tensor cores add.
  static float truncated(double exact) {
    const float nearest = static_cast<float>(exact);
    return std::abs(nearest) > std::abs(exact) ? std::nextafter(nearest, 0.0f) : nearest;
  }
  bool tensor_core_;
  Numerics operands_{};
};

/// The factors of dropout of one head, [queries, keys].
inline reference::Matrix dropout_of(const PassInputs& in, const Sequence& s, int h) {
  reference::Matrix factors = reference::Matrix::Ones(s.queries.count, s.keys.count);
  reference::DropoutFactors(in.dropout).apply({s.b, h, 0, s.sizes}, factors);
  return factors;
}

/// The element of the largest magnitude. There must be one.
inline double& largest_of(std::vector<double>& x) {
  return *std::max_element(x.begin(), x.end(),
                           [](double a, double b) { return std::abs(a) < std::abs(b); });
}

/// One simulated forward pass; all that it is given must outlive it.
class SimulatedFlash {
 public:
  /// `storage`: the type of the tensors.
  SimulatedFlash(const PassInputs& in, const TreeMod& mod, const TreeMask& mask, DType storage,
                 const Simulation& how)
      : in_(in),
        mod_(mod),
        mask_(mask),
        storage_(storage),
        how_(how),
        arithmetic_(how.tensor_core, how.tf32),
        dv_(in.v.extents()[3]) {}

  /// Once.
  SimulatedOutputs run() {
    const auto e = in_.q.extents();
    const Tensor<double, 4> rows({e[0], e[1], e[2], 1});
    SimulatedOutputs out{Tensor<double, 4>({e[0], e[1], e[2], dv_}), rows, rows};
    const int group = in_.sizes.hkv > 0 ? in_.sizes.hq / in_.sizes.hkv : 1;
    for (const Sequence& s : in_.sequences)
      for (int h = 0; h < e[1]; ++h) {
        sequence_ = &s;
        factors_ = dropout_of(in_, s, h);
        for (int i = 0; i < s.queries.count; ++i) {
          const int hkv = how_.fault == Fault::wrong_kv_head ? h % in_.sizes.hkv : h / group;
          const Part row = with_sink(merged(h, hkv, i), h);
          for (int d = 0; d < dv_; ++d) out.o(s.b, h, i, d) = rounded_to(storage_, row.o[d]);
          out.lse(s.b, h, i, 0) = how_.fault == Fault::lse_base_2 ? row.lse * 1.44269504f : row.lse;
          out.row_max(s.b, h, i, 0) = how_.base_2 ? row.max * 0.6931471805599453f : row.max;
        }
      }
    if (how_.fault == Fault::one_element && !out.o.values().empty())
      largest_of(out.o.values()) *= 1.02;
    return out;
  }

 private:
  /// `max` in the unit of the exponential.
  struct Part {
    std::vector<float> o;
    float lse, max;
  };

  float exponential(float x) {
    const float e = how_.base_2 ? std::exp2(x) : std::exp(x);
    if (x == 0 || how_.noise == 0) return e;
    return static_cast<float>(e * (1 + how_.noise * (2 * uniform_of(hash_of(17, drawn_++)) - 1)));
  }
  float unit() const { return how_.base_2 ? 1.4426950408889634f : 1.0f; }

  /// The modified score of one pair, in the unit of the exponential.
  float score(int h, int hkv, int i, int j) const {
    const int b = sequence_->b;
    FloatEnv env{sequence_->sizes};
    using I = Index<FloatEnv>;
    const I ib{b, &env}, ih{h, &env}, iq{i + env.sizes.q_offset, &env}, ikv{j, &env};
    const bool dropped = how_.fault == Fault::drop_tail_key && j == sequence_->keys.count - 1;
    float s = arithmetic_.dot(
        0, in_.q.extents()[3], [&](int d) { return in_.q(b, h, i, d); },
        [&](int d) { return in_.k(b, hkv, j, d); });
    s *= static_cast<float>(in_.scale);
    if (how_.fault == Fault::scale_one_percent) s *= 1.01f;
    if (how_.fault == Fault::low_scores) s = to_float(from_float<bfloat16>(s));
    const float t = call_mod(mod_, s, ib, ih, iq, ikv);
    return call_mask(mask_, ib, ih, iq, ikv) && !dropped ? t * unit() : -infinity;
  }

  /// Keys [first, last) of one row.
  Part part(int h, int hkv, int i, int first, int last) {
    const int b = sequence_->b;
    float m = -infinity, l = 0, most = -infinity;
    std::vector<float> o(dv_), p(how_.block);
    for (int j0 = first; j0 < last; j0 += how_.block) {
      const int keys = std::min(how_.block, last - j0);
      float top = m;
      for (int j = 0; j < keys; ++j) {
        top = std::max(top, p[j] = score(h, hkv, i, j0 + j));
        most = std::max(most, p[j]);
      }
      if (top == -infinity) continue;
      if (!how_.lazy || m == -infinity || top - m > (how_.base_2 ? 8.0f : 5.5f)) {
        const float rescale = m == -infinity                    ? 0
                              : how_.fault == Fault::no_rescale ? 1
                                                                : exponential(m - top);
        l *= rescale;
        for (float& x : o) x *= rescale;
        m = top;
      }
      for (int j = 0; j < keys; ++j) {
        p[j] = exponential(p[j] - m);
        l += p[j];
        if (how_.fault != Fault::no_dropout) p[j] *= static_cast<float>(factors_(i, j0 + j));
        if (how_.round_p) p[j] = static_cast<float>(rounded_to(storage_, p[j]));
      }
      for (int d = 0; d < dv_; ++d)
        o[d] = arithmetic_.dot(
            o[d], keys, [&](int j) { return p[j]; },
            [&](int j) { return in_.v(b, hkv, j0 + j, d); });
    }
    if (m == -infinity) return {std::move(o), -infinity, -infinity};
    const float inverse = 1 / l;
    for (float& x : o) x *= inverse;
    return {std::move(o), how_.base_2 ? (m + std::log2(l)) * 0.6931471805599453f : m + std::log(l),
            most};
  }

  /// O = sum over parts of exp(LSE_part - LSE) O_part.
  Part merged(int h, int hkv, int i) {
    const int skv = sequence_->keys.count;
    if (how_.parts == 1) return part(h, hkv, i, 0, skv);
    std::vector<Part> parts;
    const int each = (skv + how_.parts - 1) / how_.parts;
    for (int n = 0; n < how_.parts; ++n)
      parts.push_back(part(h, hkv, i, std::min(n * each, skv), std::min((n + 1) * each, skv)));
    return merge(parts);
  }

  Part merge(const std::vector<Part>& parts) const {
    float most = -infinity, max = -infinity;
    for (const Part& p : parts) most = std::max(most, p.lse), max = std::max(max, p.max);
    Part row{std::vector<float>(dv_), -infinity, max};
    if (most == -infinity) return row;
    float sum = 0;
    for (const Part& p : parts) {
      const float weight = std::exp(p.lse - most);
      sum += weight;
      for (int d = 0; d < dv_; ++d) row.o[d] += weight * p.o[d];
    }
    for (float& x : row.o) x /= sum;
    row.lse = most + std::log(sum);
    return row;
  }

  /// A part without values, whose LSE is the sink's logit.
  Part with_sink(Part row, int h) const {
    if (in_.sink.empty() || in_.sink[h] == -infinity || how_.fault == Fault::no_sink) return row;
    const Part sink{std::vector<float>(dv_), in_.sink[h], -infinity};
    return merge({row, sink});
  }

  const PassInputs& in_;
  const TreeMod& mod_;
  const TreeMask& mask_;
  DType storage_;
  Simulation how_;
  SimulatedArithmetic arithmetic_;
  int dv_;
  const Sequence* sequence_ = nullptr;  // the one at hand
  reference::Matrix factors_;           // of dropout, of the head at hand
  std::uint64_t drawn_ = 0;
};

}  // namespace attn::fuzz
