#include <cmath>

#include "mods/absolute_bias.h"
#include "mods/alibi.h"
#include "mods/alibi_distance.h"
#include "mods/compose.h"
#include "mods/graphormer.h"
#include "mods/mixed_index_bias.h"
#include "mods/mla_rope.h"
#include "mods/multiplier.h"
#include "mods/registry_entry.h"
#include "mods/relative_bias.h"
#include "mods/reversed.h"
#include "mods/sandwich.h"
#include "mods/stress.h"

/// Mods that read tables, with an example of each table.
namespace attn::detail {
namespace {

/// A slope a head, as in the ALiBi paper for a power of two: 2^(-8 (h + 1) / Hq).
Captured<1> slope(Arguments& a) {
  const Tensor<float, 1> slopes = alibi_slopes(a.sizes.hq);
  return a.table<float, 1>("slope", {a.sizes.hq}, [&](const auto& at) { return slopes(at[0]); });
}
Captured<1> negated_slope(Arguments& a) {
  const Tensor<float, 1> slopes = alibi_slopes(a.sizes.hq);
  return a.table<float, 1>("negated_slope", {a.sizes.hq},
                           [&](const auto& at) { return -slopes(at[0]); });
}
Captured<3> head(Arguments& a) { return reals<3>(a, "head", {a.sizes.hq, 1, 1}); }
Captured<4> batch(Arguments& a) { return reals<4>(a, "batch", {a.sizes.b, 1, 1, 1}); }
Captured<2> query(Arguments& a) { return reals<2>(a, "query", {a.sizes.sq, 1}); }
Captured<1> key(Arguments& a) { return reals<1>(a, "key", {a.sizes.skv}); }
Captured<2> pair(Arguments& a) { return reals<2>(a, "pair", {a.sizes.sq, a.sizes.skv}); }
Captured<4> bias(Arguments& a) {
  return reals<4>(a, "bias", {a.sizes.b, a.sizes.hq, a.sizes.sq, a.sizes.skv});
}
Captured<4> batch_bias(Arguments& a) {
  return reals<4>(a, "batch_bias", {a.sizes.b, 1, a.sizes.sq, a.sizes.skv});
}
Captured<1> temperature(Arguments& a) { return reals<1>(a, "temperature", {1}); }
Captured<1> batch_table(Arguments& a) { return reals<1>(a, "batch_table", {a.sizes.b}); }
Captured<1> head_table(Arguments& a) { return reals<1>(a, "head_table", {a.sizes.hq}); }
Captured<1> query_table(Arguments& a) { return reals<1>(a, "query_table", {a.sizes.sq}); }
Captured<4> mixed(Arguments& a) {
  return reals<4>(a, "mixed", {a.sizes.b, a.sizes.hq, a.sizes.sq, a["length"]});
}
Captured<1> frequency(Arguments& a) {
  return a.table<float, 1>("frequency", {4}, [](const auto& at) {
    return static_cast<float>(std::pow(10000.0, -static_cast<double>(at[0]) / 4));
  });
}

std::int64_t longest(const Arguments& a) { return std::max({a.sizes.sq, a.sizes.skv, 1}); }
/// A bias for each distance q - kv, from -(S - 1) to S - 1, S the longer length.
Captured<1> by_distance(Arguments& a) { return reals<1>(a, "by_distance", {2 * longest(a) - 1}); }
/// A bias for each |q - kv|.
Captured<1> by_length(Arguments& a) { return reals<1>(a, "by_length", {longest(a)}); }
/// A bias for each distance q - kv clamped to width.
Captured<1> clamped(Arguments& a) { return reals<1>(a, "clamped", {2 * a["width"] + 1}); }

Captured<2> spatial(Arguments& a) { return reals<2>(a, "spatial", {a.sizes.hq, 8}); }
Captured<3, std::int32_t> hops(Arguments& a) {  // on a ring of 12 nodes, at most 7
  return a.table<std::int32_t, 3>("hops", {a.sizes.b, a.sizes.sq, a.sizes.skv}, [](const auto& at) {
    const std::int64_t d = (at[1] + 12 - at[2] % 12 + at[0]) % 12;
    return std::min(d, 12 - d);
  });
}
Captured<3> edge_table(Arguments& a) { return reals<3>(a, "edge_table", {2, a.sizes.hq, 5}); }
Captured<4, std::int32_t> edges(Arguments& a) {
  return a.table<std::int32_t, 4>(
      "edges", {a.sizes.b, a.sizes.sq, a.sizes.skv, 2},
      [](const auto& at) { return (at[0] + 2 * at[1] + 3 * at[2] + at[3]) % 5; });
}
Captured<4> q_rope(Arguments& a) {
  return reals<4>(a, "q_rope", {a.sizes.b, a.sizes.hq, a.sizes.sq, 2});
}
Captured<3> k_rope(Arguments& a) { return reals<3>(a, "k_rope", {a.sizes.b, a.sizes.skv, 2}); }

std::vector<ModEntry> position_biases() {
  return {
      ATTN_MOD("alibi", "ALiBi (attention-gym)", "s + slope[h] (kv - q)", "mods/alibi.h",
               "score + slope[h] * (kv - q)", takes(), alibi(slope(a))),
      ATTN_MOD("alibi_distance", "ALiBi (FlashAttention 2, cuDNN, ggml)",
               "s - slope[h] |q + off - kv|", "mods/alibi_distance.h",
               "score - slope[h] * abs(q + (Skv - Sq) - kv)", takes(),
               alibi_distance(slope(a), bottom_right)),
      ATTN_MOD("alibi_reversed", "ALiBi with the other sign (flaxattention)",
               "s + slope[h] (q - kv)", "", "score + negated_slope[h] * (kv - q)", takes(),
               alibi(negated_slope(a))),
      ATTN_MOD("relative_bias", "relative 1-D bias (PyTorch)", "s + B[q - kv + S - 1]", "",
               "score + by_distance[q - kv + (max(Sq, Skv) - 1)]", takes(),
               relative_bias(reversed(by_distance(a)))),
      ATTN_MOD("relative_bias_abs", "relative 1-D bias of the absolute distance (PyTorch)",
               "s + B[|q - kv|]", "", "score + by_length[abs(q - kv)]", takes(),
               [table = by_length(a)](auto s, auto, auto, auto q, auto kv) {
                 return s + table(attn::abs(q - kv));
               }),
      ATTN_MOD("clamped_relative_bias", "local-window clamp bias (PyTorch, T5-like)",
               "s + B[clamp(q - kv, -w, w) + w]", "mods/relative_bias.h",
               "score + clamped[clamp(q - kv, -$width, $width) + $width]",
               takes(whole("width", 8, 0, "distance of the outermost entries")),
               relative_bias(reversed(clamped(a)))),
      ATTN_MOD(
          "sandwich", "Sandwich (attention-gym)", "s + sum_n cos((q - kv) W[n]) Hq / (8 (h + 1))",
          "mods/sandwich.h",
          "score + (cos((q - kv) * frequency[0]) + cos((q - kv) * frequency[1]) + "
          "cos((q - kv) * frequency[2]) + cos((q - kv) * frequency[3])) * Hq / (8.0 * (h + 1))",
          takes(), sandwich(frequency(a))),
      ATTN_MOD("mla_rope", "MLA rope (attention-gym)",
               "s + scale sum_d q_rope[b, h, q, d] k_rope[b, kv, d]", "mods/mla_rope.h",
               "score + $scale * (q_rope[b, h, q, 0] * k_rope[b, kv, 0] + q_rope[b, h, q, 1] * "
               "k_rope[b, kv, 1])",
               takes(real("scale", 0.5, -1e6, 1e6, "of the product")),
               mla_rope(q_rope(a), k_rope(a), a("scale"))),
  };
}

std::vector<ModEntry> tables_of_pairs() {
  return {
      ATTN_MOD("head_offset", "head offset (PyTorch head_offset)", "s buf[h]", "",
               "score * head[h, 0, 0]", takes(), multiplier(head(a))),
      ATTN_MOD("head_bias", "head bias (PyTorch, FlashAttention 4)", "s + buf[h]", "",
               "score + head[h, 0, 0]", takes(), absolute_bias(head(a))),
      ATTN_MOD("batch_bias", "batch bias (PyTorch, FlashAttention 4)", "s + buf[b]", "",
               "score + batch[b, 0, 0, 0]", takes(), absolute_bias(batch(a))),
      ATTN_MOD("dual_buffer", "dual buffer (FlashAttention 4)", "s + head[h] + pos[q]", "",
               "score + head[h, 0, 0] + query[q, 0]", takes(),
               then(absolute_bias(head(a)), absolute_bias(query(a)))),
      ATTN_MOD("absolute_bias_2d", "absolute 2-D bias (PyTorch)", "s + B[q, kv]",
               "mods/absolute_bias.h", "score + pair[q, kv]", takes(), absolute_bias(pair(a))),
      ATTN_MOD("absolute_bias_batch", "absolute bias a batch entry (PyTorch)", "s + B[b, q, kv]",
               "mods/absolute_bias.h", "score + batch_bias[b, 0, q, kv]", takes(),
               absolute_bias(batch_bias(a))),
      ATTN_MOD("absolute_bias", "absolute bias a head (PyTorch)", "s + B[b, h, q, kv]",
               "mods/absolute_bias.h", "score + bias[b, h, q, kv]", takes(),
               absolute_bias(bias(a))),
      ATTN_MOD("global_token_bias", "global-token bias, a key (PyTorch, FlashAttention 4)",
               "s + B[kv]", "", "score + key[kv]", takes(), absolute_bias(key(a))),
      ATTN_MOD("query_bias", "global-token bias, a query (PyTorch, FlashAttention 4)", "s + B[q]",
               "", "score + query[q, 0]", takes(), absolute_bias(query(a))),
      ATTN_MOD("multiplicative", "multiplicative (PyTorch)", "s B[q]", "mods/multiplier.h",
               "score * query[q, 0]", takes(), multiplier(query(a))),
      ATTN_MOD("temperature", "temperature, captured scale (PyTorch)", "s t[0]", "",
               "score * temperature[0]", takes(), multiplier(temperature(a))),
      ATTN_MOD("weird_bias", "weird bias, a mixed index (PyTorch tests)",
               "s + B[b, h, q, (q + kv) mod n]", "mods/mixed_index_bias.h",
               "score + mixed[b, h, q, floor_mod(q + kv, $length)]",
               takes(whole("length", 8, 1, "of the last axis")), mixed_index_bias(mixed(a))),
      ATTN_MOD("stress_buffers", "stress set: several buffers (FlashAttention 4 tests)",
               "s + head[h] query[q] + batch[b] key[kv]", "mods/stress.h",
               "score + head_table[h] * query_table[q] + batch_table[b] * key[kv]", takes(),
               stress_buffers(batch_table(a), head_table(a), query_table(a), key(a))),
      ATTN_MOD("graphormer_spatial", "Graphormer spatial (attention-gym)",
               "s + T[h, dist[b, q, kv]]", "mods/graphormer.h",
               "score + spatial[h, hops[b, q, kv]]", takes(),
               graphormer_spatial(spatial(a), hops(a))),
      ATTN_MOD(
          "graphormer_edge", "Graphormer edge (attention-gym)",
          "s + 1/N sum_n T[n, h, edge[b, q, kv, n]]", "mods/graphormer.h",
          "score + (edge_table[0, h, edges[b, q, kv, 0]] + edge_table[1, h, edges[b, q, kv, 1]])"
          " / 2",
          takes(), graphormer_edge(edge_table(a), edges(a))),
  };
}

}  // namespace

std::vector<ModEntry> table_mods() {
  std::vector<ModEntry> all = position_biases();
  for (ModEntry& entry : tables_of_pairs()) all.push_back(std::move(entry));
  return all;
}

}  // namespace attn::detail
