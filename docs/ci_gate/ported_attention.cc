// raw_attention.cu on the SIMT layer: the same kernel, which runs on a CPU under the checker, and
// its row of the table. See docs/ci_gate.md.
#include <attn/optimized/launch_support.h>

#include <optional>
#include <string>
#include <string_view>

#include <attn/optimized/call_check.h>

namespace causal_attention {
inline namespace ATTN_TARGET {

//! [constants]
namespace simt = attn::simt;
using simt::lane;
constexpr int kWarps = 4, kKeys = 32, kHead = 64, kRow = kHead + 4;
// Shared memory, in bytes: float q_rows[kWarps][kHead], k_tile[kKeys][kRow], v_tile[kKeys][kRow].
constexpr int kKTile = 4 * kWarps * kHead, kVTile = kKTile + 4 * kKeys * kRow,
              kSharedBytes = kVTile + 4 * kKeys * kRow;
using Offset = lane<std::int64_t>;    // into global memory, in elements
using Address = lane<std::uint32_t>;  // in shared memory, in bytes
//! [constants]

ATTN_KERNEL attention(const float* q, const float* k, const float* v, float* o, float* lse, int hq,
                      int hkv, int sq, int skv, int d, float scale) {
  //! [where]
  const lane<int> lane_id = simt::lane_id();
  const int warp = simt::warp_id(), row = simt::block_x() * kWarps + warp, head = simt::block_y();
  const int kv_head = head / hq * hkv + head % hq / (hq / hkv);
  const std::int64_t q_head = std::int64_t{head} * sq * d, k_head = std::int64_t{kv_head} * skv * d;
  const std::uint32_t q_row = simt::smem_base() + 4 * warp * kHead,
                      k_tile = simt::smem_base() + kKTile, v_tile = simt::smem_base() + kVTile;
  //! [where]

  //! [query]
  for (int c0 = 0; c0 < d; c0 += 32) {
    const lane<int> c = lane_id + c0;
    const lane<float> x = simt::ldg(q, Offset(c) + (q_head + std::int64_t{row} * d),
                                    c < d && lane<bool>(row < sq));  // 0 where it is not loaded
    simt::sts<float>(Address(c * 4) + q_row, x, c < d);
  }
  //! [query]
  lane<float> m = -attn::infinity, l = 0.0f, acc[2] = {0.0f, 0.0f};  // channels lane, lane + 32
  const int last_row = attn::min((simt::block_x() + 1) * kWarps, sq) - 1;
  const int keys = attn::min(skv, last_row + skv - sq + 1);  // that a row of this block attends
  for (int kv0 = 0; kv0 < keys; kv0 += kKeys) {
    //! [load]
    for (int i0 = 0; i0 < kKeys * (d / 4); i0 += simt::block_threads()) {
      const lane<int> i = simt::thread_id() + i0, j = i / (d / 4), c = i % (d / 4) * 4;
      const lane<bool> in_tile = i < kKeys * (d / 4), there = in_tile && j + kv0 < skv;
      const Offset from = Offset((j + kv0) * d + c) + k_head;
      const Address to(4 * (j * kRow + c));
      simt::sts<simt::Vec16>(to + k_tile, simt::ldg_as<simt::Vec16>(k, from, there), in_tile);
      simt::sts<simt::Vec16>(to + v_tile, simt::ldg_as<simt::Vec16>(v, from, there), in_tile);
    }
    simt::block_sync();
    //! [load]

    //! [score]
    lane<float> s = 0.0f;  // of key kv0 + lane
    for (int c = 0; c < d; ++c)
      s = simt::vfma(simt::lds<float>(Address(q_row + 4 * c)),
                     simt::lds<float>(Address(lane_id * (4 * kRow) + 4 * c) + k_tile), s);
    const lane<int> key = lane_id + kv0;
    s = attn::select(key < skv && key <= row + skv - sq, s * scale, -attn::infinity);
    //! [score]

    //! [softmax]
    lane<float> larger = simt::vmax(m, s);
    for (int x = 16; x > 0; x /= 2) larger = simt::vmax(larger, simt::shfl_xor(larger, x));
    const lane<float> base = attn::select(larger == -attn::infinity, 0.0f, larger);
    const lane<float> p = simt::vexp2((s - base) * 1.44269504f),
                      rescale = simt::vexp2((m - base) * 1.44269504f);
    lane<float> sum = p;
    for (int x = 16; x > 0; x /= 2) sum += simt::shfl_xor(sum, x);
    l = l * rescale + sum;
    m = larger;
    //! [softmax]

    //! [values]
    for (int e = 0; e < 2; ++e) acc[e] *= rescale;
    for (int j = 0; j < kKeys; ++j) {
      const lane<float> weight = simt::shfl(p, j);
      for (int e = 0; e < 2; ++e) {
        const lane<int> c = lane_id + 32 * e;
        acc[e] = simt::vfma(weight, simt::lds<float>(Address(c * 4 + 4 * j * kRow) + v_tile, c < d),
                            acc[e]);
      }
    }
    simt::block_sync();  // the next tile may land
    //! [values]
  }

  //! [store]
  for (int e = 0; e < 2; ++e) {
    const lane<int> c = lane_id + 32 * e;
    const lane<float> value = attn::select(l == 0.0f, 0.0f, acc[e] / l);
    simt::stg(o, Offset(c) + (q_head + std::int64_t{row} * d), value,
              c < d && lane<bool>(row < sq));
  }
  simt::stg(lse, Offset(std::int64_t{head} * sq + row), m + simt::vlog2(l) * 0.693147181f,
            lane_id == 0 && lane<bool>(row < sq));
  //! [store]
}

//! [refusal]
/// Why the kernel does not take a problem.
std::optional<std::string> refusal(const attn::Problem& p) {
  if (p.dtype != attn::DType::f32)
    return std::string("dtype: ") + attn::name_of(p.dtype) + ", expected fp32";
  if (p.d != p.dv || p.d % 4 != 0 || p.d > kHead)
    return "head size: D = " + std::to_string(p.d) + ", Dv = " + std::to_string(p.dv) +
           ", expected the same multiple of 4, at most 64";
  return {};
}
//! [refusal]

//! [row]
attn::Implementation row() {
  return {.what = "a warp a query, fp32, causal",
          .production = {kWarps, kKeys},
          .small = {kWarps, kKeys},
          .mod = "score",
          .mask = "kv <= q + (Skv - Sq)",
          .row_max = false,
          .sink = false,
          .dropout = false,
          .strides = false,
          .refusal = refusal,
          .numerics = [](attn::DType storage) {
            return attn::Numerics{.storage = storage, .tensor_core = false};
          }};
}
//! [row]

//! [run]
std::string_view run(const attn::AttentionCall& call, const attn::Implementation& row) {
  const attn::Problem p = attn::check_call(call, row).problem;  // refuses what does not fit
  if (p.b * p.hq * p.sq == 0) return simt::engine_name();       // a grid of no blocks
  const attn::CallMemory memory(call, attn::Pass::forward, p.sizes(), call.mod, call.mask);
  const auto data = [](const attn::TensorInfo& t) { return static_cast<const float*>(t.data); };
  simt::launch({(p.sq + kWarps - 1) / kWarps, p.b * p.hq, 1}, 32 * kWarps, kSharedBytes,
               call.options.launch, attention, data(call.q), data(call.k), data(call.v),
               const_cast<float*>(data(call.o)), const_cast<float*>(data(call.lse)), p.hq, p.hkv,
               p.sq, p.skv, p.d, static_cast<float>(p.scale));
  return simt::engine_name();
}
//! [run]

}  // namespace ATTN_TARGET
}  // namespace causal_attention
