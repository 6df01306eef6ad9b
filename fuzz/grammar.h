#pragma once

#include "fuzz/case.h"

namespace attn::fuzz {

/// Draws a mod for `c`, whose implementation, lengths and fill are set, and declares the tables it
/// reads in `c.tables`. Must run inside a RapidCheck generator.
///
///   Score   := score | Score +- Bounded | Score * Gain | Limit(Score) | max(Score, g * Score)
///            | abs(Score) | -Score | Pair ? Score : Score | Jump   (the last at most once)
///   Jump    := floor(2^a Score) / 2^a | score > a dyadic constant ? Score : Score
///   Limit   := cap * tanh(Score / cap) | Score * sigmoid(Score) | clamp(Score, -R, R) | min(Score,
///   R) Gain    := a dyadic constant | 1 + Bounded / 4 | sigmoid(Bounded) | a table of b or h
///   Bounded := a dyadic constant | a table of b, h, q, kv or kv - q | slope[h] * (kv - q)
///            | tanh(Score) | sin, cos, exp or log of the distance
///   Pair    := a condition of draw_mask
///
/// At the root, Score may stand alone, be an entry of the registry of mods with random parameters,
/// or be masked: Pair ? Score : -inf. A drawn mod keeps |result| <= 2^10 where it does not mask, by
/// interval evaluation over the whole problem, and depends on `score`.
Expression draw_mod(Case& c);

/// Draws a mask: conditions on pairs (causal both ways, windows, documents, prefixes, lengths,
/// remainders, lines, blocks, random bits, dense tables with broadcast axes) and their combinations
/// by && || ! != and choice, or an entry of the registry of masks with random parameters. Some are
/// true everywhere; some empty whole rows, leave a row one key, or empty tiles between full ones;
/// for a block-sparse implementation many are of blocks, whole rows of which are empty.
Expression draw_mask(Case& c);

}  // namespace attn::fuzz
