#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/table_spec.h"
#include "mods/lang/expression.h"
#include "mods/lang/storage.h"

namespace attn::fuzz {

/// How the inputs are made: the regime of the scores and of V. The `exact_` fills propose inputs
/// for which the right answer is known to the last bit; the oracle takes that up only where it can
/// prove it for the case at hand.
enum class Fill {
  gaussian,        ///< everything normal
  large,           ///< Q times 8 or 24: nearly one-hot rows
  ties,            ///< scores nearly equal
  cancelling,      ///< keys in pairs, their values opposite
  very_negative,   ///< every score far below -1e4
  very_positive,   ///< every score far above 1e4
  large_products,  ///< raw products beyond fp16, scaled ones within
  outlier,         ///< one channel a hundred times the others
  denormal,        ///< numbers at the bottom of the storage type
  rising,          ///< scores that rise along the keys
  small_ints,      ///< sparse whole numbers: many ties
  marker_v,        ///< V tells which key it belongs to: positive, or one-hot columns
  offsets,         ///< K and V with a large common part
  capped,          ///< scores of thousands, to be capped by the mod
  nan_keys,        ///< some keys hold a NaN: the rows that attend one are NaN, no other is
  exact_code,      ///< each row's target key matches a code exactly: one-hot, winner 0
  exact_rank,      ///< keys ranked, the best attended one scores 0: what is masked scores higher
  exact_count,     ///< Q = 0: LSE is the log of the number of keys
  exact_powers,    ///< scores -t log 2: every weight a power of two
  exact_pairs,     ///< exact_code where two keys share a code: both win, with 1/2 each
};
/// Fills there are; their values are 0 to `fill_count` - 1.
inline constexpr int fill_count = static_cast<int>(Fill::exact_pairs) + 1;
/// As a case line names it: "exact_code".
const char* name_of(Fill fill);

/// How the tensors lie in memory. What the views do not own is poisoned.
enum class Layout {
  bhsd,       ///< contiguous [B, H, S, D]
  bshd,       ///< contiguous [B, S, H, D], seen as [B, H, S, D]
  padded,     ///< rows 8 elements longer than D, heads and batches with a gap
  unaligned,  ///< rows one element longer than D, starting one element in
  fused,      ///< Q, K and V side by side in one buffer [B, S, H, D]
  shared_kv,  ///< one K and V for the whole batch: batch stride 0
  spread,     ///< every second element: the last stride is 2
};
/// Layouts there are; their values are 0 to `layout_count` - 1.
inline constexpr int layout_count = static_cast<int>(Layout::spread) + 1;
/// As a case line names it: "shared_kv".
const char* name_of(Layout layout);

/// Rows and keys of one block of a block mask.
struct BlockSize {
  int q = 0, kv = 0;  ///< both positive
  bool operator==(const BlockSize&) const = default;
};

/// One attention problem, complete: a few numbers and two expressions from which every bit of the
/// inputs follows. Its text is one line that people can read and edit, and `attnproof replay` runs.
struct Case {
  int b = 1, hq = 1, hkv = 1, sq = 1, skv = 1, d = 8, dv = 8;  ///< B, Hq, Hkv, Sq, Skv, D and Dv
  DType dtype = DType::bf16;    ///< of Q, K, V, O and the gradients; LSE is fp32
  std::optional<double> scale;  ///< 1/sqrt(D) if absent
  Expression mod, mask;         ///< of (score, b, h, q, kv), and of (b, h, q, kv)
  /// C++ types of the user's in place of the expressions; empty: none. They capture the first of
  /// the tables.
  std::string mod_type, mask_type;
  std::vector<TableSpec> tables;                 ///< what the mod and the mask read, by name
  Layout layout = Layout::bhsd;                  ///< of every tensor
  Fill fill = Fill::gaussian;                    ///< the regime that is asked for
  std::uint64_t seed = 0;                        ///< of the inputs and of the tables
  std::string implementation = "flash_forward";  ///< a row of the table of implementations
  bool small_tile = true;  ///< the small tile of the implementation; else the production one

  /// Packed: B sequences, none longer than Sq and Skv. Caches: how much of each one's Skv slots is
  /// filled. Empty: Sq, Skv.
  std::vector<int> query_lengths, key_lengths;
  int page_size = 0;                ///< paged: slots of a page; 0: there are no pages
  int splits = 0;                   ///< decode: parts of the keys; 0: the kernel chooses
  std::optional<BlockSize> blocks;  ///< block-sparse
  bool sink = false;                ///< one logit a query head; the seed tells which
  double dropout = 0;               ///< probability
  bool d_lse = false;               ///< backward: LSE has an incoming gradient too
  bool row_max = false;             ///< forward: the row maxima are wanted too

  /// The mod `score`, the mask `true`, one query and one key.
  Case();
  /// The lengths that mods and masks ask for; the sequences of a packed case have their own.
  Sizes sizes() const { return {b, hq, hkv, sq, skv, 0, 0}; }
  std::vector<TableDeclaration> declarations() const;  ///< of `tables`, for parsing expressions
};

/// `v1 B1 Hq2 Hkv1 Sq64 Skv65 D8 Dv8 bf16; mod: score; mask: kv <= q; fill: gaussian; seed: 7; ...`
/// Parts that have their default are left out, except mod, mask, fill, seed and impl. Optional:
///
///   table: slope[Hq]=alibi   scale: 0.125       layout: fused      tile: production
///   qlens: 3,0,17            kvlens: 3,0,17     page: 16           splits: 3
///   blocks: 64x48            sink: on           dropout: 0.25      dlse: on     rowmax: on
///   modtype: my::Mod, masktype: my::Mask in place of mod, mask: a type that is built in
std::string to_text(const Case& c);
/// The longest line that is read, in bytes.
inline constexpr std::size_t max_case_text = std::size_t{1} << 20;
/// @throws std::invalid_argument naming the part that is wrong and what was expected. So is a line
///     that is longer than that, holds a control character or is not UTF-8, and a case whose
///     tensors no memory would hold.
Case parse_case(std::string_view text);

/// The storage type of a name: "fp64", "fp32", "fp16" or "bf16".
/// @throws std::invalid_argument if it is none of these.
DType parse_dtype(std::string_view name);

}  // namespace attn::fuzz
