#include "optimized/default_configuration.h"

#include <algorithm>

namespace attn {
namespace {

// How to read it: the first row whose limits hold. Nothing here was measured on a GPU yet; each
// reason says what the row is derived from. An unfused path (scores in memory) is no implementation
// yet; where it is found to win, for few queries, its row belongs above the others of its pass.
constexpr ConfigurationRow table[] = {
    {Pass::forward, true, 0, 0, TileChoice::small,
     "decode waits for memory, not for products: rows beyond those of one group would be padding, "
     "and small key tiles split evenly"},
    {Pass::forward, false, 64, 0, TileChoice::small,
     "up to 64 queries the other half of a tile of 128 rows would be padding"},
    {Pass::forward, false, 0, 128, TileChoice::production,
     "128 x 64: each tile of keys is read once for 128 rows; 16 rows a warp hold O of head size "
     "128 in registers without a spill"},
    {Pass::forward, false, 0, 0, TileChoice::small,
     "head size 256: Q, K and V of 64 x 32 fill 96 KiB of shared memory, 128 x 64 would need 192"},
    {Pass::backward, false, 0, 0, TileChoice::production,
     "64 x 32 for every size: dK and dV of 128 channels fill half the registers"},
};

bool fits(const ConfigurationRow& row, Pass pass, bool cache, const Problem& p) {
  const int rows = cache ? p.sq * p.group() : p.sq;
  return row.pass == pass && row.cache == cache && (row.most_rows == 0 || rows <= row.most_rows) &&
         (row.most_head == 0 || std::max(p.d, p.dv) <= row.most_head);
}

}  // namespace

std::span<const ConfigurationRow> default_configuration() { return table; }

const ConfigurationRow& default_configuration_for(Pass pass, bool cache, const Problem& problem) {
  for (const ConfigurationRow& row : table)
    if (fits(row, pass, cache, problem)) return row;
  return table[std::size(table) - 1];  // not reached: the last row of each pass has no limit
}

TileChoice chosen_tile(const AttentionOptions& options, Pass pass, bool cache,
                       const Problem& problem) {
  return options.tile == TileChoice::automatic
             ? default_configuration_for(pass, cache, problem).tile
             : options.tile;
}

int chosen_splits(std::int64_t blocks, int tiles, int multiprocessors) {
  if (blocks <= 0 || tiles <= 1) return 1;
  const std::int64_t wanted = (2 * std::int64_t{multiprocessors} + blocks - 1) / blocks;
  return static_cast<int>(std::clamp<std::int64_t>(wanted, 1, std::min(tiles, most_splits)));
}

}  // namespace attn
