#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "mods/lang/compile.h"
#include "mods/lang/parse.h"
#include "mods/lang/tables.h"
#include "optimized/attention_arguments.h"
#include "optimized/implementations.h"
#include "optimized/planted_faults.h"
#include "optimized/refusal_fixtures.h"

/// What the tests of the paths share: tensors with a mod and a mask as text, run by a row of the
/// table.
namespace attn::path_test {

/// Calls `run(T{}, engine)` for every storage type and engine.
template <class Run>
void for_each_build(Run run) {
  for (const Engine engine : {Engine::warp, Engine::thread}) {
    SCOPED_TRACE(name_of(engine));
    run(half{}, engine);
#if !defined(ATTN_FIRST_INSTANCE_ONLY)
    run(bfloat16{}, engine);
#endif
  }
}

/// Commits a fault in runs of the planted build while it lives.
class Plant {
 public:
  explicit Plant(PlantedFault fault) { active_fault() = fault; }
  ~Plant() { active_fault() = PlantedFault::none; }
  Plant(const Plant&) = delete;
};

struct Lengths {
  int b = 1, hq = 1, hkv = 1, sq = 1, skv = 1, d = 16, dv = 16;
};

/// Fills every byte with ones: a NaN in every storage type.
template <class X, int Rank>
void poison(Tensor<X, Rank>& x) {
  if (!x.values().empty())
    std::memset(static_cast<void*>(x.values().data()), 0xff, x.values().size() * sizeof(X));
}

/// Multiples of `step` between -8 and 8 of them.
template <class T, int Rank>
void fill(Tensor<T, Rank>& x, std::uint32_t seed, float step) {
  for (T& entry : x.values()) {
    seed = seed * 1664525u + 1013904223u;
    entry = from_float<T>((static_cast<float>((seed >> 16) % 17) - 8) * step);
  }
}

/// Whole numbers -1, 0 and 1.
template <class T, int Rank>
void fill_signs(Tensor<T, Rank>& x, std::uint32_t seed) {
  for (T& entry : x.values()) {
    seed = seed * 1664525u + 1013904223u;
    entry = from_float<T>(static_cast<float>(static_cast<int>((seed >> 16) % 3) - 1));
  }
}

/// The tensors of both passes, with outputs that hold NaN.
template <class T>
struct Attention {
  Lengths n;
  Tensor<T, 4> q, k, v, o, d_o, dq, dk, dv;
  Tensor<float, 3> lse, row_max, d_lse;
  Tensor<float, 1> slope, sink;  // [Hq]: the table `slope` of the mod; the sink if it is given
  Tensor<float, 1> bias;         // [B]: the table `bias`
  std::vector<float> d_slope, d_sink;
  std::vector<float*> gradients;
  AttentionOptions options;
  std::string mod = "score", mask = "true";

  explicit Attention(const Lengths& n)
      : n(n),
        q({n.b, n.hq, n.sq, n.d}),
        k({n.b, n.hkv, n.skv, n.d}),
        v({n.b, n.hkv, n.skv, n.dv}),
        o({n.b, n.hq, n.sq, n.dv}),
        d_o(o),
        dq(q),
        dk(k),
        dv(v),
        lse({n.b, n.hq, n.sq}),
        row_max(lse),
        d_lse(lse),
        slope({n.hq}),
        sink({n.hq}),
        bias({n.b}),
        d_slope(static_cast<std::size_t>(n.hq), std::nanf("")),
        d_sink(d_slope) {
    poison_outputs();
  }
  Attention(const Attention&) = delete;

  void poison_outputs() {
    for (Tensor<T, 4>* x : {&o, &dq, &dk, &dv}) poison(*x);
    for (Tensor<float, 3>* x : {&lse, &row_max}) poison(*x);
  }
  /// Anything: scores of a few units.
  void fill_all(std::uint32_t seed = 1) {
    for (Tensor<T, 4>* x : {&q, &k, &v, &d_o}) fill(*x, ++seed, 0.125f);
    fill(d_lse, ++seed, 0.125f);
    fill(slope, ++seed, 0.03125f);
    fill(sink, ++seed, 0.125f);
    fill(bias, ++seed, 0.03125f);
  }
  void give_sink() { options.sink = std::as_const(sink).view(); }

  AttentionCall call() {
    Tables tables;
    tables.add("slope", std::as_const(slope).view());
    tables.add("bias", std::as_const(bias).view());
    AttentionCall call{
        forward_arguments<T>(q.view(), k.view(), v.view(), o.view(), lse.view()), {}, {}};
    call.mod = compile_mod(parse_mod(mod, tables.declarations()), tables);
    call.mask = compile_mask(parse_mask(mask, tables.declarations()), tables);
    call.options = options;
    return call;
  }
  AttentionCall forward_call() {
    AttentionCall forward = call();
    forward.row_max = describe("row_max", row_max.view());
    return forward;
  }
  AttentionCall backward_call() {
    AttentionCall backward = call();
    backward.d_o = describe("d_o", d_o.view());
    backward.d_lse = describe("d_lse", d_lse.view());
    backward.dq = describe("dq", dq.view());
    backward.dk = describe("dk", dk.view());
    backward.dv = describe("dv", dv.view());
    gradients.clear();
    if (mod.find("slope") != std::string::npos) gradients.push_back(d_slope.data());
    backward.d_captured = gradients;
    if (options.sink) backward.d_sink = d_sink.data();
    return backward;
  }
  void forward(Engine engine) { implementation_named("flash_forward").run(forward_call(), engine); }
  void backward(Engine engine) {
    implementation_named("flash_backward").run(backward_call(), engine);
  }
};

template <class X>
bool same_bits(const std::vector<X>& a, const std::vector<X>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(X)) == 0);
}
template <class X, int Rank>
bool same_bits(const Tensor<X, Rank>& a, const Tensor<X, Rank>& b) {
  return a.extents() == b.extents() && same_bits(a.values(), b.values());
}
template <class T>
bool same_outputs(const Attention<T>& a, const Attention<T>& b) {
  return same_bits(a.o, b.o) && same_bits(a.lse, b.lse) && same_bits(a.row_max, b.row_max);
}
template <class T>
bool same_gradients(const Attention<T>& a, const Attention<T>& b) {
  return same_bits(a.dq, b.dq) && same_bits(a.dk, b.dk) && same_bits(a.dv, b.dv) &&
         same_bits(a.d_slope, b.d_slope) && same_bits(a.d_sink, b.d_sink);
}

template <class X, int Rank>
bool has_nan(const Tensor<X, Rank>& x) {
  for (const X& entry : x.values()) {
    if constexpr (std::is_same_v<X, float>) {
      if (std::isnan(entry)) return true;
    } else if (std::isnan(to_float(entry))) {
      return true;
    }
  }
  return false;
}

}  // namespace attn::path_test
