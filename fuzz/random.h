#pragma once

#include <cstdint>
#include <string_view>

namespace attn::fuzz {

/// SplitMix64's finaliser (S. Vigna, public domain): every input bit reaches every output bit.
constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

/// A hash of whole numbers: data that is a pure function of where it stands, so that a smaller
/// case keeps the values of the elements that remain.
template <class... I>
constexpr std::uint64_t hash_of(std::uint64_t seed, I... part) {
  ((seed = mix(seed ^ mix(static_cast<std::uint64_t>(part)))), ...);
  return seed;
}
/// The same of a text, byte by byte.
constexpr std::uint64_t hash_of_text(std::string_view text) {
  std::uint64_t h = 0;
  for (const char c : text) h = mix(h ^ static_cast<unsigned char>(c));
  return h;
}

/// In [0, 1).
constexpr double uniform_of(std::uint64_t hash) {
  return static_cast<double>(hash >> 11) * 0x1p-53;
}
/// Mean 0, variance 1, within +-3.5: the sum of four uniform numbers of 16 bits.
constexpr double normal_of(std::uint64_t hash) {
  const double sum = static_cast<double>((hash & 0xffff) + (hash >> 16 & 0xffff) +
                                         (hash >> 32 & 0xffff) + (hash >> 48));
  return (sum * 0x1p-16 - 2 + 0x1p-15) * 1.7320508075688772;
}
/// A whole number from low to high, both included.
constexpr int int_of(std::uint64_t hash, int low, int high) {
  return low + static_cast<int>(hash % static_cast<std::uint64_t>(high - low + 1));
}

}  // namespace attn::fuzz
