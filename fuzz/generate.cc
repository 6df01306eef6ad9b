#include "fuzz/generate.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "fuzz/case_sequences.h"
#include "fuzz/draw.h"
#include "fuzz/fill_context.h"
#include "fuzz/functors.h"
#include "fuzz/grammar.h"
#include "fuzz/row_limits.h"
#include "mods/lang/parse.h"

namespace attn::fuzz {
namespace {

/// A length of at most one tile: full, one less, small, or anything; at times nothing at all.
int draw_within(int tile) {
  if (chance(3)) return 0;
  if (chance(25)) return drawn(1, std::min(16, tile));
  if (chance(25)) return tile - drawn(0, 1);
  return drawn(1, tile);
}

/// A length of more than one tile: a little more, around a boundary of tiles, or anything.
int draw_beyond(int tile, int most_tiles) {
  if (chance(60)) return tile + drawn(1, std::max(1, tile / 4));
  if (chance(50)) return std::max(tile + 1, drawn(1, most_tiles) * tile + drawn(-1, 1));
  return drawn(tile + 1, most_tiles * tile);
}

int draw_head(int most) {
  if (most > 128 && chance(2)) return one_of({136, 160, 192, 256});
  if (chance(40)) return one_of({8, 16, 32, 64});
  if (chance(10)) return one_of({80, 96, 120, 128});
  return one_of({1, 7, 20, 24, 33, 40, 59, 63});
}

int largest_head(const Implementation& row, DType dtype) {
  for (const int d : {256, 192})
    if (takes(row, dtype, d, d)) return d;
  return 128;
}
/// One that the row takes, if there is one.
int draw_head_of(const Implementation& row, DType dtype) {
  const int d = draw_head(largest_head(row, dtype));
  const std::vector<int>& taken = head_sizes(row, dtype);
  if (taken.empty() || takes(row, dtype, d, d)) return d;
  return taken[drawn(0, static_cast<int>(taken.size()) - 1)];
}

/// One of the implementations that the user wants, with a storage type that it takes. Those that
/// refuse what is fixed are left out, unless none is left.
void draw_implementation(Case& c, const Fixed& fixed) {
  constexpr DType preferred[] = {DType::bf16, DType::f16, DType::f32};
  const auto types_of = [&](const Implementation& row, bool any_head = false) {
    std::vector<DType> types;
    for (const DType t : preferred)
      if ((!fixed.dtype || t == *fixed.dtype) &&
          (any_head ? takes(row, t) : takes(row, t, fixed.d, fixed.dv)))
        types.push_back(t);
    return types;
  };
  std::vector<std::string_view> wanted(fixed.implementations.begin(), fixed.implementations.end());
  if (wanted.empty())
    for (const Implementation& row : implementations()) wanted.push_back(row.name);
  std::vector<std::string_view> able;
  for (const std::string_view name : wanted)
    if (!types_of(implementation_named(name)).empty()) able.push_back(name);
  const std::vector<std::string_view>& from = able.empty() ? wanted : able;
  c.implementation = from[drawn(0, static_cast<int>(from.size()) - 1)];
  std::vector<DType> types = types_of(implementation_named(c.implementation));
  if (types.empty()) types = types_of(implementation_named(c.implementation), true);
  c.dtype = fixed.dtype     ? *fixed.dtype
            : types.empty() ? DType::bf16
                            : types[chance(20) ? 0 : drawn(0, static_cast<int>(types.size()) - 1)];
}

/// Group sizes among them that no tile of heads divides.
int draw_group(bool few_rows) {
  if (chance(65)) return 1;
  return few_rows ? one_of({2, 3, 4, 5, 6, 7, 8}) : drawn(2, 3);
}

/// Lengths of both axes, drawn apart. Two cases in five span two tiles of each: most faults of
/// tiling show nowhere else. Few of them are longer than that, so that cases stay cheap.
void draw_lengths_of_axes(Case& c, bool spans) {
  const TileSize tile = tile_of(c);
  const bool backward = implementation_named(c.implementation).pass == Pass::backward;
  const bool long_keys = spans || chance(45), long_queries = spans || (!long_keys && chance(30));
  c.sq = long_queries ? draw_beyond(tile.q, 2) : draw_within(tile.q);
  c.skv = long_keys ? draw_beyond(tile.kv, spans || backward ? 3 : 6) : draw_within(tile.kv);
  if (chance(8)) c.skv = c.sq;
}

/// Decode: the rows of a tile are those of all heads of a group.
void draw_lengths_of_cache(Case& c, int group, bool spans) {
  const TileSize tile = tile_of(c);
  c.sq = spans ? tile.q / group + drawn(1, 2) : chance(55) ? 1 : drawn(0, 9);
  const bool long_keys = spans || chance(60);
  c.skv = long_keys ? draw_beyond(tile.kv, spans ? 5 : 8) : draw_within(tile.kv);
}

void draw_shape(Case& c, const Fixed& fixed) {
  const Implementation& row = implementation_named(c.implementation);
  c.small_tile = !chance(3);
  const bool spans = chance(39);
  const int single = spans ? 94 : 85;  // percent of cases with one batch entry, and one head
  const bool packed = row.sequences == Sequences::packed;
  const int several = packed ? drawn(1, spans ? 3 : 4) : chance(single) ? 1 : drawn(2, 3);
  c.b = fixed.b.value_or(chance(1) ? 0 : several);
  c.hkv = fixed.hkv.value_or(chance(1) ? 0 : chance(single) ? 1 : drawn(2, 3));
  int group = 1;
  if (has_cache(row)) {
    group = spans ? drawn(1, 8) : draw_group(true);
    draw_lengths_of_cache(c, group, spans);
  } else {
    draw_lengths_of_axes(c, spans);
    group = spans && chance(60) ? 1 : draw_group(c.sq <= 16);
  }
  c.sq = fixed.sq.value_or(c.sq);
  c.skv = fixed.skv.value_or(c.skv);
  if (fixed.hq && !fixed.hkv) c.hkv = *fixed.hq;
  c.hq = fixed.hq.value_or(c.hkv * group);
  c.d = fixed.d.value_or(draw_head_of(row, c.dtype));
  c.dv = fixed.dv.value_or(chance(70) ? c.d : chance(1) ? 0 : draw_head_of(row, c.dtype));
}

/// Lengths of sequences, none of which need be reached; often none at all.
std::vector<int> draw_lengths(int count, int tile, int most) {
  std::vector<int> lengths;
  for (int b = 0; b < count; ++b)
    lengths.push_back(chance(15)               ? 0
                      : chance(25)             ? most
                      : chance(30) && most > 0 ? std::min(most, drawn(1, 4) * tile + drawn(-1, 1))
                                               : drawn(0, most));
  return lengths;
}

/// What the kind of implementation adds: lengths, pages, splits, blocks.
void draw_sequences(Case& c) {
  const Implementation& row = implementation_named(c.implementation);
  const TileSize tile = tile_of(c);
  const bool packed = row.sequences == Sequences::packed, spans = spans_tiles(c);
  if (packed && c.b > 0 && chance(85)) c.query_lengths = draw_lengths(c.b, 16, c.sq);
  if ((packed || has_cache(row)) && c.b > 0 && chance(85))
    c.key_lengths = draw_lengths(c.b, tile.kv, c.skv);
  if (spans && !spans_tiles(c)) {  // one of the sequences is as long as they may be
    const int longest = drawn(0, c.b - 1);
    if (!c.query_lengths.empty()) c.query_lengths[longest] = c.sq;
    if (!c.key_lengths.empty()) c.key_lengths[longest] = c.skv;
  }
  if (has_cache(row) && chance(65)) c.splits = drawn(1, 6);
  if (row.sequences == Sequences::paged) c.page_size = one_of({1, 2, 16, 64, 100});
  if (row.block_sparse) {
    const auto around = [](int t) { return chance(40) ? t * drawn(1, 2) : drawn(1, 2 * t + 20); };
    c.blocks = BlockSize{around(tile.q), around(tile.kv)};
  }
}

void draw_data(Case& c) {
  const bool backward = implementation_named(c.implementation).pass == Pass::backward;
  c.seed = *rc::gen::inRange<std::uint64_t>(0, std::uint64_t{1} << 32);
  // a third of all cases have an answer that is known exactly
  if (chance(33)) {
    constexpr Fill forward_fills[] = {Fill::exact_code, Fill::exact_rank, Fill::exact_count,
                                      Fill::exact_powers, Fill::exact_pairs};
    constexpr Fill backward_fills[] = {Fill::exact_code, Fill::exact_rank, Fill::exact_pairs,
                                       Fill::exact_pairs};
    c.fill = backward ? one_of(backward_fills) : one_of(forward_fills);
  } else {
    c.fill = static_cast<Fill>(drawn(0, static_cast<int>(Fill::exact_code) - 1));
    // their gradients are mostly zeros, or prove little: seldom worth a case
    const bool poor = c.fill == Fill::nan_keys || c.fill == Fill::large_products ||
                      c.fill == Fill::denormal || c.fill == Fill::outlier || c.fill == Fill::capped;
    if (backward && poor && chance(60)) c.fill = Fill::cancelling;
  }
  if ((c.fill == Fill::exact_code || c.fill == Fill::exact_pairs) && c.d < 18)
    c.fill = Fill::exact_rank;
  const bool whole = is_exact(c.fill) || c.fill == Fill::very_negative ||
                     c.fill == Fill::very_positive || c.fill == Fill::large_products;
  if (c.fill == Fill::exact_powers)
    c.scale = std::log(2.0);
  else if (whole)  // proofs need a power of two
    c.scale = c.fill == Fill::exact_count && chance(30) ? 0.0
              : chance(15)                              ? -0.125
                                                        : one_of({0.125, 0.25});
  else if (chance(15))
    c.scale = one_of({0.0, 1e-3, 0.05, 0.25, 1.0, -0.125, -0.5});
}

/// What any implementation may be asked for.
void draw_options(Case& c) {
  const Implementation& row = implementation_named(c.implementation);
  const int rare = is_exact(c.fill) ? 4 : 12;  // percent; they end most proofs of exactness
  c.sink = chance(rare);
  if (chance(rare)) c.dropout = one_of({0.1, 0.5, 0.9});
  if (row.pass == Pass::backward) c.d_lse = chance(30);
  if (row.pass == Pass::forward) c.row_max = chance(30);
  if (!chance(40)) return;
  c.layout = static_cast<Layout>(drawn(0, layout_count - 1));
  if (c.layout == Layout::shared_kv && row.sequences != Sequences::dense) c.layout = Layout::padded;
}

/// Whole tiles and no groups, which is all that many kernels take.
void make_plain(Case& c, const Fixed& fixed) {
  const TileSize tile = tile_of(c);
  const auto whole = [](int length, int of) { return std::max(1, (length + of / 2) / of) * of; };
  if (!fixed.sq) c.sq = whole(c.sq, tile.q);
  if (!fixed.skv) c.skv = whole(c.skv, tile.kv);
  if (!fixed.hq && !fixed.hkv) c.hq = c.hkv;
}

/// Everything but the mod and the mask: what the row takes, if that can be found by trying.
void draw_problem(Case& c, const Fixed& fixed, const Implementation& row) {
  constexpr int most_tries = 200;
  const Case begun = c;
  for (int tries = 0; tries < most_tries; ++tries) {
    c = begun;
    draw_shape(c, fixed);
    if (tries >= most_tries / 2) make_plain(c, fixed);
    draw_sequences(c);
    draw_data(c);
    draw_options(c);
    keep_to_limits(c, row);
    if (!row.refusal(problem_of(c))) return;
  }
}

Case draw_case(const Fixed& fixed) {
  Case c;
  draw_implementation(c, fixed);
  const Implementation& row = implementation_named(c.implementation);
  draw_problem(c, fixed, row);
  if (!fixed.d) c.d = std::min(c.d, fixed.largest_head);
  if (!fixed.dv) c.dv = std::min(c.dv, fixed.largest_head);
  c.mod_type = fixed.mod_type, c.mask_type = fixed.mask_type;
  c.tables = fixed.tables;
  if (c.mod_type.empty())
    c.mod = fixed.mod ? *fixed.mod : row.mod.empty() ? draw_mod(c) : parse_mod(row.mod);
  if (c.mask_type.empty())
    c.mask = fixed.mask ? *fixed.mask : row.mask.empty() ? draw_mask(c) : parse_mask(row.mask);
  drop_unread_tables(c);
  return c;
}

}  // namespace

void drop_unread_tables(Case& c) {
  std::set<std::string> read;
  for (const Expression& e : {c.mod, c.mask})
    for (const TableDeclaration& t : tables_read(e)) read.insert(t.name);
  const auto first = c.tables.begin() + std::min(tables_of_types(c), c.tables.size());
  c.tables.erase(std::remove_if(first, c.tables.end(),
                                [&](const TableSpec& t) { return !read.contains(t.name); }),
                 c.tables.end());
}

static auto neighbours(const Fixed& fixed) {
  return [fixed](const Case& c) { return rc::seq::fromContainer(smaller_cases(c, fixed)); };
}
rc::Gen<Case> cases(const Fixed& fixed) {
  return rc::gen::shrink(rc::gen::noShrink(rc::gen::exec([fixed] { return draw_case(fixed); })),
                         neighbours(fixed));
}
rc::Shrinkable<Case> shrinkable(const Case& c, const Fixed& fixed) {
  return rc::shrinkable::shrinkRecur(c, neighbours(fixed));
}

}  // namespace attn::fuzz
