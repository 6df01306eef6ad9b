#include "mods/lang/philox.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace attn {
namespace {

std::vector<std::uint32_t> words(PhiloxWords counter, std::uint64_t key) {
  const PhiloxWords random = philox4x32(counter, key);
  return {random.word, random.word + 4};
}
using Words = std::vector<std::uint32_t>;

// kat_vectors of Random123 1.14, the lines of philox4x32 with 10 rounds; key words k0 k1 are the
// number k1 * 2^32 + k0.
TEST(Philox, GivesThePublishedWords) {
  EXPECT_EQ(words({{0, 0, 0, 0}}, 0), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(words({{~0u, ~0u, ~0u, ~0u}}, ~std::uint64_t{0}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(words({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0x299f31d0a4093822),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, EveryWordOfCounterAndKeyCounts) {
  std::set<Words> seen{words({{0, 0, 0, 0}}, 0),
                       words({{1, 0, 0, 0}}, 0),
                       words({{0, 1, 0, 0}}, 0),
                       words({{0, 0, 1, 0}}, 0),
                       words({{0, 0, 0, 1}}, 0),
                       words({{0, 0, 0, 0}}, 1),
                       words({{0, 0, 0, 0}}, std::uint64_t{1} << 32)};
  EXPECT_EQ(seen.size(), 7u);
}

}  // namespace
}  // namespace attn
