#pragma once

#include <span>
#include <string_view>

#include "optimized/attention_options.h"
#include "optimized/implementations.h"
#include "reference/problem.h"

namespace attn {

/// One rule of the default configuration: the first row of the table that fits decides.
struct ConfigurationRow {
  Pass pass = Pass::forward;  ///< that it is for
  bool cache = false;         ///< for decode, with a cache of keys
  int most_rows = 0;  ///< query rows of a sequence (decode: times the heads of a group); 0: any
  int most_head = 0;  ///< max(D, Dv); 0: any
  TileChoice tile = TileChoice::production;  ///< what it decides
  std::string_view reason;                   ///< why, in a sentence
};

/// The table, in order. `AttentionOptions::tile` overrides it.
std::span<const ConfigurationRow> default_configuration();

/// The row that decides for a problem.
const ConfigurationRow& default_configuration_for(Pass pass, bool cache, const Problem& problem);

/// The tile of a call: what the options ask for, or else what the table says.
TileChoice chosen_tile(const AttentionOptions& options, Pass pass, bool cache,
                       const Problem& problem);

/// Into how many parts the keys of a decode step are split, so that a device with this many
/// multiprocessors has work for each, twice over, and no part is without a tile of its own.
///
/// @param blocks thread blocks without a split
/// @param tiles the most tiles of keys that one of them visits: short or sparse rows split less
int chosen_splits(std::int64_t blocks, int tiles, int multiprocessors);

}  // namespace attn
