#pragma once

#include "mods/lang/call.h"
#include "optimized/kernel_env.h"
#include "optimized/tile.h"
#include "optimized/tile_cursor.h"

namespace attn {
inline namespace ATTN_TARGET {

/// Kernels count scores in units of log 2.
inline constexpr float log2_of_e = 1.4426950408889634f;
inline constexpr float ln_of_2 = 0.6931471805599453f;  ///< from these units to those of LSE

/// The rows of an accumulator fragment that a thread holds: r = 0 for elements 0 and 1, r = 1 for
/// elements 2 and 3. Rows past the end stand on the last valid one, so that a mod or mask never
/// sees an index outside the problem.
struct FragmentRows {
  simt::lane<int> position[2];  ///< row of the sequence
  simt::lane<int> head[2];      ///< query head
  simt::lane<bool> there[2];    ///< false: past the end

  /// Rows row0 and following, 16 a warp, where `heads` heads from `h` on stand side by side.
  ATTN_DEVICE FragmentRows(int row0, int rows, int h, int heads) {
    for (int r = 0; r < 2; ++r) {
      const simt::lane<int> row = row0 + (simt::warp_id() * 16 + 8 * r) + (simt::lane_id() >> 2);
      there[r] = row < rows;
      const simt::lane<int> valid = min(row, rows - 1);
      position[r] = heads == 1 ? valid : simt::lane<int>(valid / heads);
      head[r] = heads == 1 ? simt::lane<int>(h) : simt::lane<int>(h + valid % heads);
    }
  }
};

/// t = mod(scale * raw) of one pair for each lane, -inf where the mask says no (it is not asked
/// where `full`). All indices are valid.
template <class T, class Mod, class Mask>
ATTN_DEVICE simt::lane<float> modified_score(const Mod& mod, const Mask& mask, KernelEnv& env,
                                             float scale, int b, simt::lane<int> h,
                                             simt::lane<int> q, simt::lane<int> kv,
                                             simt::lane<float> raw, bool full) {
  using simt::lane;
  using I = Index<KernelEnv>;
  const I batch{b, &env}, head{h, &env}, row{q, &env}, column{kv, &env};
  if (planted(PlantedFault::M12)) raw = rounded<T>(raw);
  const lane<float> t = call_mod(mod, lane<float>(raw * scale), batch, head, row, column);
  if (full) return t;
  const lane<bool> attended = call_mask(mask, batch, head, row, column);
  return select(attended, t, planted(PlantedFault::M02) ? -1e4f : -infinity);
}

/// Raw products of one tile become modified scores in units of log 2, -inf where a pair is not
/// attended or past the last key.
template <class T, int kFragments, class Mod, class Mask>
ATTN_DEVICE_LARGE void modify_scores(simt::lane<float> (&s)[kFragments][4], const Mod& mod,
                                     const Mask& mask, float scale, const KernelSequence& sequence,
                                     const FragmentRows& rows, int kv0, bool full) {
  using simt::lane;
  KernelEnv env{sequence.sizes};
  const int skv = sequence.sizes.skv;
  ATTN_UNROLL
  for (int j = 0; j < kFragments; ++j) {
    ATTN_UNROLL
    for (int e = 0; e < 4; ++e) {
      const int r = e >> 1;
      const lane<int> column = kv0 + j * 8 + ((simt::lane_id() & 3) << 1) + (e & 1);
      const lane<float> t = modified_score<T>(mod, mask, env, scale, sequence.b, rows.head[r],
                                              lane<int>(rows.position[r] + sequence.sizes.q_offset),
                                              lane<int>(min(column, skv - 1)), s[j][e], full);
      s[j][e] = select(column < skv, t * log2_of_e, planted(PlantedFault::M10) ? 0.0f : -infinity);
    }
  }
}

}  // namespace ATTN_TARGET
}  // namespace attn
