#include "fuzz/case_sequences.h"

#include <fmt/format.h>

#include <stdexcept>

#include "fuzz/row_limits.h"

namespace attn::fuzz {
namespace {

std::vector<std::int32_t> lengths_of(const char* part, const std::vector<int>& given, int count,
                                     int most) {
  if (given.empty()) return std::vector<std::int32_t>(count, most);
  if (static_cast<int>(given.size()) != count)
    throw std::invalid_argument(
        fmt::format("{}: {} lengths, expected one a sequence, B = {}", part, given.size(), count));
  for (const int length : given)
    if (length < 0 || length > most)
      throw std::invalid_argument(
          fmt::format("{}: {}, expected lengths from 0 to {}", part, length, most));
  return {given.begin(), given.end()};
}

}  // namespace

Sequences sequences_of(const Case& c) { return implementation_named(c.implementation).sequences; }

TileSize tile_of(const Case& c) {
  const Implementation& row = implementation_named(c.implementation);
  return c.small_tile ? row.small : row.production;
}

bool spans_tiles(const Case& c) {
  const TileSize tile = tile_of(c);
  const bool cached = has_cache(implementation_named(c.implementation));
  const int rows_each = cached && c.hkv > 0 ? c.hq / c.hkv : 1;
  const std::vector<std::int32_t> queries = query_lengths(c), keys = key_lengths(c);
  if (c.hq == 0) return false;
  for (int b = 0; b < c.b; ++b)
    if (queries[b] * rows_each > tile.q && keys[b] > tile.kv) return true;
  return false;
}

std::vector<std::int32_t> query_lengths(const Case& c) {
  return lengths_of("qlens", c.query_lengths, c.b, c.sq);
}
std::vector<std::int32_t> key_lengths(const Case& c) {
  return lengths_of("kvlens", c.key_lengths, c.b, c.skv);
}

std::vector<std::int32_t> cumulative(const std::vector<std::int32_t>& lengths) {
  std::vector<std::int32_t> sums{0};
  for (const std::int32_t length : lengths) sums.push_back(sums.back() + length);
  return sums;
}

std::vector<Sequence> logical_sequences(const Case& c) {
  const Sequences how = sequences_of(c);
  const std::vector<std::int32_t> queries = query_lengths(c), keys = key_lengths(c);
  const std::vector<std::int32_t> cu_q = cumulative(queries), cu_kv = cumulative(keys);
  std::vector<Sequence> sequences;
  for (int b = 0; b < c.b; ++b) {
    Sizes sizes = c.sizes();
    if (how == Sequences::packed) {
      sizes.sq = queries[b], sizes.skv = keys[b];
      sizes.q_start = cu_q[b], sizes.kv_start = cu_kv[b];
    } else if (how != Sequences::dense) {
      sizes.skv = keys[b];
      sizes.q_offset = keys[b] - c.sq;
    }
    sequences.push_back({b, sizes, {b, 0, queries[b]}, {b, 0, keys[b]}});
  }
  return sequences;
}

void check_parts(const Case& c, const Implementation& i) {
  const auto refuse = [&](bool given, const char* part, const char* for_what) {
    if (given)
      throw std::invalid_argument(
          fmt::format("{}: given for {}, expected only for {}", part, i.name, for_what));
  };
  const auto need = [&](bool given, const char* part, const char* what) {
    if (!given)
      throw std::invalid_argument(fmt::format("{}: none, expected {} for {}", part, what, i.name));
  };
  const bool packed = i.sequences == Sequences::packed, paged = i.sequences == Sequences::paged,
             cached = i.sequences == Sequences::cached, backward = i.pass == Pass::backward;
  refuse(!c.query_lengths.empty() && !packed, "qlens", "packed sequences");
  refuse(!c.key_lengths.empty() && i.sequences == Sequences::dense, "kvlens",
         "packed sequences and caches");
  refuse(c.page_size && !paged, "page", "a paged cache");
  if (paged) need(c.page_size > 0, "page", "the slots of a page, such as 16,");
  refuse(c.splits && !paged && !cached, "splits", "decode");
  refuse(c.blocks && !i.block_sparse, "blocks", "block-sparse kernels");
  if (i.block_sparse)
    need(c.blocks.has_value(), "blocks", "rows x keys of a block, such as 64x64,");
  refuse(c.d_lse && !backward, "dlse", "a backward pass");
  refuse(c.row_max && backward, "rowmax", "a forward pass");
  refuse(c.layout == Layout::shared_kv && (packed || cached || paged), "layout: shared_kv",
         "a batch entry a sequence");
  query_lengths(c);
  key_lengths(c);
  check_limits(c, i);
}

}  // namespace attn::fuzz
