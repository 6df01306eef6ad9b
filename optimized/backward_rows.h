#pragma once

#include <cstdint>

#include "optimized/flash_forward.h"

/// What the backward pass needs of each query row beforehand, and the gradient of the sink:
///
///     delta[i] = dot(dO[i,:], O[i,:]) - dLSE[i]
///     dSink[h] = -sum_i exp(sink[h] - LSE[i]) delta[i]
///
/// FlashAttention-2 (T. Dao, 2023), Algorithm 2, line 4, where dLSE is zero. One warp a row, 4 Dv
/// bytes read; sums run in a fixed order.
namespace attn {

/// What the delta kernel is given.
template <class T>
struct DeltaArgs {
  HeadRows<const T> o, d_o;            ///< [B, Hq, Sq, Dv]
  TensorView<const float, 3> d_lse;    ///< [B, Hq, Sq]; no data: zeros
  TensorView<float, 3> delta;          ///< [B, Hq, Sq]
  std::int64_t b = 0, hq = 0, sq = 0;  ///< extents of `delta`
  int d = 0, dv = 0;                   ///< of the tensors
};

/// What the kernel of the sink's gradient is given.
struct SinkGradientArgs {
  TensorView<const float, 1> sink;        ///< [Hq]
  TensorView<const float, 3> lse, delta;  ///< [B, Hq, Sq]
  std::int64_t b = 0, sq = 0;             ///< extents of `lse`
  float* d_sink = nullptr;                ///< [Hq]
};

inline namespace ATTN_TARGET {

/// Warps of a block of the kernels below, a row each.
inline constexpr int row_warps = 4;

/// The sum over the warp, in every lane.
ATTN_DEVICE simt::lane<float> warp_sum(simt::lane<float> x) {
  for (int mask = 16; mask > 0; mask /= 2) x += simt::shfl_xor(x, mask);
  return x;
}

/// delta_i = sum_d dO_id O_id, less dLSE_i where it is given; a warp a row.
template <class T>
ATTN_LAUNCH_BOUNDS(row_warps * 32, 1)
ATTN_KERNEL delta_kernel(const ATTN_GRID_CONSTANT DeltaArgs<T> args) {
  using simt::lane;
  const std::int64_t row = std::int64_t{simt::block_x()} * row_warps + simt::warp_id();
  if (row >= args.b * args.hq * args.sq) return;
  const std::int64_t i = row % args.sq;
  const int h = static_cast<int>(row / args.sq % args.hq),
            b = static_cast<int>(row / args.sq / args.hq);
  const auto load = [&](const HeadRows<const T>& x, lane<int> channel, lane<bool> there) {
    const lane<std::uint16_t> bits = simt::ldg(reinterpret_cast<const std::uint16_t*>(x.view.data),
                                               lane<std::int64_t>(channel) * x.view.strides[3] +
                                                   (x.head_offset(b, h) + i * x.view.strides[2]),
                                               there);
    lane<float> low, high;
    simt::unpack2<T>(lane<std::uint32_t>(bits), low, high);
    return low;
  };
  const int end = planted(PlantedFault::M35b) && args.d < args.dv ? args.d : args.dv;
  lane<float> sum = 0.0f;
  for (int channel0 = 0; channel0 < end; channel0 += 32) {
    const lane<int> channel = channel0 + simt::lane_id();
    const lane<bool> there = channel < end;
    sum = simt::vfma(load(args.o, channel, there), load(args.d_o, channel, there), sum);
  }
  lane<float> delta = warp_sum(sum);
  if (planted(PlantedFault::M35)) delta = 0.0f;
  if (args.d_lse.data != nullptr)
    delta = delta - simt::ldg_uniform(args.d_lse.data, b * args.d_lse.strides[0] +
                                                           h * args.d_lse.strides[1] +
                                                           i * args.d_lse.strides[2]);
  simt::stg(args.delta.data,
            lane<std::int64_t>(b * args.delta.strides[0] + h * args.delta.strides[1] +
                               i * args.delta.strides[2]),
            delta, simt::lane_id() == 0);
}

/// One block a head: each thread sums every 128th row, then the block in a tree.
ATTN_LAUNCH_BOUNDS(row_warps * 32, 1)
ATTN_KERNEL sink_gradient_kernel(const ATTN_GRID_CONSTANT SinkGradientArgs args) {
  using simt::lane;
  const int h = simt::block_x();
  const float sink = simt::ldg_uniform(args.sink.data, h * args.sink.strides[0]);
  const std::int64_t rows = args.b * args.sq;
  lane<float> sum = 0.0f;
  for (std::int64_t row0 = 0; row0 < rows; row0 += row_warps * 32) {
    const lane<std::int64_t> row = row0 + lane<std::int64_t>(simt::thread_id());
    const lane<bool> there = row < rows;
    const lane<std::int64_t> b = row / args.sq, i = row % args.sq;
    const lane<float> lse = simt::ldg(
        args.lse.data, b * args.lse.strides[0] + i * args.lse.strides[2] + h * args.lse.strides[1],
        there);
    const lane<float> delta = simt::ldg(
        args.delta.data,
        b * args.delta.strides[0] + i * args.delta.strides[2] + h * args.delta.strides[1], there);
    // A sink of -inf takes no probability, whatever the row.
    sum -= select(there && sink != -infinity, simt::vexp2((sink - lse) * log2_of_e) * delta, 0.0f);
  }
  sum = warp_sum(sum);
  const std::uint32_t partial = simt::smem_base();
  simt::sts(partial + static_cast<std::uint32_t>(simt::warp_id()) * 4u + lane<std::uint32_t>(0u),
            sum, simt::lane_id() == 0);
  simt::block_sync();
  const lane<float> part = simt::lds<float>(partial + lane<std::uint32_t>(simt::lane_id()) * 4u,
                                            simt::lane_id() < row_warps);
  const lane<float> total = warp_sum(part);
  simt::stg(args.d_sink, lane<std::int64_t>(std::int64_t{h}), total, simt::thread_id() == 0);
}

}  // namespace ATTN_TARGET
}  // namespace attn
