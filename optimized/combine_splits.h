#pragma once

#include <cstdint>

#include "optimized/flash_forward.h"

/// The second half of split decode: the parts of a row, each normalised over its own keys, merged
/// by their LSE:
///
///     LSE = log(sum_s exp(LSE_s) [+ exp(sink)])      O = sum_s exp(LSE_s - LSE) O_s
///
/// A part without keys has LSE_s = -inf and weight 0. One warp a row; bytes: splits * (Dv + 2) fp32
/// numbers read, Dv + 2 written.
///
/// Flash-Decoding, T. Dao, D. Haziza, F. Massa, G. Sizov, 2023.
namespace attn {
inline namespace ATTN_TARGET {

/// Warps of a block, a row each.
inline constexpr int combine_warps = 4;

/// What the kernel that merges splits is given.
template <class T>
struct CombineArgs {
  SplitOutput split;                  ///< what the parts gave
  HeadRows<T> o;                      ///< [B, Hq, Sq, Dv]
  TensorView<float, 3> lse, row_max;  ///< [B, Hq, Sq]; no row_max where it has no data
  TensorView<const float, 1> sink;    ///< [Hq]; no data: none
  Sizes sizes;                        ///< of the problem
  int dv = 0;                         ///< channels of O
};

/// O = sum over splits of exp(LSE_split - LSE) O_split; a warp a row.
template <class T>
ATTN_LAUNCH_BOUNDS(combine_warps * 32, 1)
ATTN_KERNEL combine_splits_kernel(const ATTN_GRID_CONSTANT CombineArgs<T> args) {
  using simt::lane;
  const Sizes& size = args.sizes;
  const std::int64_t rows =
      std::int64_t{size.b} * (planted(PlantedFault::M57) ? size.hkv : size.hq) * size.sq;
  const std::int64_t row = std::int64_t{simt::block_x()} * combine_warps + simt::warp_id();
  if (row >= rows) return;
  const int i = static_cast<int>(row % size.sq), h = static_cast<int>(row / size.sq % size.hq),
            b = static_cast<int>(row / size.sq / size.hq);
  const auto part = [&](const float* x, int split) {
    return simt::ldg_uniform(x, split * rows + row);
  };

  float largest = -infinity, top = -infinity;  // of the rows' scores, and of the LSE
  bool nan = false;
  for (int s = 0; s < args.split.splits; ++s) {
    const float lse = part(args.split.lse, s), m = part(args.split.max, s);
    nan |= lse != lse;
    largest = m > largest ? m : largest;
    top = lse > top ? lse : top;
  }
  const float sink = args.sink.data != nullptr
                         ? simt::ldg_uniform(args.sink.data, h * args.sink.strides[0])
                         : -infinity;
  top = sink > top ? sink : top;
  const float base = top == -infinity ? 0.0f : top;
  const auto weight = [&](float lse) { return simt::vexp2(lane<float>((lse - base) * log2_of_e)); };
  lane<float> sum = weight(sink);
  for (int s = 0; s < args.split.splits; ++s) sum += weight(part(args.split.lse, s));
  const lane<bool> empty = sum == 0.0f;
  const lane<float> inverse = select(empty, 0.0f, simt::vrcp(sum));
  const lane<float> not_a_number = nan ? std::numeric_limits<float>::quiet_NaN() : 0.0f;
  const float to_ln = planted(PlantedFault::M55) ? 1.0f : ln_of_2;

  for (int channel0 = 0; channel0 < args.dv; channel0 += 32) {
    const lane<int> channel = channel0 + simt::lane_id();
    const lane<bool> there = channel < args.dv;
    lane<float> o = not_a_number;
    for (int s = 0; s < args.split.splits; ++s) {
      const lane<float> w = weight(part(args.split.lse, s)) * inverse;
      o += w *
           simt::ldg(args.split.o, (s * rows + row) * args.dv + lane<std::int64_t>(channel), there);
    }
    const lane<std::uint32_t> packed = simt::pack2<T>(o, o);
    simt::stg(reinterpret_cast<std::uint16_t*>(args.o.view.data),
              args.o.head_offset(b, h) + i * args.o.view.strides[2] +
                  lane<std::int64_t>(channel) * args.o.view.strides[3],
              lane<std::uint16_t>(packed), there);
  }
  const lane<bool> first = simt::lane_id() == 0;
  const lane<float> lse = select(empty, -infinity, base + simt::vlog2(sum) * to_ln) + not_a_number;
  simt::stg(args.lse.data,
            lane<std::int64_t>(b * args.lse.strides[0] + h * args.lse.strides[1] +
                               i * args.lse.strides[2]),
            lse, first);
  if (args.row_max.data != nullptr)
    simt::stg(args.row_max.data,
              lane<std::int64_t>(b * args.row_max.strides[0] + h * args.row_max.strides[1] +
                                 i * args.row_max.strides[2]),
              lane<float>(largest + not_a_number), first);
}

}  // namespace ATTN_TARGET
}  // namespace attn
