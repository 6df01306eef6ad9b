#pragma once

#include "fuzz/case.h"

namespace attn::fuzz {

/// Draws a mod for `c`, whose implementation, lengths and fill are set, and declares the tables it
/// reads in `c.tables`. Must run inside a RapidCheck generator.
///
///   Score   := score | Score +- Bounded | Score * Gain | Limit(Score) | max(Score, g * Score)
///            | abs(Score) | c ? Score : Score | floor(4 * Score) / 4   (the last at most once)
///   Limit   := cap * tanh(Score / cap) | Score * sigmoid(Score) | clamp(Score, -R, R)
///   Gain    := a dyadic constant | 1 + Bounded / 4 | sigmoid(Bounded) | a table of b or h
///   Bounded := a dyadic constant | a table of b, h, q, kv or kv - q | slope[h] * (kv - q)
///            | tanh(Score) | sin or cos of the distance
///
/// A drawn mod keeps |result| <= 2^10, by interval evaluation over the whole problem, and depends
/// on `score`.
Expression draw_mod(Case& c);

/// Draws a mask: the shapes of practice (causal both ways, windows, documents, prefixes, lengths,
/// dense tables with broadcast axes) and their combinations by && || ! !=, some of them empty rows;
/// for a block-sparse implementation many of blocks, whole rows of which are empty.
Expression draw_mask(Case& c);

}  // namespace attn::fuzz
