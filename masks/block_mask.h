#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

/// Which blocks of a mask have to be looked at, and which of those need no mask.
///
/// The index plane [Sq, Skv] is cut into blocks of `q_block` rows by `kv_block` keys; the last ones
/// may stick out, and what lies beyond the sequences is no part of them. causal, 8 x 8, in blocks
/// of 2 x 2:
///
///     +...        + partial: some pairs attend: ask the mask for each
///     #+..        # full:    every pair attends
///     ##+.        . empty:   none does
///     ###+
///
/// The mask itself is not kept: partial blocks are asked of the functor, at each problem. A full
/// block at a tail says nothing of keys beyond Skv: who loads them has to leave them out.
namespace attn {

/// What the pairs of a block have in common.
enum class BlockKind : std::int32_t { empty, partial, full };

/// Key blocks first to last, both included, all of one kind; never of kind `empty`.
struct BlockSpan {
  std::int32_t first = 0;               ///< block column
  std::int32_t last = 0;                ///< block column, itself included
  BlockKind kind = BlockKind::partial;  ///< of all its blocks

  friend bool operator==(const BlockSpan&, const BlockSpan&) = default;
};

/// The problem that a block mask belongs to, its block size, and what its planes share.
struct BlockMaskShape {
  int b = 1, hq = 1, sq = 0, skv = 0;  ///< B, Hq, Sq, Skv
  int q_block = 128, kv_block = 128;   ///< queries and keys of a block
  bool shared_b = false;               ///< one plane of blocks for all batch entries
  bool shared_hq = false;              ///< one plane of blocks for all heads
  /// Rows of blocks of a plane, and its columns of blocks; those at the ends may be smaller.
  int q_blocks() const { return static_cast<int>((std::int64_t{sq} + q_block - 1) / q_block); }
  int kv_blocks() const { return static_cast<int>((std::int64_t{skv} + kv_block - 1) / kv_block); }
  int stored_b() const { return shared_b && b > 0 ? 1 : b; }      ///< planes along the batch
  int stored_hq() const { return shared_hq && hq > 0 ? 1 : hq; }  ///< and along the heads
  /// Rows of blocks that are stored.
  std::int64_t stored_rows() const { return std::int64_t{stored_b()} * stored_hq() * q_blocks(); }
  /// @throws std::invalid_argument if a block size is below 1 or a length below 0.
  void check() const;

  friend bool operator==(const BlockMaskShape&, const BlockMaskShape&) = default;
};

/// How a block mask was built (mods/lang/range.h): what it cost, and whether intervals helped.
struct BlockMaskCost {
  std::int64_t interval_questions = 0;  ///< boxes of indices the mask was asked about
  std::int64_t scanned_elements = 0;    ///< pairs the mask was asked about one by one
  bool ran_on_intervals = false;        ///< false: the mask takes scalars only
};

/// How many blocks of each kind there are, and what storing them takes.
struct BlockMaskStatistics : BlockMaskCost {
  std::int64_t full_blocks = 0, partial_blocks = 0, empty_blocks = 0;  ///< of all heads
  std::int64_t spans = 0;                                              ///< stored
  std::size_t bytes = 0;                                               ///< of the stored arrays
  double sparsity = 0;  ///< the part of the blocks that is empty, 0 to 1 (0 where there are none)
};

/// Blocks as spans: a compressed row of blocks after another, [stored b, stored h, q block].
/// Memory grows with the boundary of the mask, not with its area.
class BlockMask {
 public:
  BlockMask() : row_begin_{0} {}
  /// Row r has spans row_begin[r] to row_begin[r + 1]. In a row spans are sorted, apart from one
  /// another, and neighbours of one kind are one span, so that equal blocks have equal spans.
  /// @throws std::invalid_argument if they are not.
  BlockMask(const BlockMaskShape& shape, std::vector<std::int64_t> row_begin,
            std::vector<BlockSpan> spans, const BlockMaskCost& cost = {});

  const BlockMaskShape& shape() const { return shape_; }  ///< as it was given
  /// The number of a row in `row_begin`.
  std::int64_t row_number(int b, int h, int q_block) const {
    const std::int64_t plane =
        std::int64_t{shape_.shared_b ? 0 : b} * shape_.stored_hq() + (shape_.shared_hq ? 0 : h);
    return plane * shape_.q_blocks() + q_block;
  }
  /// What is not empty in one row of blocks, from left to right.
  std::span<const BlockSpan> row(int b, int h, int q_block) const {
    return row(row_number(b, h, q_block));
  }
  std::span<const BlockSpan> row(std::int64_t number) const {  /// by its row_number
    const auto r = static_cast<std::size_t>(number);
    return {spans_.data() + row_begin_[r],
            static_cast<std::size_t>(row_begin_[r + 1] - row_begin_[r])};
  }
  BlockKind kind(int b, int h, int q_block, int kv_block) const;  ///< of one block

  const std::vector<std::int64_t>& row_begin() const { return row_begin_; }  ///< [stored rows + 1]
  const std::vector<BlockSpan>& spans() const { return spans_; }             ///< of all stored rows
  BlockMaskStatistics statistics() const;  ///< counted anew at each call

  /// Of what the blocks say, for every batch entry and head; sharing and cost are left out.
  friend bool operator==(const BlockMask& a, const BlockMask& b);

 private:
  BlockMaskShape shape_;
  std::vector<std::int64_t> row_begin_;
  std::vector<BlockSpan> spans_;
  BlockMaskCost cost_;
};

/// The blocks seen from the keys, for the backward pass: the mask [B, Hq, Skv, Sq] in which queries
/// and keys have changed places. Row n holds, for key block n, the spans of query blocks.
/// Transposing twice gives the mask back.
BlockMask transpose(const BlockMask& mask);

/// The same mask in tiles of a kernel. A tile is full only if every block that covers it is, empty
/// only if every such block is, else partial: right for every mask that has these blocks, whatever
/// the two sizes.
/// @throws std::invalid_argument if a tile size is below 1.
BlockMask retile(const BlockMask& mask, int q_tile, int kv_tile);

/// Up to the end of the axis.
inline constexpr int to_the_end = -1;

/// A part of a problem: so many batch entries, heads, queries and keys from the first on.
struct BlockMaskPart {
  int b_first = 0, b_count = to_the_end;    ///< batch entries
  int h_first = 0, h_count = to_the_end;    ///< query heads
  int q_first = 0, q_count = to_the_end;    ///< queries
  int kv_first = 0, kv_count = to_the_end;  ///< keys
};

/// The mask of a part, its indices counted from the part's own start: the functor of partial blocks
/// then has to be asked at b + b_first and so on. Where the part starts inside a block the new
/// blocks straddle old ones and are partial unless these agree; where it ends inside one, a partial
/// block stays partial.
/// @throws std::invalid_argument if the part lies outside the mask.
BlockMask slice(const BlockMask& mask, const BlockMaskPart& part);

/// The mask with equal planes stored once: one for all batch entries (if `across_b`) and one for
/// all heads (if `across_hq`), where the blocks allow it.
BlockMask share_equal_planes(BlockMask mask, bool across_b = true, bool across_hq = true);

/// A line a row of blocks: '#' full, '+' partial, '.' empty. A mask of more than `limit` blocks a
/// side is drawn in larger tiles.
std::string picture(const BlockMask& mask, int b = 0, int h = 0, int limit = 64);

}  // namespace attn
