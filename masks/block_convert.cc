#include "masks/block_convert.h"

#include <string>
#include <vector>

#include "masks/block_spans.h"

namespace attn {
namespace {

/// visit(b, h, q block, number of the row) for each stored row of blocks.
template <class Visit>
void for_each_row(const BlockMaskShape& shape, Visit visit) {
  std::int64_t row = 0;
  for (int b = 0; b < shape.stored_b(); ++b)
    for (int h = 0; h < shape.stored_hq(); ++h)
      for (int r = 0; r < shape.q_blocks(); ++r, ++row) visit(b, h, r, row);
}

template <std::size_t Rank>
void require_shape(const char* name, const std::array<std::int64_t, Rank>& extents,
                   const std::array<std::int64_t, Rank>& expected) {
  if (extents != expected)
    throw std::invalid_argument(std::string(name) + ": shape " + shape_string(extents) +
                                ", expected " + shape_string(expected));
}

std::array<std::int64_t, 3> rows_shape(const BlockMaskShape& s) {
  return {s.stored_b(), s.stored_hq(), s.q_blocks()};
}
std::array<std::int64_t, 4> blocks_shape(const BlockMaskShape& s) {
  return {s.stored_b(), s.stored_hq(), s.q_blocks(), s.kv_blocks()};
}

/// Of the pairs in rows q to q_end and keys kv to kv_end.
BlockKind kind_of(const TensorView<const bool, 4>& mask, int b, int h, std::int64_t q,
                  std::int64_t q_end, std::int64_t kv, std::int64_t kv_end) {
  bool some = false, all = true;
  for (std::int64_t i = q; i < q_end; ++i)
    for (std::int64_t j = kv; j < kv_end; ++j) {
      const bool attends = mask(b, h, i, j);
      some |= attends;
      all &= attends;
    }
  return all ? BlockKind::full : some ? BlockKind::partial : BlockKind::empty;
}

void append_row(const std::vector<BlockKind>& kinds, std::int64_t row, BlockSpanCollector& out) {
  for (std::size_t c = 0; c < kinds.size(); ++c)
    out.append(row, static_cast<std::int32_t>(c), static_cast<std::int32_t>(c), kinds[c]);
}

/// Marks the listed blocks of one row.
void read_list(const char* name, std::int32_t count, const std::int32_t* list, BlockKind kind,
               std::vector<BlockKind>& row) {
  const auto columns = static_cast<std::int64_t>(row.size());
  if (count < 0 || count > columns)
    throw std::invalid_argument(std::string(name) + ": count " + std::to_string(count) +
                                ", expected 0 to " + std::to_string(columns));
  for (std::int32_t n = 0; n < count; ++n) {
    if (list[n] < 0 || list[n] >= columns)
      throw std::invalid_argument(std::string(name) + ": block " + std::to_string(list[n]) +
                                  ", expected 0 to " + std::to_string(columns - 1));
    BlockKind& block = row[static_cast<std::size_t>(list[n])];
    if (block != BlockKind::empty)
      throw std::invalid_argument(std::string(name) + ": block " + std::to_string(list[n]) +
                                  " is listed twice, expected once");
    block = kind;
  }
}

}  // namespace

BlockMask block_mask_from_dense(const TensorView<const bool, 4>& mask,
                                const BlockMaskShape& shape) {
  shape.check();
  const std::array<std::int64_t, 4> lengths{shape.b, shape.hq, shape.sq, shape.skv};
  TensorView<const bool, 4> full = mask;  // broadcast axes with stride 0
  for (std::size_t axis = 0; axis < 4; ++axis) {
    if (mask.extents[axis] == 1) full.strides[axis] = 0;
    if (mask.extents[axis] != 1 && mask.extents[axis] != lengths[axis])
      throw std::invalid_argument("mask: shape " + shape_string(mask.extents) +
                                  ", expected each axis 1 or as in " + shape_string(lengths));
  }
  BlockMaskShape stored = shape;
  stored.shared_b = mask.extents[0] == 1;
  stored.shared_hq = mask.extents[1] == 1;
  BlockSpanCollector out(stored.stored_rows());
  std::vector<BlockKind> kinds(static_cast<std::size_t>(shape.kv_blocks()));
  for_each_row(stored, [&](int b, int h, int r, std::int64_t row) {
    const std::int64_t q = std::int64_t{r} * shape.q_block;
    for (std::size_t c = 0; c < kinds.size(); ++c) {
      const std::int64_t kv = static_cast<std::int64_t>(c) * shape.kv_block;
      kinds[c] = kind_of(full, b, h, q, std::min<std::int64_t>(q + shape.q_block, shape.sq), kv,
                         std::min<std::int64_t>(kv + shape.kv_block, shape.skv));
    }
    append_row(kinds, row, out);
  });
  return share_equal_planes(out.finish(stored), shape.shared_b, shape.shared_hq);
}

Tensor<BlockKind, 4> block_kinds(const BlockMask& mask) {
  Tensor<BlockKind, 4> kinds(blocks_shape(mask.shape()));
  for_each_row(mask.shape(), [&](int b, int h, int r, std::int64_t row) {
    for (const BlockSpan& span : mask.row(row))
      for (int c = span.first; c <= span.last; ++c) kinds(b, h, r, c) = span.kind;
  });
  return kinds;
}

BlockMask block_mask_from_kinds(const TensorView<const BlockKind, 4>& kinds,
                                const BlockMaskShape& shape) {
  shape.check();
  require_shape("kinds", kinds.extents, blocks_shape(shape));
  BlockSpanCollector out(shape.stored_rows());
  for_each_row(shape, [&](int b, int h, int r, std::int64_t row) {
    for (int c = 0; c < shape.kv_blocks(); ++c) out.append(row, c, c, kinds(b, h, r, c));
  });
  return out.finish(shape);
}

FlexBlockLists to_flex(const BlockMask& mask) {
  const BlockMaskShape& shape = mask.shape();
  FlexBlockLists lists{
      Tensor<std::int32_t, 3>(rows_shape(shape)), Tensor<std::int32_t, 4>(blocks_shape(shape)),
      Tensor<std::int32_t, 3>(rows_shape(shape)), Tensor<std::int32_t, 4>(blocks_shape(shape))};
  for_each_row(shape, [&](int b, int h, int r, std::int64_t row) {
    for (const BlockSpan& span : mask.row(row)) {
      const bool full = span.kind == BlockKind::full;
      std::int32_t& count = (full ? lists.full_kv_num_blocks : lists.kv_num_blocks)(b, h, r);
      Tensor<std::int32_t, 4>& list = full ? lists.full_kv_indices : lists.kv_indices;
      for (int c = span.first; c <= span.last; ++c) list(b, h, r, count++) = c;
    }
  });
  return lists;
}

BlockMask block_mask_from_flex(const FlexBlockLists& lists, const BlockMaskShape& shape) {
  shape.check();
  require_shape("kv_num_blocks", lists.kv_num_blocks.extents(), rows_shape(shape));
  require_shape("kv_indices", lists.kv_indices.extents(), blocks_shape(shape));
  const bool tells_full = !lists.full_kv_num_blocks.values().empty();
  if (tells_full) {
    require_shape("full_kv_num_blocks", lists.full_kv_num_blocks.extents(), rows_shape(shape));
    require_shape("full_kv_indices", lists.full_kv_indices.extents(), blocks_shape(shape));
  }
  BlockSpanCollector out(shape.stored_rows());
  std::vector<BlockKind> kinds(static_cast<std::size_t>(shape.kv_blocks()));
  for_each_row(shape, [&](int b, int h, int r, std::int64_t row) {
    const std::size_t start = static_cast<std::size_t>(row) * kinds.size();
    std::fill(kinds.begin(), kinds.end(), BlockKind::empty);
    read_list("kv_num_blocks", lists.kv_num_blocks(b, h, r),
              lists.kv_indices.values().data() + start, BlockKind::partial, kinds);
    if (tells_full)
      read_list("full_kv_num_blocks", lists.full_kv_num_blocks(b, h, r),
                lists.full_kv_indices.values().data() + start, BlockKind::full, kinds);
    append_row(kinds, row, out);
  });
  return out.finish(shape);
}

}  // namespace attn
