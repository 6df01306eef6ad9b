#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "fuzz/forward_bounds.h"
#include "fuzz/inputs.h"
#include "fuzz/random.h"

/// For the tests of the oracle: flash attention on the CPU in plain float code, written from the
/// paper (T. Dao, FlashAttention-2, 2023, Algorithm 1) and not from the kernel, with every freedom
/// that the contract gives and, on demand, one fault.
namespace attn::fuzz {

enum class Fault {
  none,
  drop_tail_key,
  scale_one_percent,
  lse_base_2,
  no_rescale,
  wrong_kv_head,
  low_scores,
  one_element
};
inline constexpr int simulated_fault_count = static_cast<int>(Fault::one_element) + 1;

struct Simulation {
  int block = 32;            ///< keys a tile
  int parts = 1;             ///< runs of keys worked on apart and merged by their LSE
  bool round_p = true;       ///< P rounded to the storage type
  bool lazy = false;         ///< the maximum moves only when a weight would pass 2^8
  bool base_2 = false;       ///< exp2 of scores times log2 e
  bool tensor_core = false;  ///< sums in groups of 16, truncated
  double noise = 0;          ///< relative, of each exponential
  Fault fault = Fault::none;
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

struct SimulatedOutputs {
  Tensor<double, 4> o, lse;  // [B, Hq, Sq, Dv], [B, Hq, Sq, 1]
};

/// Mods in fp32, one number at a time.
struct FloatEnv {
  using Int = int;
  using Score = float;
  Sizes sizes;
  float to_score(int i) const { return static_cast<float>(i); }
  template <int Rank, class T>
  auto read(const Captured<Rank, T>& c, const int (&at)[Rank]) const {
    const T& entry = c.tensor.data[checked_offset(c, at)];
    if constexpr (is_floating_storage<T>)
      return stored_score<float>(entry);
    else
      return entry;
  }
};

class SimulatedFlash {
 public:
  SimulatedFlash(const ForwardInputs& in, const TreeMod& mod, const TreeMask& mask, DType storage,
                 const Simulation& how)
      : in_(in), mod_(mod), mask_(mask), storage_(storage), how_(how), dv_(in.v.extents()[3]) {}

  SimulatedOutputs run() {
    const auto e = in_.q.extents();
    SimulatedOutputs out{Tensor<double, 4>({e[0], e[1], e[2], dv_}),
                         Tensor<double, 4>({e[0], e[1], e[2], 1})};
    const int group = in_.sizes.hkv > 0 ? in_.sizes.hq / in_.sizes.hkv : 1;
    for (int b = 0; b < e[0]; ++b)
      for (int h = 0; h < e[1]; ++h)
        for (int i = 0; i < e[2]; ++i) {
          const int hkv = how_.fault == Fault::wrong_kv_head ? h % in_.sizes.hkv : h / group;
          const Part row = merged(b, h, hkv, i);
          for (int d = 0; d < dv_; ++d) out.o(b, h, i, d) = rounded_to(storage_, row.o[d]);
          out.lse(b, h, i, 0) = how_.fault == Fault::lse_base_2 ? row.lse * 1.44269504f : row.lse;
        }
    if (how_.fault == Fault::one_element && !out.o.values().empty())
      largest(out.o.values()) *= 1.02;
    return out;
  }

 private:
  struct Part {
    std::vector<float> o;
    float lse;
  };

  static double& largest(std::vector<double>& x) {
    return *std::max_element(x.begin(), x.end(),
                             [](double a, double b) { return std::abs(a) < std::abs(b); });
  }
  /// Toward zero, as the tensor cores add; else to nearest.
  float stored_sum(double exact) const {
    const float nearest = static_cast<float>(exact);
    if (how_.tensor_core && std::abs(nearest) > std::abs(exact))
      return std::nextafter(nearest, 0.0f);
    return nearest;
  }
  /// sum of a(n) b(n), n < count, on top of `sum`.
  template <class A, class B>
  float dot(float sum, int count, A a, B b) const {
    if (!how_.tensor_core) {
      for (int n = 0; n < count; ++n) sum += static_cast<float>(a(n)) * static_cast<float>(b(n));
      return sum;
    }
    for (int first = 0; first < count; first += 16) {
      double group = sum;
      for (int n = first; n < std::min(count, first + 16); ++n) group += a(n) * b(n);
      sum = stored_sum(group);
    }
    return sum;
  }
  float exponential(float x) {
    const float e = how_.base_2 ? std::exp2(x) : std::exp(x);
    if (x == 0 || how_.noise == 0) return e;
    return static_cast<float>(e * (1 + how_.noise * (2 * uniform_of(hash_of(17, drawn_++)) - 1)));
  }
  float unit() const { return how_.base_2 ? 1.4426950408889634f : 1.0f; }

  /// The modified score of one pair, in the unit of the exponential.
  float score(int b, int h, int hkv, int i, int j) const {
    FloatEnv env{in_.sizes};
    using I = Index<FloatEnv>;
    const I ib{b, &env}, ih{h, &env}, iq{i, &env}, ikv{j, &env};
    const bool dropped = how_.fault == Fault::drop_tail_key && j == in_.sizes.skv - 1;
    float s = dot(
        0, in_.q.extents()[3], [&](int d) { return in_.q(b, h, i, d); },
        [&](int d) { return in_.k(b, hkv, j, d); });
    s *= static_cast<float>(in_.scale);
    if (how_.fault == Fault::scale_one_percent) s *= 1.01f;
    if (how_.fault == Fault::low_scores) s = to_float(from_float<bfloat16>(s));
    const float t = call_mod(mod_, s, ib, ih, iq, ikv);
    return call_mask(mask_, ib, ih, iq, ikv) && !dropped ? t * unit() : -infinity;
  }

  /// Keys [first, last) of one row.
  Part part(int b, int h, int hkv, int i, int first, int last) {
    float m = -infinity, l = 0;
    std::vector<float> o(dv_), p(how_.block);
    for (int j0 = first; j0 < last; j0 += how_.block) {
      const int keys = std::min(how_.block, last - j0);
      float top = m;
      for (int j = 0; j < keys; ++j) top = std::max(top, p[j] = score(b, h, hkv, i, j0 + j));
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
        if (how_.round_p) p[j] = static_cast<float>(rounded_to(storage_, p[j]));
      }
      for (int d = 0; d < dv_; ++d)
        o[d] = dot(
            o[d], keys, [&](int j) { return p[j]; },
            [&](int j) { return in_.v(b, hkv, j0 + j, d); });
    }
    if (m == -infinity) return {std::move(o), -infinity};
    const float inverse = 1 / l;
    for (float& x : o) x *= inverse;
    return {std::move(o), how_.base_2 ? (m + std::log2(l)) * 0.6931471805599453f : m + std::log(l)};
  }

  /// O = sum over parts of exp(LSE_part - LSE) O_part.
  Part merged(int b, int h, int hkv, int i) {
    if (how_.parts == 1) return part(b, h, hkv, i, 0, in_.sizes.skv);
    std::vector<Part> parts;
    const int each = (in_.sizes.skv + how_.parts - 1) / how_.parts;
    float most = -infinity;
    for (int n = 0; n < how_.parts; ++n) {
      parts.push_back(part(b, h, hkv, i, std::min(n * each, in_.sizes.skv),
                           std::min((n + 1) * each, in_.sizes.skv)));
      most = std::max(most, parts.back().lse);
    }
    Part row{std::vector<float>(dv_), -infinity};
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

  const ForwardInputs& in_;
  const TreeMod& mod_;
  const TreeMask& mask_;
  DType storage_;
  Simulation how_;
  int dv_;
  std::uint64_t drawn_ = 0;
};

}  // namespace attn::fuzz
