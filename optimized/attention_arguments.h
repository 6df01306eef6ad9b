#pragma once

#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "mods/lang/tensor.h"
#include "optimized/attention_call.h"
#include "optimized/implementations.h"

/// The arguments of a pass as a caller has them, in any unit: `forward_arguments`,
/// `decode_arguments` and `backward_arguments` make an AttentionArguments of typed views, and
/// `forward_row` and its like name the implementation that it is for. optimized/attention.h runs
/// them, as do the functions that `attn_add_functor` (CMake) generates for a mod of one's own.
namespace attn {

/// Sequences one after another in batch entry 0 of the tensors: sequence n has the queries cu_q[n]
/// to cu_q[n + 1] - 1 and the keys cu_kv[n] to cu_kv[n + 1] - 1. Empty spans: a sequence a batch
/// entry.
struct PackedLengths {
  std::span<const std::int32_t> cu_q, cu_kv;  ///< [N + 1]
};

/// What the forward pass may be told.
struct ForwardOptions : AttentionOptions {
  const BlockMask* blocks = nullptr;  ///< visit only these blocks of the mask
  PackedLengths packed;               ///< none: a sequence a batch entry
  TensorView<float, 3> row_max{};     ///< [B, Hq, Sq]: the largest score of each row, where wanted
  bool tf32 = false;                  ///< fp32 storage on tensor cores, in 10 bits
};

/// What a decode step may be told.
struct DecodeOptions : AttentionOptions {
  /// [B, max_pages]: the cache is in pages, [pages, Hkv, page_size, D].
  TensorView<const std::int32_t, 2> page_table{};
  TensorView<float, 3> row_max{};  ///< [B, Hq, Sq], where wanted
};

/// What the backward pass may be told.
struct BackwardOptions : AttentionOptions {
  const BlockMask* blocks = nullptr;   ///< visit only these blocks of the mask
  PackedLengths packed;                ///< none: a sequence a batch entry
  TensorView<const float, 3> d_lse{};  ///< [B, Hq, Sq]; none: zeros
  /// fp32, row-major, one for each floating tensor that the mod reads, in order of first read.
  std::span<float* const> d_captured{};
  float* d_sink = nullptr;  ///< [Hq]
};

/// What `forward` and `decode` return.
template <class T>
struct ForwardTensors {
  Tensor<T, 4> o;        ///< [B, Hq, Sq, Dv]
  Tensor<float, 3> lse;  ///< [B, Hq, Sq], natural logarithm
};

/// What `backward` returns.
template <class T>
struct BackwardTensors {
  Tensor<T, 4> dq, dk, dv;                     ///< as q, k and v
  std::vector<std::vector<float>> d_captured;  ///< as in BackwardOptions
  std::vector<float> d_sink;                   ///< [Hq]; empty where there is no sink
};

/// Q, K and V alone.
template <class T>
AttentionArguments tensors_of(TensorView<const T, 4> q, TensorView<const T, 4> k,
                              TensorView<const T, 4> v) {
  AttentionArguments call;
  call.q = describe("q", q);
  call.k = describe("k", k);
  call.v = describe("v", v);
  return call;
}

/// The implementation that runs a forward pass of storage type T.
template <class T>
const Implementation& forward_row(const ForwardOptions& options = {}) {
  if constexpr (std::is_same_v<T, float>)
    return implementation_named(options.tf32 ? "flash_forward_tf32" : "flash_forward_fp32");
  else if (options.blocks != nullptr)
    return implementation_named("block_sparse_forward");
  else
    return implementation_named(options.packed.cu_q.empty() ? "flash_forward" : "packed_forward");
}

/// The implementation that runs a step of decoding.
inline const Implementation& decode_row(const DecodeOptions& options = {}) {
  return implementation_named(options.page_table.data != nullptr ? "decode_paged" : "decode");
}
/// The implementation that runs a backward pass.
inline const Implementation& backward_row(const BackwardOptions& options = {}) {
  return implementation_named(options.blocks != nullptr     ? "block_sparse_backward"
                              : options.packed.cu_q.empty() ? "flash_backward"
                                                            : "packed_backward");
}

/// What `forward` of optimized/attention.h takes.
template <class T>
AttentionArguments forward_arguments(std::type_identity_t<TensorView<const T, 4>> q,
                                     std::type_identity_t<TensorView<const T, 4>> k,
                                     std::type_identity_t<TensorView<const T, 4>> v,
                                     TensorView<T, 4> o, TensorView<float, 3> lse,
                                     const ForwardOptions& options = {}) {
  AttentionArguments call = tensors_of<T>(q, k, v);
  call.o = describe("o", o);
  call.lse = describe("lse", lse);
  if (options.row_max.data != nullptr) call.row_max = describe("row_max", options.row_max);
  call.options = options;
  call.blocks = options.blocks;
  call.cu_q = options.packed.cu_q;
  call.cu_kv = options.packed.cu_kv;
  return call;
}

/// What `decode` takes.
template <class T>
AttentionArguments decode_arguments(std::type_identity_t<TensorView<const T, 4>> q,
                                    std::type_identity_t<TensorView<const T, 4>> k,
                                    std::type_identity_t<TensorView<const T, 4>> v,
                                    std::span<const std::int32_t> lengths, TensorView<T, 4> o,
                                    TensorView<float, 3> lse, const DecodeOptions& options = {}) {
  AttentionArguments call = tensors_of<T>(q, k, v);
  call.o = describe("o", o);
  call.lse = describe("lse", lse);
  if (options.row_max.data != nullptr) call.row_max = describe("row_max", options.row_max);
  call.options = options;
  call.lengths = lengths;
  call.page_table = options.page_table;
  return call;
}

/// The tensors of a backward pass. `o` and `lse` are what forward gave.
template <class T>
struct BackwardViews {
  TensorView<const T, 4> q, k, v, o;  ///< [B, H, S, D or Dv]
  TensorView<const float, 3> lse;     ///< [B, Hq, Sq]
  TensorView<const T, 4> d_o;         ///< [B, Hq, Sq, Dv]
  TensorView<T, 4> dq, dk, dv;        ///< as q, k and v; written
};

/// What `backward` takes.
template <class T>
AttentionArguments backward_arguments(const BackwardViews<T>& x,
                                      const BackwardOptions& options = {}) {
  AttentionArguments call = tensors_of<T>(x.q, x.k, x.v);
  call.o = describe("o", x.o);
  call.lse = describe("lse", x.lse);
  call.d_o = describe("d_o", x.d_o);
  if (options.d_lse.data != nullptr) call.d_lse = describe("d_lse", options.d_lse);
  call.dq = describe("dq", x.dq);
  call.dk = describe("dk", x.dk);
  call.dv = describe("dv", x.dv);
  call.options = options;
  call.blocks = options.blocks;
  call.cu_q = options.packed.cu_q;
  call.cu_kv = options.packed.cu_kv;
  call.d_captured = options.d_captured;
  call.d_sink = options.d_sink;
  return call;
}

}  // namespace attn
