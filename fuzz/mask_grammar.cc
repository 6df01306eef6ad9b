#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "fuzz/case_sequences.h"
#include "fuzz/draw.h"
#include "fuzz/grammar.h"
#include "fuzz/grammar_tables.h"
#include "mods/lang/parse.h"

namespace attn::fuzz {
namespace {

std::string dense_mask(Case& c) {
  const char* dims =
      one_of({"B,Hq,Q,Skv", "1,1,Q,Skv", "B,1,1,Skv", "1,Hq,Q,1", "B,1,Q,Skv", "1,Hq,1,Skv"});
  const std::string source = fmt::format("bits({})", one_of({"0.1", "0.5", "0.9"}));
  return fmt::format("{}[b, h, {}, kv]", table(c, "m", dims_of(c, dims), source), q_index(c));
}

/// Bits that look random: a hash of the pair, of the batch entry and of the head.
std::string hashed_bits() {
  const int m = drawn(2, 11);
  return fmt::format("floor_mod(({} * q + {} * kv + {} * h + {} * b) * (q + 3 * kv + {}), {}) < {}",
                     drawn(1, 99), drawn(1, 99), drawn(0, 9), drawn(0, 9), drawn(1, 99), m,
                     drawn(1, m - 1));
}

}  // namespace

std::string pair_condition(Case& c) {
  switch (drawn(0, 19)) {
    case 0:
      return "kv <= q";
    case 1:
      return "kv <= q + (Skv - Sq)";
    case 2:
      return fmt::format("kv <= q + {}", drawn(-20, 20));
    case 3:
      return fmt::format("q + (Skv - Sq) - kv <= {}", one_of({0, 1, 7, 31, 32, 33}));
    case 4:
      return fmt::format("q - kv < {}", drawn(1, 40));
    case 5:
      return fmt::format("abs(q - kv) <= {}", drawn(0, 40));
    case 6:
      return fmt::format("kv < {}", drawn(0, std::max(1, c.skv)));
    case 7: {
      const int n = drawn(3, 70);
      return fmt::format("q / {} == kv / {}", n, n);
    }
    case 8: {
      const std::string doc =
          table(c, "doc", "Sq+Skv", fmt::format("documents({})", one_of({3, 17, 40})));
      return counts_from_keys(c) ? fmt::format("{}[q + Sq] == {}[kv + Sq]", doc, doc)
                                 : fmt::format("{}[q] == {}[kv]", doc, doc);
    }
    case 9: {
      const int m = drawn(2, 9);
      return fmt::format("kv % {} == {}", m, drawn(0, m - 1));
    }
    case 10:
      return fmt::format("floor_mod(q - kv, {}) == 0", drawn(2, 9));
    case 11: {
      const int a = drawn(1, 5), b = drawn(1, 5), offset = drawn(-50, 50);
      return fmt::format("{} * kv <= {} * q + {}", a, b, offset);
    }
    case 12:
      return fmt::format("kv < {}[b]",
                         table(c, "len", "B", fmt::format("ints(0,{})", std::max(1, c.skv))));
    case 13:
      return dense_mask(c);
    case 14:
      return fmt::format("q < {}", drawn(0, std::max(1, counts_from_keys(c) ? c.skv : c.sq)));
    case 15:
      return hashed_bits();
    case 16: {
      const int m = drawn(2, 40);
      return fmt::format("kv % {} < {}", m, drawn(1, m - 1));
    }
    case 17: {  // q may lie before the first key of a cache
      const int n = drawn(2, 50);
      return fmt::format("floor_div(q, {}) >= floor_div(kv, {})", n, n);
    }
    case 18:
      return one_of({"h < Hq / 2 || kv <= q", "b < B - 1 || kv > q", "h * Hkv < Hq || q != kv",
                     "min(q, kv) % 3 != 0", "max(q, kv) > 4", "-q <= kv", "q > kv"});
    default:
      return one_of({"(q + h) % 2 == 0", "kv >= q || h == 0", "b == 0 || kv <= q", "kv == q"});
  }
}

namespace {

/// Whole blocks, most of them empty, and whole rows of blocks without any.
std::string block_atom(Case& c) {
  const int q = drawn(8, 80), kv = drawn(8, 80);
  switch (drawn(0, 3)) {
    case 0:
      return fmt::format("q / {} % 3 == {}", q, drawn(0, 2));
    case 1:
      return fmt::format("(q / {} + kv / {}) % {} == 0", q, kv, drawn(2, 4));
    case 2:
      return fmt::format("{}[q / {}, kv / {}]",
                         table(c, "m", "Sq,Skv", fmt::format("bits({})", one_of({"0.2", "0.5"}))),
                         q, kv);
    default:
      return fmt::format("kv / {} == q / {} && q / {} != {}", kv, q, q, drawn(0, 2));
  }
}

/// `text`, but for some rows, which attend no key or one, or for some tiles, which are empty.
std::string with_holes(const Case& c, const std::string& text) {
  const int m = drawn(2, 9), r = drawn(0, m - 1), keys = std::max(1, c.skv);
  const TileSize tile = tile_of(c);
  switch (drawn(0, 4)) {
    case 0:
      return fmt::format("floor_mod(q, {}) != {} && ({})", m, r, text);
    case 1:
      return fmt::format("floor_mod(q, {}) == {} ? kv == {} : ({})", m, r, drawn(0, keys - 1),
                         text);
    case 2:
      return fmt::format("kv == floor_mod({} * q + {}, {})", drawn(1, 9), drawn(0, 9), keys);
    case 3:
      return fmt::format("kv / {} % {} != {} && ({})", tile.kv, one_of({2, 3}), drawn(0, 1), text);
    default:
      return fmt::format("floor_mod(floor_div(q, {}) + kv / {}, 2) == {} && ({})", tile.q, tile.kv,
                         drawn(0, 1), text);
  }
}

std::string mask_text(Case& c, int depth) {
  if (depth == 0 || chance(30)) return pair_condition(c);
  const std::string a = mask_text(c, depth - 1);
  switch (drawn(0, 9)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
      return fmt::format("({}) && ({})", a, mask_text(c, depth - 1));
    case 5:
    case 6:
    case 7:
      return fmt::format("({}) || ({})", a, mask_text(c, depth - 1));
    case 8:
      return fmt::format("!({})", a);
    default:
      return fmt::format("({}) != ({})", a, mask_text(c, depth - 1));
  }
}

/// What may be put around a mask.
std::string composed(Case& c, std::string text) {
  if (chance(12)) text = with_holes(c, text);
  if (c.blocks && chance(50)) text = fmt::format("({}) && ({})", block_atom(c), text);
  return text;
}

}  // namespace

Expression draw_mask(Case& c) {
  if (chance(15)) return condition_constant(true);
  const auto parsed = [&](const std::string& text) { return parse_mask(text, c.declarations()); };
  if (chance(20)) {
    const std::string named = draw_named_mask(c);
    const Expression mask = parsed(composed(c, named));
    return mask->size <= largest_combination ? mask : parsed(named);
  }
  for (;;)
    if (const Expression mask = parsed(composed(c, mask_text(c, drawn(0, 3))));
        mask->size <= largest_combination)
      return mask;
}

}  // namespace attn::fuzz
