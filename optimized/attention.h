#pragma once

#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "optimized/attention_arguments.h"
#include "optimized/flash_backward_launch.h"
#include "optimized/flash_forward_launch.h"
#include "optimized/fp32_forward_launch.h"
#include "optimized/tf32_forward_launch.h"

/// Attention on tensors, with mods and masks of any type: the public face of the kernels.
///
/// A unit that includes this is compiled for one target: an engine of the CPU (attn_add_kernels in
/// CMake), where tensors are host memory and each launch runs under the checker, or CUDA, where
/// they are device memory and launches are queued in `options.launch.stream`. What describes a call
/// (lengths, page tables, block masks) is host memory always: it is checked before any work. What a
/// mod or mask captures is read on both sides, as the checks run it on the host: on CUDA it lies in
/// managed or page-locked memory.
///
/// Outputs are the caller's views. What a pass needs beside them is `options.workspace`, of the
/// size that `forward_workspace`, `decode_workspace` or `backward_workspace` answers for the same
/// arguments; without one it is allocated for the call. The overloads that return tensors allocate
/// those, too; they are for host memory.
///
/// T is half or bfloat16 (head sizes up to 256); forward takes float as well.
namespace attn {
inline namespace ATTN_TARGET {

/// Writes O [B, Hq, Sq, Dv] and LSE [B, Hq, Sq] of q [B, Hq, Sq, D], k [B, Hkv, Skv, D] and
/// v [B, Hkv, Skv, Dv]: any strides, Hq a multiple of Hkv.
/// @throws std::invalid_argument if an argument does not fit, before any work.
/// @throws simt::CheckerFault if the checker finds a fault.
template <class T, class Mod, class Mask>
void forward(std::type_identity_t<TensorView<const T, 4>> q,
             std::type_identity_t<TensorView<const T, 4>> k,
             std::type_identity_t<TensorView<const T, 4>> v, TensorView<T, 4> o,
             TensorView<float, 3> lse, const Mod& mod, const Mask& mask,
             const ForwardOptions& options = {}) {
  const Implementation& row = forward_row<T>(options);
  const AttentionArguments call = forward_arguments<T>(q, k, v, o, lse, options);
  if constexpr (!std::is_same_v<T, float>)
    flash_forward<T>(call, row, mod, mask);
  else if (options.tf32)
    tf32_forward(call, row, mod, mask);
  else
    fp32_forward(call, row, mod, mask);
}

/// The same into new tensors.
template <class T, class Mod, class Mask>
ForwardTensors<T> forward(TensorView<const T, 4> q, std::type_identity_t<TensorView<const T, 4>> k,
                          std::type_identity_t<TensorView<const T, 4>> v, const Mod& mod,
                          const Mask& mask, const ForwardOptions& options = {}) {
  ForwardTensors<T> out{Tensor<T, 4>({q.extents[0], q.extents[1], q.extents[2], v.extents[3]}),
                        Tensor<float, 3>({q.extents[0], q.extents[1], q.extents[2]})};
  forward<T>(q, k, v, out.o.view(), out.lse.view(), mod, mask, options);
  return out;
}

/// Bytes of workspace that `forward` takes for these arguments; the tensors' data is not looked at.
template <class T, class Mod, class Mask>
std::size_t forward_workspace(std::type_identity_t<TensorView<const T, 4>> q,
                              std::type_identity_t<TensorView<const T, 4>> k,
                              std::type_identity_t<TensorView<const T, 4>> v, TensorView<T, 4> o,
                              TensorView<float, 3> lse, const Mod& mod, const Mask& mask,
                              const ForwardOptions& options = {}) {
  if constexpr (std::is_same_v<T, float>)
    return 0;
  else
    return flash_forward_workspace<T>(forward_arguments<T>(q, k, v, o, lse, options),
                                      forward_row<T>(options), mod, mask);
}

/// One step of decoding: the queries q [B, Hq, Sq, D] are the last Sq of sequences whose first
/// lengths[b] keys stand in a cache k [B, Hkv, capacity, D], v [B, Hkv, capacity, Dv], or in pages
/// (`options.page_table`). Mods and masks see q = row + lengths[b] - Sq. What lies behind a length
/// is not read. The result depends on `options.splits` by rounding only.
/// @throws as `forward`.
template <class T, class Mod, class Mask>
void decode(std::type_identity_t<TensorView<const T, 4>> q,
            std::type_identity_t<TensorView<const T, 4>> k,
            std::type_identity_t<TensorView<const T, 4>> v, std::span<const std::int32_t> lengths,
            TensorView<T, 4> o, TensorView<float, 3> lse, const Mod& mod, const Mask& mask,
            const DecodeOptions& options = {}) {
  flash_forward<T>(decode_arguments<T>(q, k, v, lengths, o, lse, options), decode_row(options), mod,
                   mask);
}

/// The same into new tensors.
template <class T, class Mod, class Mask>
ForwardTensors<T> decode(TensorView<const T, 4> q, std::type_identity_t<TensorView<const T, 4>> k,
                         std::type_identity_t<TensorView<const T, 4>> v,
                         std::span<const std::int32_t> lengths, const Mod& mod, const Mask& mask,
                         const DecodeOptions& options = {}) {
  ForwardTensors<T> out{Tensor<T, 4>({q.extents[0], q.extents[1], q.extents[2], v.extents[3]}),
                        Tensor<float, 3>({q.extents[0], q.extents[1], q.extents[2]})};
  decode<T>(q, k, v, lengths, out.o.view(), out.lse.view(), mod, mask, options);
  return out;
}

/// Bytes of workspace that `decode` takes.
template <class T, class Mod, class Mask>
std::size_t decode_workspace(std::type_identity_t<TensorView<const T, 4>> q,
                             std::type_identity_t<TensorView<const T, 4>> k,
                             std::type_identity_t<TensorView<const T, 4>> v,
                             std::span<const std::int32_t> lengths, TensorView<T, 4> o,
                             TensorView<float, 3> lse, const Mod& mod, const Mask& mask,
                             const DecodeOptions& options = {}) {
  return flash_forward_workspace<T>(decode_arguments<T>(q, k, v, lengths, o, lse, options),
                                    decode_row(options), mod, mask);
}

/// Writes the gradients of sum(dO * O) + sum(dLSE * LSE): dQ, dK, dV, and those that the options
/// ask for. The mod must be a template on Score and Index: it runs on dual numbers. The same bits
/// each time.
/// @throws as `forward`.
template <class T, class Mod, class Mask>
void backward(const BackwardViews<T>& x, const Mod& mod, const Mask& mask,
              const BackwardOptions& options = {}) {
  flash_backward<T>(backward_arguments<T>(x, options), backward_row(options), mod, mask);
}

/// The same into new tensors, with the gradients of every captured tensor and of the sink.
/// @param out what `forward` returned for the same arguments
template <class T, class Mod, class Mask>
BackwardTensors<T> backward(TensorView<const T, 4> q,
                            std::type_identity_t<TensorView<const T, 4>> k,
                            std::type_identity_t<TensorView<const T, 4>> v,
                            const ForwardTensors<std::type_identity_t<T>>& out,
                            std::type_identity_t<TensorView<const T, 4>> d_o, const Mod& mod,
                            const Mask& mask, BackwardOptions options = {}) {
  BackwardTensors<T> grad{
      Tensor<T, 4>(q.extents), Tensor<T, 4>(k.extents), Tensor<T, 4>(v.extents), {}, {}};
  const Problem problem = make_problem<T>(q, k, v, options);
  std::vector<float*> captured;
  for (const CapturedTensor& t : captured_of_mod(mod, problem.sizes())) {
    grad.d_captured.emplace_back(static_cast<std::size_t>(entries_of(t)));
    captured.push_back(grad.d_captured.back().data());
  }
  if (options.sink) grad.d_sink.resize(static_cast<std::size_t>(problem.hq));
  options.d_captured = captured;
  options.d_sink = options.sink ? grad.d_sink.data() : nullptr;
  backward<T>(BackwardViews<T>{q, k, v, out.o.view(), out.lse.view(), d_o, grad.dq.view(),
                               grad.dk.view(), grad.dv.view()},
              mod, mask, options);
  return grad;
}

/// Bytes of workspace that `backward` takes.
template <class T, class Mod, class Mask>
std::size_t backward_workspace(const BackwardViews<T>& x, const Mod& mod, const Mask& mask,
                               const BackwardOptions& options = {}) {
  return flash_backward_workspace<T>(backward_arguments<T>(x, options), backward_row(options), mod,
                                     mask);
}

}  // namespace ATTN_TARGET
}  // namespace attn
