#pragma once

#include <cstdint>
#include <vector>

#include "fuzz/case.h"
#include "optimized/implementations.h"
#include "reference/sequences.h"

namespace attn::fuzz {

/// How the sequences of a case lie in the tensors of its implementation.
/// @throws std::invalid_argument if there is no such implementation.
Sequences sequences_of(const Case& c);

/// The tile that it runs with.
TileSize tile_of(const Case& c);

/// True if a sequence of the case has more than one tile of query rows and more than one of keys.
/// Decode has the rows of all heads of a group in one tile.
bool spans_tiles(const Case& c);

/// The number of queries, and of keys, of each sequence [B].
/// @throws std::invalid_argument if lengths are given and there is not one for each sequence, none
///     longer than Sq, Skv.
std::vector<std::int32_t> query_lengths(const Case& c);
/// The same of keys; of a cache, the slots that are filled.
std::vector<std::int32_t> key_lengths(const Case& c);

/// 0 and the sums of the first 1, 2, ... lengths.
std::vector<std::int32_t> cumulative(const std::vector<std::int32_t>& lengths);

/// What each batch entry of the logical tensors [B, H, S, X] holds: sequence b has the first rows
/// of entry b, and its mod and mask see what the kernel's see.
std::vector<Sequence> logical_sequences(const Case& c);

/// Refuses the parts of a case that its implementation has no use for, and asks for those that it
/// needs.
/// @throws std::invalid_argument naming the part and what was expected.
void check_parts(const Case& c, const Implementation& implementation);

}  // namespace attn::fuzz
